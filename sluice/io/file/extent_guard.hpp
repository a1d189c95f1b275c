#pragma once

#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/file/extent_pair.hpp"

namespace sluice::io {

/// The locks that other holders may have on the same bytes.
enum class lock_kind : bool {
    shared,     ///< shared locks
    exclusive,  ///< none
};

/// A byte-range lock that is released on destruction. Created by file_handle::lock_range.
///
/// Must not outlive the handle that created it, nor that handle's close(): the number of a closed
/// descriptor may belong to another file by then. Moving the handle is allowed. Thread safety: a
/// value of one owner.
class extent_guard {
public:
    constexpr extent_guard() noexcept = default;
    constexpr extent_guard(int descriptor, extent_pair range, lock_kind kind) noexcept
        : range_(range), descriptor_(descriptor), kind_(kind) {}
    extent_guard(extent_guard&& other) noexcept
        : range_(other.range_), descriptor_(std::exchange(other.descriptor_, -1)), kind_(other.kind_) {}
    extent_guard& operator=(extent_guard&& other) noexcept;
    extent_guard(const extent_guard&) = delete;
    extent_guard& operator=(const extent_guard&) = delete;
    ~extent_guard() { unlock(); }

    [[nodiscard]] constexpr bool is_held() const noexcept { return descriptor_ >= 0; }
    [[nodiscard]] constexpr extent_pair range() const noexcept { return range_; }
    [[nodiscard]] constexpr lock_kind kind() const noexcept { return kind_; }

    /// Releases now. Does nothing if the lock is not held. Errors: none that a caller could handle.
    void unlock() noexcept;

    /// Leaves the range locked until the handle is closed.
    void release() noexcept { descriptor_ = -1; }

private:
    friend class file_handle;
    /// See file_handle::lock_range.
    [[nodiscard]] static result<extent_guard> lock(int descriptor, extent_pair range, lock_kind kind,
                                                   deadline within) noexcept;

    extent_pair range_{};
    int descriptor_ = -1;
    lock_kind kind_ = lock_kind::shared;
};

}  // namespace sluice::io
