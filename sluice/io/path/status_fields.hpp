#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/io/call/request.hpp"

namespace sluice::io {

enum class file_type : std::uint8_t {
    unknown,
    regular,
    directory,
    symlink,
    fifo,
    socket,
    block_device,
    character_device,
};

/// The fields to request from the file system. On a network file system each field may cost a round
/// trip. It is 90% of the cost of listing a directory, so request only the fields that are needed.
enum class stat_fields : std::uint32_t {
    none = 0,
    type = 0x1,
    permissions = 0x2,
    links = 0x4,
    owner = 0x18,
    accessed = 0x20,
    modified = 0x40,
    changed = 0x80,
    inode = 0x100,
    size = 0x200,
    allocated = 0x400,
    born = 0x800,
    direct_io = 0x2000,
    all = 0x2fff,
};
[[nodiscard]] constexpr stat_fields operator|(stat_fields a, stat_fields b) noexcept {
    return static_cast<stat_fields>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr stat_fields operator&(stat_fields a, stat_fields b) noexcept {
    return static_cast<stat_fields>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}

/// Properties of an inode beyond permissions. Only those in `supported_attributes` are valid.
enum class file_attributes : std::uint64_t {
    none = 0,
    compressed = 0x4,
    immutable = 0x10,
    append_only = 0x20,
    no_dump = 0x40,
    encrypted = 0x800,
    automount = 0x1000,
    mount_root = 0x2000,
    verity = 0x10'0000,
    direct_access = 0x20'0000,
};
[[nodiscard]] constexpr bool has(file_attributes set, file_attributes wanted) noexcept {
    return (static_cast<std::uint64_t>(set) & static_cast<std::uint64_t>(wanted)) != 0;
}

/// The known properties of an inode. Only the members whose field is in `known` were filled by the
/// file system; `inode`, `device` and `block_bytes` always are.
struct file_status {
    using time_point =
        std::chrono::system_clock::time_point;  // nanoseconds; times beyond 1677-2262 are clamped
    static_assert(time_point::period::den == 1'000'000'000);

    stat_fields known = stat_fields::none;
    file_type type = file_type::unknown;
    std::uint16_t permission_bits = 0;  // the lower twelve: rwxrwxrwx and set-id, sticky
    std::uint32_t links = 0;
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;
    std::uint32_t block_bytes = 0;  // preferred size of I/O
    std::uint64_t inode = 0;
    std::uint64_t device = 0;
    extent_type size_bytes = 0;
    extent_type allocated_bytes = 0;
    time_point accessed = {};
    time_point modified = {};
    time_point changed = {};              // change of the inode: content, owner, permissions, links
    std::optional<time_point> born = {};  // not every file system keeps it
    std::uint32_t direct_memory_alignment_bytes = 0;  // 0: no direct I/O, or not known
    std::uint32_t direct_offset_alignment_bytes = 0;
    file_attributes attributes = file_attributes::none;
    file_attributes supported_attributes = file_attributes::none;

    [[nodiscard]] constexpr bool knows(stat_fields field) const noexcept { return (known & field) == field; }
    /// Returns whether both describe the same inode. An inode number is reused once its file is
    /// gone, so the result is valid only while one of the two is held open.
    [[nodiscard]] constexpr bool is_same_inode(const file_status& other) const noexcept {
        return inode == other.inode and device == other.device;
    }
};

}  // namespace sluice::io
