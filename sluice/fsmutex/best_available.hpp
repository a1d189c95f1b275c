#pragma once

#include <memory>
#include <string>

#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

/// An algorithm and the reason for its choice.
struct algorithm_choice {
    algorithm which;
    std::string reason;      // a sentence without a full stop
    bool is_in_use = false;  // the path already has such a mutex
};

/// Returns the algorithm for a mutex at `path`: that of an existing mutex if it can be detected,
/// else memory_map where the file system belongs to this host alone, and atomic_append where other
/// hosts can have it mounted. All callers get the same answer for one path while an existing mutex
/// file stays in place. Errors: as path_handle::open for the directory of `path`; EIO. Allocates:
/// the reason.
[[nodiscard]] result<algorithm_choice> best_available(const io::path_handle& base,
                                                      io::path_view path) noexcept;

/// Opens a mutex with the given algorithm. Errors: those of its open.
[[nodiscard]] result<std::unique_ptr<shared_fs_mutex>> open(
    algorithm which, const io::path_handle& base, io::path_view path,
    const dependencies& from = dependencies::of_this_machine(), const file_access& access = {}) noexcept;

}  // namespace sluice::fsmutex
