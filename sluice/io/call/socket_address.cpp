#include "sluice/io/call/socket_address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

static_assert(sizeof(sockaddr_storage) == socket_address::capacity);

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::string_view unix_prefix = "unix:";

// The C functions want a terminated string; no numeric address is as long as this.
class terminated {
public:
    explicit terminated(std::string_view text) noexcept : fits_(text.size() < bytes_.size()) {
        if (fits_) std::copy(text.begin(), text.end(), bytes_.begin());
        // A NUL inside would end the string early and hide what follows it.
        if (text.find('\0') != std::string_view::npos) fits_ = false;
    }
    [[nodiscard]] bool fits() const noexcept { return fits_; }
    [[nodiscard]] const char* text() const noexcept { return bytes_.data(); }

private:
    std::array<char, INET6_ADDRSTRLEN + IF_NAMESIZE> bytes_{};
    bool fits_;
};

template <class Native>
socket_address from_native(const Native& native) noexcept {
    socket_address made;
    std::memcpy(made.data(), &native, sizeof native);
    made.resize(sizeof native);
    return made;
}

// A copy: the bytes are raw, and reading them through another type is undefined.
template <class Native>
Native to_native(const socket_address& address) noexcept {
    Native native{};
    std::memcpy(&native, address.data(), std::min<std::size_t>(sizeof native, address.size()));
    return native;
}

sockaddr_in make_v4(std::uint32_t host_order, std::uint16_t port) noexcept {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(port);
    made.sin_addr.s_addr = htonl(host_order);
    return made;
}

sockaddr_in6 make_v6(const in6_addr& address, std::uint16_t port) noexcept {
    sockaddr_in6 made{};
    made.sin6_family = AF_INET6;
    made.sin6_port = htons(port);
    made.sin6_addr = address;
    return made;
}

template <class Number>
bool parse_number(std::string_view text, Number& into) noexcept {
    const char* const end = text.data() + text.size();
    const auto [stopped, failed] = std::from_chars(text.data(), end, into);
    return failed == std::errc{} and stopped == end;
}

// Interfaces by name or number. 0 is no interface.
std::uint32_t parse_scope(std::string_view text) noexcept {
    std::uint32_t number = 0;
    if (parse_number(text, number)) return number;
    const terminated name(text);
    return name.fits() and text.size() < IF_NAMESIZE ? ::if_nametoindex(name.text()) : 0;
}

// Writes into memory known to be large enough for any address.
class writer {
public:
    explicit writer(std::span<char> memory) noexcept : memory_(memory) {}
    writer& operator<<(std::string_view text) noexcept {
        ENSURE(used_ <= memory_.size(), "written beyond the memory");
        const std::size_t fitting = std::min(text.size(), memory_.size() - used_);
        std::copy_n(text.begin(), fitting, memory_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ += fitting;
        return *this;
    }
    writer& operator<<(std::uint32_t number) noexcept {
        std::array<char, 16> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        return *this << std::string_view(digits.data(), end);
    }
    [[nodiscard]] std::string_view written() const noexcept { return {memory_.data(), used_}; }

private:
    std::span<char> memory_;
    std::size_t used_ = 0;
};

void write_v6(writer& out, const sockaddr_in6& native) noexcept {
    std::array<char, INET6_ADDRSTRLEN> digits{};
    (void)::inet_ntop(AF_INET6, &native.sin6_addr, digits.data(), digits.size());
    out << "[" << digits.data();
    if (native.sin6_scope_id != 0) {
        std::array<char, IF_NAMESIZE> name{};
        out << "%";
        if (::if_indextoname(native.sin6_scope_id, name.data()) != nullptr) {
            out << name.data();
        } else {
            out << native.sin6_scope_id;
        }
    }
    out << "]:" << std::uint32_t{ntohs(native.sin6_port)};
}

}  // namespace

result<socket_address> socket_address::ip(std::string_view address, std::uint16_t port) noexcept {
    const auto malformed = failure({EINVAL, "parse an IP address"});
    const std::size_t percent = address.find('%');
    const terminated digits(address.substr(0, percent));
    if (not digits.fits()) return malformed;

    in_addr v4{};
    if (percent == std::string_view::npos and ::inet_pton(AF_INET, digits.text(), &v4) == 1) {
        return from_native(make_v4(ntohl(v4.s_addr), port));
    }
    in6_addr v6{};
    if (::inet_pton(AF_INET6, digits.text(), &v6) != 1) return malformed;
    sockaddr_in6 native = make_v6(v6, port);
    if (percent != std::string_view::npos) {
        native.sin6_scope_id = parse_scope(address.substr(percent + 1));
        if (native.sin6_scope_id == 0) return malformed;
    }
    return from_native(native);
}

socket_address socket_address::any_v4(std::uint16_t port) noexcept {
    return from_native(make_v4(INADDR_ANY, port));
}

socket_address socket_address::any_v6(std::uint16_t port) noexcept {
    return from_native(make_v6(in6addr_any, port));
}

socket_address socket_address::loopback_v4(std::uint16_t port) noexcept {
    return from_native(make_v4(INADDR_LOOPBACK, port));
}

socket_address socket_address::loopback_v6(std::uint16_t port) noexcept {
    return from_native(make_v6(in6addr_loopback, port));
}

