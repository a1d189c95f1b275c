#pragma once

#include <cstdint>

#include "sluice/base/result.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::fsmutex {

/// The offsets of a file as 2^63 things that each process, or each object of this class, has free, shared or
/// exclusive: for ranges, which a shared_fs_mutex does not know, and for signs that one shows all others.
///
/// Each object has one state of each offset: setting replaces it. What several parts of a program want of one
/// object they must add up themselves. The kernel keeps the state (byte-range locks of an open file
/// description) and frees it when the object goes or its process dies; a child forked without exec keeps it
/// alive. Nothing waits, nothing is granted in order; the file stays empty. Hosts see each other where the
/// file system's locks do. Thread safety: one thread at a time. Allocates: nothing. Blocks: for the file
/// system only. Complexity: a system call each, linear in the ranges that all have set in the file.
class offset_locks {
public:
    static constexpr std::uint64_t offset_max = INT64_MAX;

    enum class state : unsigned char { free, shared, exclusive };
    struct range {
        std::uint64_t first = 0;
        std::uint64_t last = 0;  // belongs to it; at most offset_max, not before first (ENSURE)
    };

    /// Of nothing: only to be assigned to.
    offset_locks() noexcept = default;
    /// Opens the file, or creates it, if `how` says so. Errors: as file_handle::open.
    [[nodiscard]] static result<offset_locks> open(const io::path_handle& base, io::path_view path,
                                                   io::creation how = io::creation::if_needed) noexcept;
    [[nodiscard]] bool is_open() const noexcept { return file_.is_valid(); }

    /// Whether it could be set: false if others have something in the way, and then nothing has changed.
    /// Where others have nothing in the way, and so for `free` and from exclusive to shared, it succeeds.
    /// Errors: ENOLCK if the kernel has no memory for more; EOPNOTSUPP and others of the file system.
    [[nodiscard]] result<bool> set(range which, state to) noexcept;
    /// Whether set() would be granted now; changes nothing, and is in nobody's way. Errors: as set().
    [[nodiscard]] result<bool> is_settable(range which, state to) const noexcept;

private:
    explicit offset_locks(io::file_handle file) noexcept : file_(std::move(file)) {}

    io::file_handle file_;
};

}  // namespace sluice::fsmutex
