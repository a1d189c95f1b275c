#include "sluice/fsmutex/process/offset_locks.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/process/kernel_lock.hpp"

namespace sluice::fsmutex {
namespace {

[[nodiscard]] kernel_lock::range bytes_of(offset_locks::range which) noexcept {
    ENSURE(which.first <= which.last and which.last <= offset_locks::offset_max);
    // Up to the largest offset, the kernel expects a length of zero, because off_t cannot represent
    // 2^63.
    const bool reaches_end = which.last == offset_locks::offset_max;
    return {.first = which.first, .length = reaches_end ? 0 : which.last - which.first + 1};
}

[[nodiscard]] kernel_lock::kind kind_of(offset_locks::state to) noexcept {
    return to == offset_locks::state::exclusive ? kernel_lock::kind::exclusive : kernel_lock::kind::shared;
}

}  // namespace

result<offset_locks> offset_locks::open(const io::path_handle& base, io::path_view path,
                                        io::creation how) noexcept {
    auto file = io::file_handle::open(base, path, io::mode::write, how);
    if (not file) return failure(file.error());
    return offset_locks(std::move(*file));
}

result<bool> offset_locks::set(range which, state to) noexcept {
    if (to == state::free) {
        kernel_lock::unlock(file_.descriptor(), bytes_of(which));
        return true;
    }
    const int code = kernel_lock::try_lock(file_.descriptor(), bytes_of(which), kind_of(to));
    if (code == 0) return true;
    if (code == EAGAIN) return false;
    return failure({code, "lock offsets", file_.descriptor()});
}

result<bool> offset_locks::is_settable(range which, state to) const noexcept {
    if (to == state::free) return true;
    const auto locked = kernel_lock::is_locked(file_.descriptor(), bytes_of(which), kind_of(to));
    if (not locked) return failure(locked.error());
    return not * locked;
}

}  // namespace sluice::fsmutex
