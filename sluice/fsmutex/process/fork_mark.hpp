#pragma once

#include <cstdint>
#include <utility>

#include "sluice/base/result.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. A mark that distinguishes the process that created it from its forked
/// children.
///
/// The kernel zeroes the page of the mark in children (MADV_WIPEONFORK). So no process id is
/// compared, which another process may have by now, and a check costs one load. Move-only. Thread
/// safety: any thread may check.
class fork_mark {
public:
    /// Creates a mark of this process. Errors: ENOMEM; EINVAL before Linux 4.14. Allocates: a page.
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
