#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::vfs::limits {

/// The longest name of one file, in UTF-16 units, and the longest path, in bytes. The host's limits
/// may be lower.
inline constexpr std::size_t name_units_max = 255;
inline constexpr std::size_t path_bytes_max = 4095;

/// The limits of the index of names. A directory with more names is scanned for every lookup.
inline constexpr std::size_t indexed_directories_max = 1024;
inline constexpr std::size_t indexed_names_max = 4U << 20;

/// The limits of the tables of short names. Files of a directory with more of them have none,
/// unless it is a FAT volume's. A table is computed within one call, often after a change of the
/// directory, so the limit bounds that call to some milliseconds.
inline constexpr std::size_t short_named_files_max = 10'000;
inline constexpr std::size_t short_named_files_held_max = 400'000;
inline constexpr std::size_t short_name_directories_max = 64;
/// The number of files whose age is queried for one table; further ones choose in order of names.
inline constexpr unsigned short_name_births_max = 1000;

/// The error of a call that may not cross the mount to which its path leads. The caller repeats the
/// call in volume::crossing_domain(). A file system may return the same number (a FUSE server may
/// return any), so the repeated call may fail with it, too.
inline constexpr int crosses_mount = EMULTIHOP;

/// The number of names that a listing fetches in one batch.
inline constexpr std::size_t listed_names_per_batch = 128;
inline constexpr std::size_t listing_storage_bytes = 32U << 10;

/// The largest attribute of any Linux file system (XATTR_SIZE_MAX). ext4 stores about
/// 4000 bytes for all attributes of a file together.
inline constexpr std::size_t attribute_bytes_max = 64U << 10;

/// The largest stream that is stored in an attribute of its file. It leaves space on ext4 for the
/// other attributes, and most streams are far smaller.
inline constexpr std::size_t inline_stream_bytes_max = 2048;

/// The streams of a file that are not attributes.
inline constexpr std::size_t large_streams_per_file_max = 1024;

/// The number of attempts to read an attribute that grows between the calls for its size and for
/// its value.
inline constexpr unsigned attribute_reads_max = 8;

/// The number of attempts to store a change time, whose attribute holds for a change time of the
/// host that is known only after it is stored.
inline constexpr unsigned change_time_stores_max = 8;

/// The number of directories that one feed may watch, including those below the watched ones.
inline constexpr std::size_t watched_directories_max = 16U << 10;

/// The number of changes that a feed queues before it delivers them. One event of the kernel is a
/// change for each watch of its directory.
inline constexpr std::size_t queued_changes_max = 8192;

/// The number of consecutive reads of the kernel's queue of changes, about 500 changes each.
/// Programs that change names faster than that must not block a loop.
inline constexpr unsigned change_reads_max = 128;

/// The number of snapshots of a directory that are listed: the latest ones. A reply with more would
/// not fit into 64 KiB, which is what clients have room for.
inline constexpr std::size_t snapshots_listed_max = 1024;
/// The number of names in a directory of snapshots, whether they match the pattern or not.
inline constexpr std::size_t snapshot_names_max = 131'072;

/// The patterns for hidden and for rejected names of one volume, and the length of each. Every
/// lookup compares its names with all of them.
inline constexpr std::size_t name_patterns_max = 64;
inline constexpr std::size_t name_pattern_bytes_max = 255;

/// The directories above a file that are created again in a recycle bin, and the names that are
/// tried for it before one with the time.
inline constexpr unsigned recycled_depth_max = 32;
inline constexpr unsigned recycled_versions_tried_max = 3;

/// The attempts to move a file to a directory of a recycle bin that is removed, because it was
/// empty, at the same time.
inline constexpr unsigned recycle_attempts_max = 16;

/// A part of a pass over a recycle bin ends after this number of names, or after this time.
inline constexpr std::uint64_t swept_entries_per_part = 1000;
inline constexpr std::chrono::milliseconds sweep_part_max{20};

/// The owners of files whose sums a pass keeps. Files of further owners do not count.
inline constexpr std::size_t swept_owners_max = 65'536;

/// The number of attempts of a lookup whose names change at the same time.
inline constexpr unsigned lookup_attempts_max = 4;

}  // namespace sluice::vfs::limits
