#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Parsers of files in /proc and /sys. Pure functions over text, which may be truncated or of a
// newer kernel: a line that they do not understand is skipped. Complexity: linear.

namespace sluice::cli::doctor {

/// A listening TCP socket, from /proc/net/tcp or tcp6 (proc_net(5)).
struct tcp_listener {
    std::uint16_t port = 0;
    std::uint32_t user_id = 0;
    std::uint64_t inode = 0;
    bool is_loopback = false;  ///< only programs of this host can connect

    [[nodiscard]] friend bool operator==(const tcp_listener&, const tcp_listener&) noexcept = default;
};
[[nodiscard]] std::vector<tcp_listener> parse_listeners(std::string_view text);

/// Returns the share of the last ten seconds, in percent, in which tasks waited: `line` is "some"
/// or "full" of a file in /proc/pressure. Returns std::nullopt if the text does not have it.
[[nodiscard]] std::optional<double> parse_pressure(std::string_view text, std::string_view line);

/// The instructions of a CPU that decide the cost of encryption, from /proc/cpuinfo.
struct cpu_features {
    bool is_known = false;  ///< the text has a list of features
    bool has_aes = false;
    bool has_carryless_multiply = false;
    bool has_vector_aes = false;  ///< both for vectors of 256 bits or more
};
[[nodiscard]] cpu_features parse_cpu(std::string_view cpuinfo);

/// Returns the inode of a link such as "socket:[123]"; std::nullopt for another text.
[[nodiscard]] std::optional<std::uint64_t> parse_socket_link(std::string_view link) noexcept;

/// Returns the numbers of a text such as "4096 16384 4194304"; stops at the first word that is not
/// a number.
[[nodiscard]] std::vector<std::uint64_t> parse_numbers(std::string_view text);

/// Returns the user of a process from /proc/PID/status (its file-system user ID).
[[nodiscard]] std::optional<std::uint32_t> parse_user_id(std::string_view status);

/// Returns the soft limit of one line of /proc/PID/limits, such as "Max open files"; the largest
/// number for "unlimited".
[[nodiscard]] std::optional<std::uint64_t> parse_limit(std::string_view limits, std::string_view name);

/// Returns the value of the last line `User=` of a systemd unit, if the unit also contains `path`;
/// empty if it does not.
[[nodiscard]] std::string parse_unit_user(std::string_view unit, std::string_view path);

}  // namespace sluice::cli::doctor
