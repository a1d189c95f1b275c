#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::smb::server {

/// The path of the data of a READ from the file to the socket (docs/algorithms/data-path.md).
enum class read_path : std::uint8_t {
    copied,     ///< read into a buffer, sent from it, many replies in one call
    signed_,    ///< read into a buffer, signed, sent from it
    encrypted,  ///< read into a buffer, encrypted into another, sent from that
    spliced,    ///< sent from the kernel's cache of the file, never in our memory
};
inline constexpr std::size_t read_paths = 4;

/// As counters show them.
[[nodiscard]] constexpr std::string_view name_of(read_path path) noexcept {
    constexpr std::array<std::string_view, read_paths> names{"copied", "signed", "encrypted", "spliced"};
    return names[static_cast<std::size_t>(path)];
}

/// The facts on which the choice depends.
struct read_facts {
    bool is_signed = false;     // the reply, alone
    bool is_encrypted = false;  // the frame it goes in
    bool is_compounded = false;
    bool is_compressed = false;  // unless it turns out that little is saved
    bool has_host_file = false;  // it, or an image it is in, whose pages the kernel can send
    std::size_t bytes = 0;
};

/// The smallest reply that is sent from the page cache. Below this size, two calls for each reply
/// cost more than to copy several replies and send them by one call.
inline constexpr std::size_t spliced_bytes_min = 64U << 10;

/// Returns the path of a READ: that of the first line of the table that matches.
///
/// Spliced replies show the file as it is when the client receives them, so they are only for
/// clients that requested neither signing nor encryption. Signed data must not change between
/// signature and socket, so they are copied first.
[[nodiscard]] constexpr read_path path_of(const read_facts& facts) noexcept {
    // clang-format off
    if (facts.is_encrypted)                                         return read_path::encrypted;
    if (facts.is_signed)                                            return read_path::signed_;
    if (facts.is_compounded or facts.is_compressed)                 return read_path::copied;
    if (facts.bytes < spliced_bytes_min)                            return read_path::copied;
    if (facts.has_host_file)                                        return read_path::spliced;
    return read_path::copied;
    // clang-format on
}

}  // namespace sluice::smb::server
