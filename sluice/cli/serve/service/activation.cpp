#include "sluice/cli/serve/service/activation.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "sluice/cli/message.hpp"
#include "sluice/cli/serve/service/environment_value.hpp"

namespace sluice::cli {

namespace {

constexpr int first_descriptor = 3;
constexpr std::size_t names_bytes_max = 4096;

// Returns the name at this position of a list with colons; empty if it has none.
[[nodiscard]] std::string_view name_at(std::string_view names, std::size_t position) noexcept {
    if (names.size() > names_bytes_max) return {};
    for (; position != 0; --position) {
        const std::size_t colon = names.find(':');
        if (colon == std::string_view::npos) return {};
        names.remove_prefix(colon + 1);
    }
    return names.substr(0, names.find(':'));
}

[[nodiscard]] std::optional<int> option_of(int descriptor, int option) noexcept {
    int value = 0;
    socklen_t bytes = sizeof value;
    if (::getsockopt(descriptor, SOL_SOCKET, option, &value, &bytes) != 0) return std::nullopt;
    return value;
}

// Returns why the server cannot accept connections from it; empty if it can.
[[nodiscard]] std::string problem_of(int descriptor) {
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return std::strerror(errno);
    const std::optional<int> type = option_of(descriptor, SO_TYPE);
    if (not type) return "not a socket";
    if (*type != SOCK_STREAM) return "not a stream socket; use ListenStream=";
    const int domain = option_of(descriptor, SO_DOMAIN).value_or(AF_UNSPEC);
    if (domain != AF_INET and domain != AF_INET6)
        return "not an internet socket; use a port, or an IP address with a port";
    if (option_of(descriptor, SO_ACCEPTCONN).value_or(0) == 0) return "not listening; use Accept=no";
    return {};
}

[[nodiscard]] std::optional<std::uint64_t> checked_number(const char* variable, std::string_view text,
                                                          std::string_view rule) {
    const auto number = number_of(text, std::numeric_limits<std::int32_t>::max());
    if (not number)
        warn(fmt::format("invalid value {} for {}: use {}; sockets of the service manager are ignored",
                         shown_value(text), variable, rule));
    return number;
}

}  // namespace

std::expected<std::vector<int>, std::string> take_activation_sockets() {
    const std::string count_text = take_variable("LISTEN_FDS");
    const std::string process_text = take_variable("LISTEN_PID");
    const std::string names = take_variable("LISTEN_FDNAMES");
    std::vector<int> descriptors;
    if (count_text.empty() or process_text.empty()) return descriptors;
    const auto process = checked_number("LISTEN_PID", process_text, "the number of a process");
    if (not process or *process != static_cast<std::uint64_t>(::getpid())) return descriptors;
    const auto count = checked_number("LISTEN_FDS", count_text, "the number of sockets");
    if (not count) return descriptors;
    if (*count > activation_sockets_max)
        return std::unexpected(fmt::format("the service manager has passed {} sockets; use at most {}",
                                           *count, activation_sockets_max));
    for (std::size_t i = 0; i != *count; ++i) {
        const int descriptor = first_descriptor + static_cast<int>(i);
        if (const std::string problem = problem_of(descriptor); not problem.empty()) {
            const std::string_view name = name_at(names, i);
            return std::unexpected(fmt::format("socket {} of the service manager{}: {}", i + 1,
                                               name.empty() ? "" : fmt::format(", {}", shown_value(name)),
                                               problem));
        }
        descriptors.push_back(descriptor);
    }
    return descriptors;
}

}  // namespace sluice::cli
