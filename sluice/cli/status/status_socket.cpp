#include "sluice/cli/status/status_socket.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t answer_bytes_max = 256U << 20;

// Checks that no other user can have created a socket in it: a directory in /tmp could belong to
// any user.
[[nodiscard]] bool is_own_directory(const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 and S_ISDIR(status.st_mode) and
           status.st_uid == ::geteuid() and (status.st_mode & 077) == 0;
}

}  // namespace

std::string status_directory() {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr and *runtime == '/') return std::string(runtime) + "/sluice";
    return ::geteuid() == 0 ? "/run/sluice" : fmt::format("/tmp/sluice-{}", ::geteuid());
}

result<void> make_status_directory() {
    const std::string path = status_directory();
    if (::mkdir(path.c_str(), 0700) != 0 and errno != EEXIST)
        return failure(error::with_path(errno, "create directory", path));
    if (not is_own_directory(path))
        return failure(error::with_path(EPERM, "use a directory that other users can change", path));
    return {};
}

std::string status_socket_path(std::uint16_t port) {
    return fmt::format("{}/{}.sock", status_directory(), port);
}

std::string second_status_socket_path(std::uint16_t port) {
    return fmt::format("{}/{}-{}.sock", status_directory(), port, ::getpid());
}

std::vector<std::string> status_sockets() {
    std::vector<std::string> found;
    const std::string directory = status_directory();
    if (not is_own_directory(directory)) return found;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable))
        if (entry.path().extension() == ".sock") found.push_back(entry.path().string());
    std::ranges::sort(found);
    return found;
}

result<std::string> ask_server(const std::string& path, const std::string& question,
                               std::chrono::seconds within) {
    const auto address = io::socket_address::local(path);
    if (not address) return failure(address.error());
    const deadline until(std::chrono::steady_clock::now() + within);
    auto socket = io::socket_handle::connect(*address, {}, until);
    if (not socket) return failure(socket.error());
    const io::io_request<io::const_bytes_type> asked{.buffers = std::as_bytes(std::span(question))};
    if (const auto sent = socket->write(asked, until); not sent) return failure(sent.error());
    std::string answer;
    std::array<std::byte, 65'536> piece;
    while (answer.size() < answer_bytes_max) {
        const auto got = socket->read(io::io_request<io::bytes_type>{.buffers = piece}, until);
        if (not got) return failure(got.error());
        if (got.bytes_transferred() == 0) return answer;
        answer.append(reinterpret_cast<const char*>(got->data()), got->size());
    }
    return failure({EFBIG, "read the reply"});
}

}  // namespace sluice::cli
