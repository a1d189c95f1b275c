#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/serve_options.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::cli {

/// Calls the file system of a share, as the start of serving it does. Blocks: for the file system,
/// perhaps forever.
void call_file_system_of(const std::string& path) noexcept;

/// The requests to reload the configuration. Reading it, and opening a share, may hang with a file
/// system, which must not stop a loop. So threads of its own read it and call the file system of
/// each share first, for a limited time; then the loop reloads what answers.
///
/// One reload is in progress at a time; requests during it are merged into one after it.
/// Loop-owned. Allocates: two threads and one for each share, per request.
class reload_requests {
public:
    using read_options = std::expected<serve_options, std::string>;
    struct outcome {
        read_options options;             // an error if the configuration could not be read
        std::vector<std::string> silent;  // the paths of the shares that do not answer
    };
    struct actions {
        std::function<read_options()> read;                // on another thread, also after end()
        std::function<void(const std::string& path)> ask;  // the same
        std::function<void(const outcome& found)> reload;  // on the loop
        std::chrono::nanoseconds within = std::chrono::seconds(10);
    };

    /// The loop outlives it.
    reload_requests(io::io_multiplexer& loop, actions how);
    reload_requests(const reload_requests&) = delete;
    reload_requests& operator=(const reload_requests&) = delete;
    ~reload_requests() { end(); }

    /// Requests a reload; no effect after end().
    void add();
    /// A reload in progress has no effect any more.
    void end() noexcept;

private:
    struct link;

    void finish(const outcome& found);

    actions how_;
    std::shared_ptr<link> link_;  // with the threads
    bool is_in_progress_ = false;
    bool is_wanted_again_ = false;
};

}  // namespace sluice::cli
