#pragma once

#include <memory>
#include <string_view>

#include "sluice/smb/server/open/named_pipe.hpp"

namespace sluice::smb::server {

class server_context;
class session;

/// Returns whether a pipe of an RPC service has this name: "lsarpc", "samr", "srvsvc" or "wkssvc",
/// in any case, with or without a backslash before it.
[[nodiscard]] bool is_pipe_name(std::string_view name) noexcept;
/// Returns a new pipe of that name for a session's user; null if there is none of that name.
/// `host` outlives it.
[[nodiscard]] std::unique_ptr<named_pipe> make_named_pipe(server_context& host, std::string_view name,
                                                          const session& by);

}  // namespace sluice::smb::server
