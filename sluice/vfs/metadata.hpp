#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

// The metadata of a file that a server needs, independent of its file system.

namespace sluice::vfs {

enum class node_kind : std::uint8_t {
    file,
    directory,
    symlink,
    other,  ///< a fifo or a device: can be listed and removed, but not opened for data
};

/// The attributes of FAT that Unix does not have. The values are FAT's and those of
/// FILE_ATTRIBUTE_*.
enum class dos_attributes : std::uint8_t {
    none = 0,
    read_only = 0x01,
    hidden = 0x02,
    system = 0x04,
    archive = 0x20,
};
[[nodiscard]] constexpr dos_attributes operator|(dos_attributes a, dos_attributes b) noexcept {
    return static_cast<dos_attributes>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr dos_attributes operator&(dos_attributes a, dos_attributes b) noexcept {
    return static_cast<dos_attributes>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr bool has(dos_attributes set, dos_attributes wanted) noexcept {
    return (set & wanted) != dos_attributes::none;
}

/// The identity of an open file of a server, independent of its name and share. Opens with the same
/// key share one file. A stream has its file's key and its own number.
struct file_key {
    std::uint64_t image = 0;   // 0: a file of the host; otherwise the number of
                               // the disk-image engine
    std::uint64_t volume = 0;  // on the host, the device; copies of an image have the
                               // same serial number here
    std::uint64_t file = 0;
    std::uint64_t stream = 0;  // 0: the unnamed stream; otherwise a hash of the folded stream name

    /// Returns the key of the file that a stream belongs to.
    [[nodiscard]] constexpr file_key whole_file() const noexcept {
        return {.image = image, .volume = volume, .file = file, .stream = 0};
    }
    [[nodiscard]] friend constexpr auto operator<=>(const file_key&, const file_key&) noexcept = default;
};

/// A time in steps of 100 ns, the unit of Windows, which also has its range: the system's clock
/// counts nanoseconds, and ends in 2262.
using time_point = std::chrono::sys_time<std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>>;

/// Rounds a time of the system's clock down, except the first ones of that clock, so that each
/// result can be converted back.
[[nodiscard]] constexpr time_point time_of(std::chrono::system_clock::time_point when) noexcept {
    constexpr auto first =
        std::chrono::ceil<time_point::duration>(std::chrono::system_clock::time_point::min());
    return std::max(first, std::chrono::floor<time_point::duration>(when));
}
/// Converts a time to that of the system's clock. A time outside its range becomes its nearest
/// limit.
[[nodiscard]] constexpr std::chrono::system_clock::time_point system_time_of(time_point when) noexcept {
    using clock_time = std::chrono::system_clock::time_point;
    constexpr auto first = std::chrono::ceil<time_point::duration>(clock_time::min());
    constexpr auto last = std::chrono::floor<time_point::duration>(clock_time::max());
    return std::clamp<time_point>(when, first, last);
}

struct metadata {
    node_kind kind = node_kind::file;
    std::uint64_t id = 0;      // stable for the life of the file, across renames;
                               // unique in its volume
    std::uint64_t volume = 0;  // the id of its file system
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint32_t links = 1;
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;
    std::uint16_t permission_bits = 0;  // Unix rwxrwxrwx and set-id, sticky
    dos_attributes dos = dos_attributes::none;
    bool is_sparse = false;
    // Marked as such; new names inherit it from their directory.
    bool is_compressed = false;
    std::optional<bool> has_security{};  // whether a security descriptor is stored, if known
    time_point born{};
    time_point accessed{};  // not before `modified`, unless a client has set it
    time_point modified{};
    time_point changed{};  // time of the last change of content, name, owner or attributes
};

/// The changes to a file's metadata. Absent fields are not changed.
struct metadata_change {
    std::optional<time_point> born{};
    std::optional<time_point> accessed{};
    std::optional<time_point> modified{};
    /// The time to report as that of the last change until the next change. A volume that cannot
    /// store it ignores it.
    std::optional<time_point> changed{};
    std::optional<dos_attributes> dos{};
    std::optional<bool> is_sparse{};
    std::optional<bool> is_compressed{};  // a stream changes its file

    [[nodiscard]] constexpr bool is_empty() const noexcept {
        return not born and not accessed and not modified and not changed and not dos and not is_sparse and
               not is_compressed;
    }
};

}  // namespace sluice::vfs

template <>
struct std::hash<sluice::vfs::file_key> {
    [[nodiscard]] std::size_t operator()(const sluice::vfs::file_key& key) const noexcept {
        // The factors are odd constants, so that neighbouring inodes do not share buckets with
        // their streams.
        return static_cast<std::size_t>(key.file * 0x9e37'79b9'7f4a'7c15ULL ^
                                        key.stream * 0xc2b2'ae3d'27d4'eb4fULL ^
                                        (key.volume ^ key.image) * 0x1656'67b1'9e37'79f9ULL);
    }
};
