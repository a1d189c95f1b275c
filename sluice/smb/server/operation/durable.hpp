#pragma once

#include <chrono>
#include <expected>
#include <memory>

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"

// Opens that outlive the connection they were made on ([MS-SMB2] 3.3.5.9.6, .7, .10, .12, 3.3.7.1).

namespace sluice::smb::server {

/// Whether what a CREATE says of durability makes sense. Errors: INVALID_PARAMETER.
[[nodiscard]] wire::nt_status check_durability(const wire::create_request_contexts& asked) noexcept;

/// Makes a new open durable if that was requested and its client caches the handle; sets the reply
/// accordingly. After grant_caching(). The open may have ended.
void grant_durability(const request& r, open& fresh, const wire::create_args& args, bool caches_handle,
                      wire::create_reply& reply);
void encode_durability(const open& one, wire::create_reply& reply) noexcept;

/// Keeps a durable open when its connection is lost, for its client to come back to: takes it from
/// `of`, its session, and ends it after its time. False if it is not durable, its caching is being
/// broken, or its client has too many such opens; then the caller must end it.
[[nodiscard]] bool keep_without_client(server_context& host, const std::shared_ptr<open>& one,
                                       session& of) noexcept;

/// Ends an open whose client has been gone since that disconnect, after `timeout`.
void end_after(server_context& host, const std::shared_ptr<open>& one, std::chrono::milliseconds timeout,
               std::uint32_t number) noexcept;

/// Which open a client wants back.
struct reconnection {
    wire::file_id file{};
    std::optional<wire::guid> create_guid{};  // for a request of version 2
    bool is_persistent = false;
};
[[nodiscard]] std::optional<reconnection> reconnection_in(
    const wire::create_request_contexts& asked) noexcept;

/// Returns the open that a client wants back, by its ID or else its create guid; null if there is
/// none. Whether it is that client's is not checked.
[[nodiscard]] std::shared_ptr<open> find_wanted(const request& r, const reconnection& wanted) noexcept;
/// Returns whether the user of the request has made the open durable.
[[nodiscard]] bool is_owner_of(const request& r, const open& one) noexcept;

/// Returns a durable open to its client, on the session and tree of the request. The CREATE's other
/// fields are ignored except for the lease's key, and with it the name. Errors:
/// OBJECT_NAME_NOT_FOUND if there is no such open without a client, or not of this client or key;
/// ACCESS_DENIED for another user; INVALID_PARAMETER for another name.
[[nodiscard]] std::expected<std::shared_ptr<open>, wire::nt_status> reconnect(request& r,
                                                                              const wire::create_args& args,
                                                                              const reconnection& wanted);

}  // namespace sluice::smb::server
