#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

// What a server needs to know of a file, whatever file system it lies on.

namespace sluice::vfs {

enum class node_kind : std::uint8_t {
    file,
    directory,
    symlink,
    other,  ///< a fifo, a device: can be seen and removed, not opened for data
};

/// The attributes FAT has and Unix lacks; the values are FAT's and those of FILE_ATTRIBUTE_*.
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

/// Identifies one file of a server while it is open, whatever it is called and through whatever share: opens
/// with the same key share one file. A stream of a file has the file's key and a number of its own.
struct file_key {
    std::uint64_t image = 0;   // 0: a file of the host; else the number of the disk-image engine
    std::uint64_t volume = 0;  // on the host, the device; copies of an image have the same serial number here
    std::uint64_t file = 0;
    std::uint64_t stream = 0;  // 0: the unnamed stream; else a hash of the folded stream name

    /// The key of the file that a stream belongs to.
    [[nodiscard]] constexpr file_key whole_file() const noexcept {
        return {.image = image, .volume = volume, .file = file, .stream = 0};
    }
    [[nodiscard]] friend constexpr auto operator<=>(const file_key&, const file_key&) noexcept = default;
};

using time_point = std::chrono::system_clock::time_point;

struct metadata {
    node_kind kind = node_kind::file;
    std::uint64_t id = 0;      // stable for the life of the file, across renames; unique in its volume
    std::uint64_t volume = 0;  // of the file system it lies on
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint32_t links = 1;
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;
    std::uint16_t permission_bits = 0;  // Unix rwxrwxrwx and set-id, sticky
    dos_attributes dos = dos_attributes::none;
    bool is_sparse = false;
    std::optional<bool> has_security{};  // whether a security descriptor is stored, if that is known
    time_point born{};
    time_point accessed{};
    time_point modified{};
    time_point changed{};  // content, name, owner or attributes
};

/// What is to be changed of a file; what is not given stays.
struct metadata_change {
    std::optional<time_point> born{};
    std::optional<time_point> accessed{};
    std::optional<time_point> modified{};
    std::optional<dos_attributes> dos{};
    std::optional<bool> is_sparse{};

    [[nodiscard]] constexpr bool is_empty() const noexcept {
        return not born and not accessed and not modified and not dos and not is_sparse;
    }
};

}  // namespace sluice::vfs

template <>
struct std::hash<sluice::vfs::file_key> {
    [[nodiscard]] std::size_t operator()(const sluice::vfs::file_key& key) const noexcept {
        // Multiplied by odd constants, so that neighbouring inodes do not share buckets with their streams.
        return static_cast<std::size_t>(key.file * 0x9e37'79b9'7f4a'7c15ULL ^
                                        key.stream * 0xc2b2'ae3d'27d4'eb4fULL ^
                                        (key.volume ^ key.image) * 0x1656'67b1'9e37'79f9ULL);
    }
};
