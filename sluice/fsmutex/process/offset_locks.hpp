#pragma once

#include <cstdint>

#include "sluice/base/result.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::fsmutex {

/// The offsets of a file as 2^63 locks, each of which is free, shared or exclusive for each
/// process, or each object of this class. For locks of ranges, which a shared_fs_mutex does not
/// have, and for flags that one process shows to all others.
///
/// Each object has one state of each offset: setting replaces it. Parts of a program that share one
/// object must combine their states themselves. The kernel stores the state (byte-range locks of an
/// open file description) and frees it when the object is destroyed or its process dies; a child
/// forked without exec keeps it alive. Calls do not wait and there is no order of grants; the file
/// stays empty. Hosts see each other where the file system's locks do. Thread safety: one thread at
/// a time. Allocates: nothing. Blocks: for the file system only. Complexity: a system call each,
/// linear in the number of ranges set in the file by all objects.
class offset_locks {
public:
    static constexpr std::uint64_t offset_max = INT64_MAX;

    enum class state : unsigned char { free, shared, exclusive };
    struct range {
        std::uint64_t first = 0;
        std::uint64_t last = 0;  // inclusive; at most offset_max, not before first (ENSURE)
    };

    /// An object without a file, which can only be assigned to.
    offset_locks() noexcept = default;
    /// Opens the file, or creates it if `how` allows it. Errors: as file_handle::open.
    [[nodiscard]] static result<offset_locks> open(const io::path_handle& base, io::path_view path,
                                                   io::creation how = io::creation::if_needed) noexcept;
    [[nodiscard]] bool is_open() const noexcept { return file_.is_valid(); }

    /// Sets the state of a range. Returns false, without a change, if it conflicts with another
    /// object. Without a conflict, and so for `free` and from exclusive to shared, it succeeds.
    /// Errors: ENOLCK if the kernel has no memory for more; EOPNOTSUPP and others of the file
    /// system.
    [[nodiscard]] result<bool> set(range which, state to) noexcept;
    /// Returns whether set() would succeed now. Changes nothing and does not conflict with others.
    /// Errors: as set().
    [[nodiscard]] result<bool> is_settable(range which, state to) const noexcept;

private:
    explicit offset_locks(io::file_handle file) noexcept : file_(std::move(file)) {}

    io::file_handle file_;
};

}  // namespace sluice::fsmutex
