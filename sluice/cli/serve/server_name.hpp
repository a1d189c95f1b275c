#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::cli {

inline constexpr std::size_t netbios_name_max = 15;

/// Returns whether a character may be in the NetBIOS name of a server: letters, digits, hyphens.
[[nodiscard]] bool is_in_server_name(char c) noexcept;

/// Returns the NetBIOS name for a host: the first label of its name, in upper case, without other
/// characters, and cut to 15; SLUICE if nothing remains or the name is `localhost`.
/// Allocates: the name. Thread safety: pure function.
[[nodiscard]] std::string server_name_for(std::string_view host);

/// Returns the NetBIOS name for this host. Allocates: the name. Thread safety: any thread.
[[nodiscard]] std::string default_server_name();

}  // namespace sluice::cli
