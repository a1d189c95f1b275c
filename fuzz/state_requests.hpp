#pragma once

#include "fuzz/state_client.hpp"

namespace sluice::fuzz {

/// Sends the request that `code` selects, with operands of the program: every command, in forms
/// that a server may accept and in forms that it must refuse.
void send_request(client& by, program& script, unsigned code);

}  // namespace sluice::fuzz
