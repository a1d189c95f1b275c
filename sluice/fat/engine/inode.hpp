#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/engine/allocator.hpp"
#include "sluice/fat/engine/cluster_chain.hpp"
#include "sluice/fat/engine/directory.hpp"
#include "sluice/sync/range_lock.hpp"

// Internal to the file system: a file or directory in use, or recently used.

namespace sluice::fat {

struct inode;
using inode_ptr = std::shared_ptr<inode>;

/// Invariants:
///   1. There is one inode for each id: two lookups of a file return the same inode.
///   2. parent is null for the root only; a parent outlives its children.
///   3. valid() <= size() <= clusters of the chain, unless the volume is damaged. Bytes from
///      valid() on read as zeros regardless of the content of the device. Both change only while
///      the ranges from the lesser of the old and new values to the end are locked. So a thread
///      with a lock on any range can read, without mutex, the values that hold for that range.
struct inode : std::enable_shared_from_this<inode> {
    inode(std::uint64_t number, bool is_one, cluster_chain lies)
        : id(number), is_directory(is_one), chain(std::move(lies)) {}

    [[nodiscard]] std::uint64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t valid() const noexcept { return valid_.load(std::memory_order_relaxed); }
    struct lengths {
        std::uint64_t size = 0;
        std::uint64_t valid = 0;
    };
    void set(lengths to) noexcept {
        ENSURE(to.valid <= to.size, "invariant 3");
        size_.store(to.size, std::memory_order_relaxed);
        valid_.store(to.valid, std::memory_order_relaxed);
    }

    const std::uint64_t id;
    const bool is_directory;

    // Guarded by file_system::names_.
    inode_ptr parent;
    std::uint32_t slot = 0;
    name_text name;
    std::atomic<bool> is_removed = false;  // may be read without names_
    std::size_t handles = 0;
    std::unique_ptr<directory> content;  // for a directory that was opened or searched

    // Guarded by mutex; a shared lock is sufficient for reads.
    std::shared_mutex mutex;
    directory_entry entry;  // except size and first cluster, which are in:
    cluster_chain chain;
    std::uint64_t expected_bytes = 0;
    std::optional<std::chrono::system_clock::time_point> changed;  // last change while in use
    std::optional<std::chrono::system_clock::time_point> written;  // last write, not in `entry` yet
    std::size_t cuts = 0;    // commits to complete until the chain in the table
                             // is as short as `chain`
    bool is_queued = false;  // in file_system::dirty_inodes_
    std::optional<reservation> reserved;

    // These have their own synchronisation. Locks on ranges are acquired before mutex.
    sync::range_lock ranges;

private:
    // Relaxed: locks on ranges order the accesses.
    std::atomic<std::uint64_t> size_ = 0;
    std::atomic<std::uint64_t> valid_ = 0;
};

}  // namespace sluice::fat
