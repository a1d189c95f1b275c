#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/smb/server/core/loop_activity.hpp"

namespace sluice::cli {

/// Of the coroutines of one loop: a request under way takes some 2 KiB.
inline constexpr std::size_t frame_pool_bytes = 4U << 20;

/// How many processors this program may use.
[[nodiscard]] std::size_t usable_processors() noexcept;

/// Loops beside the calling thread's, each run by a thread of its own from the beginning to the destructor,
/// which waits until they have nothing left to do.
class loop_threads {
public:
    /// Errors: those of io::best_available; EAGAIN when there can be no more threads. Allocates: yes.
    [[nodiscard]] static result<std::unique_ptr<loop_threads>> start(std::size_t count);
    loop_threads(const loop_threads&) = delete;
    loop_threads& operator=(const loop_threads&) = delete;
    ~loop_threads();

    [[nodiscard]] const std::vector<io::io_multiplexer*>& loops() const noexcept { return loops_; }
    /// The work of each of them, in the same order.
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
