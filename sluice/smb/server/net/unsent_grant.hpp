#pragma once

#include <memory>
#include <utility>

#include "sluice/smb/server/file/lease.hpp"

namespace sluice::smb::server {

class server_context;

/// A reply that grants caching, until it is sent: the client does not know of the caching before. A
/// break that is decided in that time is sent after the reply (lease::unsent_grants).
///
/// Loop-owned: made where the caching is granted, destroyed where the reply has
/// been sent. Move-only.
class unsent_grant {
public:
    /// The caller has counted it in the lease.
    unsent_grant(server_context& host, std::shared_ptr<lease> of) noexcept
        : host_(&host), of_(std::move(of)) {}
    unsent_grant(unsent_grant&& other) noexcept = default;
    unsent_grant& operator=(unsent_grant&& other) noexcept {
        std::swap(host_, other.host_);
        std::swap(of_, other.of_);
        return *this;
    }
    ~unsent_grant();

private:
    server_context* host_;
    std::shared_ptr<lease> of_;  // null after a move
};

}  // namespace sluice::smb::server
