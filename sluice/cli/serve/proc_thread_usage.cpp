#include "sluice/cli/serve/proc_thread_usage.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace sluice::cli {

using smb::server::thread_usage;

namespace {

// Places of the fields after the name, which may contain spaces and parentheses.
constexpr std::size_t place_of_state = 0;
constexpr std::size_t place_of_user_time = 11;
constexpr std::size_t place_of_system_time = 12;

[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view field) noexcept {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (code != std::errc{} or end != field.data() + field.size()) return std::nullopt;
    return number;
}

}  // namespace

std::optional<thread_usage> decode_thread_stat(std::string_view text, long ticks_per_second) noexcept {
    const std::size_t name_end = text.rfind(") ");
    if (name_end == text.npos or ticks_per_second <= 0) return std::nullopt;
    text.remove_prefix(name_end + 2);
    std::array<std::string_view, place_of_system_time + 1> fields;
    for (std::string_view& field : fields) {
        field = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), field.size() + 1));
    }
    const auto user = number_in(fields[place_of_user_time]);
    const auto system = number_in(fields[place_of_system_time]);
    if (not user or not system) return std::nullopt;
    const std::chrono::nanoseconds tick =
        std::chrono::nanoseconds(std::chrono::seconds(1)) / ticks_per_second;
    return thread_usage{.is_runnable = fields[place_of_state] == "R",
                        .cpu_time = tick * static_cast<std::int64_t>(*user + *system)};
}

std::optional<thread_usage> proc_thread_usage::of(int thread) noexcept {
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return std::nullopt;
    std::array<char, 1024> text;
    const ssize_t bytes = ::read(opened, text.data(), text.size());
    ::close(opened);
    if (bytes <= 0) return std::nullopt;
    static const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
    return decode_thread_stat({text.data(), static_cast<std::size_t>(bytes)}, ticks_per_second);
}

}  // namespace sluice::cli
