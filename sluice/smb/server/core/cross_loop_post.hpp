#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::smb::server {

/// The number of items that loops have posted to other loops, for all servers of the process. Each
/// may be a wake-up, which is the extra cost of several loops. Thread safety: any thread.
class cross_loop_posts {
public:
    static void record() noexcept {
        count_.fetch_add(1, std::memory_order_relaxed);
    }  // a count, orders nothing
    [[nodiscard]] static std::uint64_t so_far() noexcept { return count_.load(std::memory_order_relaxed); }

private:
    static inline constinit std::atomic<std::uint64_t> count_{0};
};

/// Posts to a loop, and counts the post if the loop is another thread's.
inline void cross_loop_post(io::io_multiplexer& loop, io::posted_item& item) noexcept {
    if (not loop.is_owner()) cross_loop_posts::record();
    loop.post(item);
}

/// Runs `what()` on the thread of a loop: at once if it is this one.
/// Allocates: an item that is posted to another loop. The program stops if there is no memory for
/// it.
template <class What>
void do_on(io::io_multiplexer& loop, What what) noexcept {
    if (loop.is_owner()) {
        what();
        return;
    }
    cross_loop_posts::record();
    const auto posted = loop.post(std::move(what));
    ENSURE(posted.has_value(), "out of memory to post to another loop");
}

}  // namespace sluice::smb::server
