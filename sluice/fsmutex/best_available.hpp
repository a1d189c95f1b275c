#pragma once

#include <memory>
#include <string>

#include "sluice/fsmutex/lock_file.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::fsmutex {

/// Which algorithm, and why.
struct algorithm_choice {
    algorithm which;
    std::string reason;      // a sentence without a full stop
    bool is_in_use = false;  // what stands at the path is such a mutex
};

/// What a mutex at `path` should be: what stands there already if that can be seen, else memory_map where the
/// file system belongs to this host alone, and atomic_append where other hosts may have it mounted. All who
/// ask about one path get one answer, as long as what stands there stays. Errors: as path_handle::open for
/// the folder of `path`; EIO. Allocates: the reason.
[[nodiscard]] result<algorithm_choice> best_available(const io::path_handle& base,
                                                      io::path_view path) noexcept;

/// Opens with the algorithm named. Errors: those of its open.
[[nodiscard]] result<std::unique_ptr<shared_fs_mutex>> open(algorithm which, const io::path_handle& base,
                                                            io::path_view path,
                                                            const seams& from = seams::of_this_machine(),
                                                            const file_access& access = {}) noexcept;

}  // namespace sluice::fsmutex