result<socket_address> socket_address::local(std::string_view path) noexcept {
    if (path.size() > path_bytes_max) {
        return failure(error::with_path(ENAMETOOLONG, "name a Unix socket", path));
    }
    const bool is_abstract = path.starts_with('\0');
    if (path.empty() or (not is_abstract and path.find('\0') != std::string_view::npos)) {
        return failure({EINVAL, "name a Unix socket"});
    }
    sockaddr_un native{};
    native.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), native.sun_path);
    socket_address made = from_native(native);
    // Of an abstract name the kernel takes every byte it is given; a path has its terminator.
    made.resize(static_cast<std::uint32_t>(path_offset + path.size() + (is_abstract ? 0 : 1)));
    return made;
}

result<socket_address> socket_address::parse(std::string_view text) noexcept {
    const auto malformed = failure({EINVAL, "parse a socket address"});
    if (text.starts_with(unix_prefix)) {
        const std::string_view path = text.substr(unix_prefix.size());
        if (not path.starts_with('@')) return local(path);
        std::array<char, path_bytes_max + 1> name{};
        if (path.size() > path_bytes_max) return failure({ENAMETOOLONG, "parse a socket address"});
        std::copy(path.begin() + 1, path.end(), name.begin() + 1);
        return local({name.data(), path.size()});
    }
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return malformed;
    std::uint16_t port_number = 0;
    if (not parse_number(text.substr(colon + 1), port_number)) return malformed;
    std::string_view host = text.substr(0, colon);
    const bool is_bracketed = host.starts_with('[') and host.ends_with(']');
    if (is_bracketed) host = host.substr(1, host.size() - 2);
    auto parsed = ip(host, port_number);
    // Without brackets the last group of an IPv6 address would pass for the port.
    if (parsed and is_bracketed != (parsed->family() == address_family::ip_v6)) return malformed;
    return parsed;
}

address_family socket_address::family() const noexcept {
    if (size_ < sizeof(sa_family_t)) return address_family::unspecified;
    switch (to_native<sockaddr>(*this).sa_family) {
        case AF_INET:
            return address_family::ip_v4;
        case AF_INET6:
            return address_family::ip_v6;
        case AF_UNIX:
            return address_family::local;
        default:
            return address_family::unspecified;
    }
}

std::uint16_t socket_address::port() const noexcept {
    switch (family()) {
        case address_family::ip_v4:
            return ntohs(to_native<sockaddr_in>(*this).sin_port);
        case address_family::ip_v6:
            return ntohs(to_native<sockaddr_in6>(*this).sin6_port);
        default:
            return 0;
    }
}

std::array<std::byte, 16> socket_address::ip_bytes() const noexcept {
    std::array<std::byte, 16> bytes{};
    if (family() == address_family::ip_v6) {
        const auto native = to_native<sockaddr_in6>(*this);
        std::memcpy(bytes.data(), &native.sin6_addr, bytes.size());
    } else if (family() == address_family::ip_v4) {
        const auto native = to_native<sockaddr_in>(*this);
        bytes[10] = bytes[11] = std::byte{0xff};
        std::memcpy(bytes.data() + 12, &native.sin_addr, 4);
    }
    return bytes;
}

std::string_view socket_address::local_name() const noexcept {
    if (family() != address_family::local or size_ <= path_offset) return {};
    const std::string_view name(reinterpret_cast<const char*>(bytes_.data()) + path_offset,
                                size_ - path_offset);
    if (name.starts_with('\0')) return name;
    return name.substr(0, name.find('\0'));  // the kernel counts the terminator on some paths only
}

std::string_view socket_address::text_into(std::span<char, text_bytes_max> memory) const noexcept {
    writer out(memory);
    switch (family()) {
        case address_family::ip_v4: {
            const auto native = to_native<sockaddr_in>(*this);
            std::array<char, INET_ADDRSTRLEN> digits{};
            (void)::inet_ntop(AF_INET, &native.sin_addr, digits.data(), digits.size());
            out << digits.data() << ":" << std::uint32_t{ntohs(native.sin_port)};
            break;
        }
        case address_family::ip_v6:
            write_v6(out, to_native<sockaddr_in6>(*this));
            break;
        case address_family::local:
            out << unix_prefix << local_name();
            std::replace(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(out.written().size()),
                         '\0', '@');
            break;
        case address_family::unspecified:
            out << "-";
            break;
    }
    return out.written();
}

std::string socket_address::text() const {
    std::array<char, text_bytes_max> memory{};
    return std::string(text_into(memory));
}

bool socket_address::is_same_as(const socket_address& other) const noexcept {
    if (family() != other.family() or port() != other.port()) return false;
    switch (family()) {
        case address_family::ip_v4:
            return to_native<sockaddr_in>(*this).sin_addr.s_addr ==
                   to_native<sockaddr_in>(other).sin_addr.s_addr;
        case address_family::ip_v6: {
            const auto a = to_native<sockaddr_in6>(*this);
            const auto b = to_native<sockaddr_in6>(other);
            return a.sin6_scope_id == b.sin6_scope_id and
                   std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0;
        }
        case address_family::local:
            return local_name() == other.local_name();
        case address_family::unspecified:
            return true;
    }
    ENSURE(false, "family() returns no other");
    return false;
}

}  // namespace sluice::io
