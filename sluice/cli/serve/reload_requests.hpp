#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::cli {

/// Requests to reload the configuration. A file system that does not answer must not stop a loop,
/// so threads read the configuration and call the file system of each share first, for a limited
/// time. Then the loop reloads with what they have found.
///
/// One reload is in progress at a time; requests during it are merged into one after it. A file
/// system that answers after its reload causes another one, if that reload needed it.
///
/// Invariant: at most one thread reads the configuration, and at most one calls the file system of
/// each path, over all reloads. A thread uses `read` and `find_root` until is_busy() returns false.
/// Loop-owned, with the exception of unanswered(). Allocates: up to two threads, and one for each
/// share, per reload.
class reload_requests {
public:
    using read_options = std::expected<serve_options, std::string>;
    struct actions {
        std::function<read_options()> read;                                           // on a thread
        std::function<std::optional<share_root>(const std::string& path)> find_root;  // on a thread
        /// On the loop. Returns the paths of the shares that could not be reloaded without an
        /// answer.
        std::function<std::vector<std::string>(const read_options& options, const share_roots& answered)>
            reload;
        /// On the loop: the last reload has ended, and none is requested. May be null.
        std::function<void()> ended{};
        std::chrono::nanoseconds within = std::chrono::seconds(10);
    };

    /// The loop outlives it.
    reload_requests(io::io_multiplexer& loop, actions how);
    reload_requests(const reload_requests&) = delete;
    reload_requests& operator=(const reload_requests&) = delete;
    ~reload_requests() { end(); }

    /// Requests a reload. No effect after end().
    void add();
    /// Ends the reload in progress, without a call of `reload`.
    void end() noexcept;

    /// Returns the paths of the shares, and "the configuration", whose file systems have not yet
    /// answered a thread. Thread safety: any thread.
    [[nodiscard]] std::vector<std::string> unanswered() const;
    [[nodiscard]] bool is_busy() const { return not unanswered().empty(); }

private:
    struct link;

    void finish(const read_options& options, const share_roots& answered);
    void answer_late(const std::string& what);

    actions how_;
    std::shared_ptr<link> link_;       // with the threads
    std::vector<std::string> needed_;  // by the last reload, which it had no answer for
    bool is_in_progress_ = false;
    bool is_wanted_again_ = false;
};

}  // namespace sluice::cli
