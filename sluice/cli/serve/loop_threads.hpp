#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/smb/server/core/loop_activity.hpp"

namespace sluice::cli {

/// Size of the pool for coroutine frames of one loop. A request in flight takes about 2 KiB.
inline constexpr std::size_t frame_pool_bytes = 4U << 20;

/// Returns the number of CPUs that this process may use.
[[nodiscard]] std::size_t usable_processors() noexcept;

/// Loops in addition to that of the calling thread. Each runs on its own thread until the
/// destructor, which waits until the loops have no work left.
class loop_threads {
public:
    /// Errors: those of io::best_available; EAGAIN if no thread can be started. Allocates: yes.
    [[nodiscard]] static result<std::unique_ptr<loop_threads>> start(std::size_t count);
    loop_threads(const loop_threads&) = delete;
    loop_threads& operator=(const loop_threads&) = delete;
    ~loop_threads();

    [[nodiscard]] const std::vector<io::io_multiplexer*>& loops() const noexcept { return loops_; }
    /// Returns the activity of each loop, in the same order.
    [[nodiscard]] std::vector<const smb::server::loop_activity*> activities() const;

private:
    loop_threads() = default;

    struct loop_thread {
        explicit loop_thread(std::unique_ptr<io::io_multiplexer> own)
            : multiplexer(std::move(own)), activity(*multiplexer), until_end(std::in_place, *multiplexer) {}

        std::unique_ptr<io::io_multiplexer> multiplexer;
        smb::server::loop_activity activity;
        std::optional<io::io_multiplexer::work_guard> until_end;
        std::thread runner;
    };

    std::vector<std::unique_ptr<loop_thread>> threads_;
    std::vector<io::io_multiplexer*> loops_;
};

}  // namespace sluice::cli
