#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/result.hpp"

namespace sluice::io {

enum class address_family : std::uint8_t { unspecified, ip_v4, ip_v6, local };

/// The address of a socket: an IPv4 or IPv6 address and port, or the name of a Unix socket.
///
/// Stored in the kernel's own form, so that system calls need no conversion. Thread safety: a
/// value. Allocates: only text().
class socket_address {
public:
    static constexpr std::uint32_t capacity = 128;      // sockaddr_storage
    static constexpr std::size_t text_bytes_max = 128;  // no address has a longer text

    socket_address() noexcept = default;

    /// "127.0.0.1", "::1", "fe80::1%eth0" (a scope by name or number).
    /// Errors: EINVAL if it is not a numeric address; names are not looked up.
    [[nodiscard]] static result<socket_address> ip(std::string_view address, std::uint16_t port) noexcept;
    [[nodiscard]] static socket_address any_v4(std::uint16_t port) noexcept;
    [[nodiscard]] static socket_address any_v6(std::uint16_t port) noexcept;
    [[nodiscard]] static socket_address loopback_v4(std::uint16_t port) noexcept;
    [[nodiscard]] static socket_address loopback_v6(std::uint16_t port) noexcept;

    /// A Unix socket at a path; with a leading NUL, in the abstract name space.
    /// Errors: ENAMETOOLONG beyond 107 bytes; EINVAL if it is empty, or a path with a NUL in it.
    [[nodiscard]] static result<socket_address> local(std::string_view path) noexcept;

    /// Parses the output of text(): "127.0.0.1:445", "[fe80::1%eth0]:445", "unix:/run/x",
    /// "unix:@abstract". A path that begins with @ is written "unix:./@x". Errors: EINVAL;
    /// ENAMETOOLONG.
    [[nodiscard]] static result<socket_address> parse(std::string_view text) noexcept;

    [[nodiscard]] address_family family() const noexcept;
    /// Returns the port; 0 for families without ports.
    [[nodiscard]] std::uint16_t port() const noexcept;
    /// Returns the IPv6 address; an IPv4 address mapped to IPv6; all zeros for other families.
    [[nodiscard]] std::array<std::byte, 16> ip_bytes() const noexcept;
    /// Returns the path of a Unix socket, or its abstract name with the leading NUL; empty if it
    /// has none, and for other families. Borrows from the address.
    [[nodiscard]] std::string_view local_name() const noexcept;

    /// "127.0.0.1:445", "[::1]:445", "unix:/run/x", "unix:@abstract", "unix:" (a socket
    /// without a name), "-".
    [[nodiscard]] std::string text() const;
    /// The same, into memory of the caller: for messages on paths that must not allocate.
    [[nodiscard]] std::string_view text_into(std::span<char, text_bytes_max> memory) const noexcept;

    [[nodiscard]] void* data() noexcept { return bytes_.data(); }
    [[nodiscard]] const void* data() const noexcept { return bytes_.data(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

    /// Sets how much of the memory at data() a system call has filled.
    void resize(std::uint32_t size) noexcept { size_ = size < capacity ? size : capacity; }

    /// Returns whether both are the same endpoint.
    [[nodiscard]] friend bool operator==(const socket_address& a, const socket_address& b) noexcept {
        return a.is_same_as(b);
    }

private:
    [[nodiscard]] bool is_same_as(const socket_address& other) const noexcept;

    alignas(8) std::array<std::byte, capacity> bytes_{};
    std::uint32_t size_ = 0;
};

}  // namespace sluice::io
