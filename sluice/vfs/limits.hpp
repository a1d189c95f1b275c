#pragma once

#include <cerrno>
#include <cstddef>

namespace sluice::vfs::limits {

/// The longest name of one file, in UTF-16 units, and the longest path, in bytes; what the host takes may be
/// less.
inline constexpr std::size_t name_units_max = 255;
inline constexpr std::size_t path_bytes_max = 4095;

/// What the index of names may hold. A directory with more names than that is looked through every time.
inline constexpr std::size_t indexed_directories_max = 1024;
inline constexpr std::size_t indexed_names_max = 4U << 20;

/// The error of a call that may not reach the mount where its path leads. The caller repeats the call in
/// volume::crossing_domain(). A file system may return the same number (a FUSE server may return any), so the
/// repeated call may fail with it as well.
inline constexpr int crosses_mount = EMULTIHOP;

/// File systems that have a domain of their own; those beyond share one, whose calls are offloaded.
inline constexpr std::size_t domains_max = 256;

/// Names a listing fetches at a time.
inline constexpr std::size_t listed_names_per_batch = 128;
inline constexpr std::size_t listing_storage_bytes = 32U << 10;

/// The largest stream or attribute any Linux file system keeps (XATTR_SIZE_MAX); ext4 keeps about 4000 bytes
/// of all attributes of a file together.
inline constexpr std::size_t attribute_bytes_max = 64U << 10;

/// How often an attribute is read again because it has grown between the question for its size and the one
/// for its value.
inline constexpr unsigned attribute_reads_max = 8;

/// Directories one feed may watch, with all below the watched ones.
inline constexpr std::size_t watched_directories_max = 16U << 10;

/// Changes a feed queues before it delivers them: one event of the kernel is a change for each watch of its
/// directory.
inline constexpr std::size_t queued_changes_max = 8192;

/// How often the kernel's queue of changes is read before something else is done, about 500 changes each
/// time: programs that change names faster than that must not keep a loop.
inline constexpr unsigned change_reads_max = 128;

/// How often a look-up is begun again because names changed underneath.
inline constexpr unsigned lookup_attempts_max = 4;

}  // namespace sluice::vfs::limits
