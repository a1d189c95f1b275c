#include "sluice/cli/doctor/local/proc_text.hpp"

#include <charconv>
#include <limits>
#include <system_error>

#include "sluice/cli/doctor/text_file.hpp"

namespace sluice::cli::doctor {
namespace {

template <class T>
[[nodiscard]] std::optional<T> number_of(std::string_view text, int base = 10) noexcept {
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (code != std::errc() or end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Addresses are words of 32 bits in the byte order of the host, so that 127.0.0.1 of a
// little-endian host is 0100007F.
[[nodiscard]] bool is_loopback(std::string_view address) noexcept {
    if (address.size() == 8) return address.ends_with("7F") or address.starts_with("7F");
    constexpr std::string_view v6_little = "00000000000000000000000001000000";
    constexpr std::string_view v6_big = "00000000000000000000000000000001";
    constexpr std::string_view mapped = "0000000000000000FFFF0000";
    if (address == v6_little or address == v6_big) return true;
    return address.starts_with(mapped) and is_loopback(address.substr(mapped.size()));
}

[[nodiscard]] std::optional<tcp_listener> listener_of(std::string_view line) {
    constexpr std::size_t local = 1;
    constexpr std::size_t state = 3;
    constexpr std::size_t user = 7;
    constexpr std::size_t inode = 9;
    constexpr std::string_view listening = "0A";
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() <= inode or words[state] != listening) return std::nullopt;
    const std::size_t colon = words[local].find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto port = number_of<std::uint16_t>(words[local].substr(colon + 1), 16);
    const auto owner = number_of<std::uint32_t>(words[user]);
    const auto number = number_of<std::uint64_t>(words[inode]);
    if (not port or not owner or not number) return std::nullopt;
    return tcp_listener{.port = *port,
                        .user_id = *owner,
                        .inode = *number,
                        .is_loopback = is_loopback(words[local].substr(0, colon))};
}

}  // namespace

std::vector<tcp_listener> parse_listeners(std::string_view text) {
    std::vector<tcp_listener> found;
    for (const std::string_view line : lines_of(text))
        if (const auto one = listener_of(line); one) found.push_back(*one);
    return found;
}

std::optional<double> parse_pressure(std::string_view text, std::string_view line) {
    constexpr std::string_view key = "avg10=";
    for (const std::string_view each : lines_of(text)) {
        const std::vector<std::string_view> words = words_of(each);
        if (words.size() < 2 or words[0] != line or not words[1].starts_with(key)) continue;
        const std::string_view digits = words[1].substr(key.size());
        double value = 0;
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        const bool is_valid = code == std::errc() and end == digits.data() + digits.size();
        if (is_valid and value >= 0 and value <= 100) return value;
    }
    return std::nullopt;
}

cpu_features parse_cpu(std::string_view cpuinfo) {
    cpu_features features;
    for (const std::string_view line : lines_of(cpuinfo)) {
        const bool is_list = line.starts_with("flags") or line.starts_with("Features");
        const std::size_t colon = line.find(':');
        if (not is_list or colon == line.npos) continue;
        features.is_known = true;
        bool has_vector_multiply = false;
        for (const std::string_view word : words_of(line.substr(colon + 1))) {
            features.has_aes |= word == "aes";
            features.has_carryless_multiply |= word == "pclmulqdq" or word == "pmull";
            features.has_vector_aes |= word == "vaes";
            has_vector_multiply |= word == "vpclmulqdq";
        }
        features.has_vector_aes &= has_vector_multiply;
        break;  // the first CPU stands for all
    }
    return features;
}

std::optional<std::uint64_t> parse_socket_link(std::string_view link) noexcept {
    constexpr std::string_view front = "socket:[";
    if (not link.starts_with(front) or not link.ends_with(']')) return std::nullopt;
    return number_of<std::uint64_t>(link.substr(front.size(), link.size() - front.size() - 1));
}

std::vector<std::uint64_t> parse_numbers(std::string_view text) {
    std::vector<std::uint64_t> numbers;
    for (const std::string_view word : words_of(text)) {
        const auto one = number_of<std::uint64_t>(word);
        if (not one) break;
        numbers.push_back(*one);
    }
    return numbers;
}

std::optional<std::uint32_t> parse_user_id(std::string_view status) {
    constexpr std::size_t file_system_id = 4;
    for (const std::string_view line : lines_of(status)) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.size() > file_system_id and words.front() == "Uid:")
            return number_of<std::uint32_t>(words[file_system_id]);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> parse_limit(std::string_view limits, std::string_view name) {
    for (const std::string_view line : lines_of(limits)) {
        if (not line.starts_with(name)) continue;
        const std::vector<std::string_view> words = words_of(line.substr(name.size()));
        if (words.empty()) return std::nullopt;
        if (words.front() == "unlimited") return std::numeric_limits<std::uint64_t>::max();
        return number_of<std::uint64_t>(words.front());
    }
    return std::nullopt;
}

std::string parse_unit_user(std::string_view unit, std::string_view path) {
    constexpr std::string_view key = "User=";
    std::string user;
    if (path.empty() or unit.find(path) == unit.npos) return user;
    for (const std::string_view line : lines_of(unit))
        if (trimmed(line).starts_with(key)) user = trimmed(trimmed(line).substr(key.size()));
    return user;
}

}  // namespace sluice::cli::doctor
