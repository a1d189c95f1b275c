#pragma once

#include <optional>
#include <string>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::cli {

/// Returns the address for metrics; without an address in the text, it is on the loopback
/// interface. Returns std::nullopt if the text is neither ADDRESS:PORT nor a port.
[[nodiscard]] std::optional<io::socket_address> metrics_address(const std::string& text) noexcept;

}  // namespace sluice::cli
