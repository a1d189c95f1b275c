#pragma once

#include "sluice/smb/client/session.hpp"
#include "sluice/smb/wire/create/open_information.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"

namespace sluice::smb::client {

/// The attributes, sizes and times that a server returns when it opens or closes a file.
using file_status = wire::open_information;

[[nodiscard]] inline bool is_directory(const file_status& status) noexcept {
    return wire::has(status.attributes, wire::file_attributes::directory);
}
[[nodiscard]] inline bool is_link(const file_status& status) noexcept {
    return wire::has(status.attributes, wire::file_attributes::reparse_point);
}

/// The part of a connected share that its open files use; tree.hpp has the rest. Thread safety: the
/// loop's thread. The session outlives it.
class tree_connection {
public:
    tree_connection(const tree_connection&) = delete;
    tree_connection& operator=(const tree_connection&) = delete;

    [[nodiscard]] session& of() const noexcept { return session_; }
    [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
    [[nodiscard]] const wire::tree_connect_reply& share() const noexcept { return share_; }
    /// Returns whether requests in this share must be encrypted, although the session does not
    /// require it.
    [[nodiscard]] bool seals() const noexcept { return seals_; }

    /// Returns the options that requests in this share start with.
    [[nodiscard]] request_options request(const char* step) const noexcept {
        return {.step = step,
                .tree_id = id_,
                .must_seal = seals_,
                .channel_sequence = session_.channel_sequence()};
    }

protected:
    explicit tree_connection(session& in) noexcept : session_(in) {}
    ~tree_connection() = default;

    session& session_;
    std::uint32_t id_ = 0;
    bool seals_ = false;
    wire::tree_connect_reply share_{};
};

}  // namespace sluice::smb::client
