#include "sluice/cli/status/time_text.hpp"

#include <array>

namespace sluice::cli {
namespace {

[[nodiscard]] std::string text_of(const char* pattern, const std::tm* parts) {
    std::array<char, 64> text{};
    if (parts == nullptr) return "?";
    return {text.data(), std::strftime(text.data(), text.size(), pattern, parts)};
}

}  // namespace

std::string local_time_text(const char* pattern, std::time_t when) {
    std::tm parts{};
    return text_of(pattern, ::localtime_r(&when, &parts));
}

std::string utc_text(const char* pattern, std::time_t when) {
    std::tm parts{};
    return text_of(pattern, ::gmtime_r(&when, &parts));
}

}  // namespace sluice::cli
