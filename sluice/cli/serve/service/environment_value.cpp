#include "sluice/cli/serve/service/environment_value.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <system_error>

namespace sluice::cli {

std::string take_variable(const char* name) {
    const char* const found = std::getenv(name);
    std::string value = found != nullptr ? found : "";
    (void)::unsetenv(name);
    return value;
}

std::optional<std::uint64_t> number_of(std::string_view text, std::uint64_t most) noexcept {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, wrong] = std::from_chars(text.data(), end, number);
    if (wrong != std::errc{} or rest != end or number > most) return std::nullopt;
    return number;
}

std::string shown_value(std::string_view value) {
    constexpr std::size_t shown_bytes_max = 40;
    if (value.size() <= shown_bytes_max) return fmt::format("'{}'", value);
    return fmt::format("'{}...' ({} bytes)", value.substr(0, shown_bytes_max), value.size());
}

}  // namespace sluice::cli
