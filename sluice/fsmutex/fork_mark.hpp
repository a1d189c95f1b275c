#pragma once

#include <cstdint>
#include <utility>

#include "sluice/base/result.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Tells whether this process is the one that made the mark, or a child forked from it.
///
/// The kernel zeroes the page of the mark in children (MADV_WIPEONFORK). So no process id is compared, which
/// could be that of another process by now, and checking it costs one load. Move-only. Thread safety: any
/// thread may check.
class fork_mark {
public:
    /// Errors: ENOMEM; EINVAL before Linux 4.14. Allocates: a page.
    [[nodiscard]] static result<fork_mark> of_this_process() noexcept;
    fork_mark(fork_mark&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
    fork_mark& operator=(fork_mark&&) = delete;
    ~fork_mark();

    [[nodiscard]] bool is_ours() const noexcept { return *page_ != 0; }

private:
    explicit fork_mark(std::uint32_t* page) noexcept : page_(page) {}

    std::uint32_t* page_;
};

}  // namespace sluice::fsmutex
