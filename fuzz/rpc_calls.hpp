#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/rpc/rpc_service.hpp"

namespace sluice::fuzzing {

/// Sends calls with arbitrary arguments to a service whose client is bound already, and expects
/// complete replies within the limits of the pipe. The first byte says whether the client is an
/// administrator. Each call is its operation, the length of its arguments in two bytes, and these.
void execute_rpc_calls(smb::wire::rpc_service service, bytes_view input);

}  // namespace sluice::fuzzing
