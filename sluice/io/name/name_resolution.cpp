#include "sluice/io/name/name_resolution.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace sluice::io {
namespace {

[[nodiscard]] int code_of(int resolver_error) noexcept {
    switch (resolver_error) {
        case EAI_AGAIN:
            return EAGAIN;
        case EAI_MEMORY:
            return ENOMEM;
        case EAI_SYSTEM:
            return errno;
        case EAI_FAIL:
            return EIO;
        default:
            return ENOENT;
    }
}

}  // namespace

result<std::vector<socket_address>> resolve(const std::string& host, std::uint16_t port) noexcept {
    if (const auto numeric = socket_address::ip(host, port); numeric) return std::vector{*numeric};
    // The C functions would use only a part of such a name.
    if (host.find('\0') != std::string::npos) return failure(error::with_path(EINVAL, "look up", host));
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failed != 0) return failure(error::with_path(code_of(failed), "look up", host));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
    std::vector<socket_address> addresses;
    for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
        if (each->ai_addrlen > socket_address::capacity) continue;
        socket_address& made = addresses.emplace_back();
        std::memcpy(made.data(), each->ai_addr, each->ai_addrlen);
        made.resize(each->ai_addrlen);
    }
    return addresses;
}

}  // namespace sluice::io
