#pragma once

#include <memory>
#include <string_view>

#include "sluice/smb/server/open/named_pipe.hpp"

namespace sluice::smb::server {

class server_context;

/// The pipe of an RPC service ("srvsvc", "wkssvc", in any case); null if there
/// is none of that name.
[[nodiscard]] std::unique_ptr<named_pipe> make_named_pipe(const server_context& host, std::string_view name);

}  // namespace sluice::smb::server
