#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sluice/cli/status/loop_delays.hpp"
#include "sluice/cli/status/rate_window.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

/// The load of a server in one second.
struct load_sample {
    double read_bytes = 0;  // per second
    double written_bytes = 0;
    double requests = 0;
    double delay_ms = 0;  // the longest of all event loops
};

/// The load of the last minutes, in a ring. Allocates: nothing. Thread safety: one thread.
class load_history {
public:
    static constexpr std::size_t samples_max = 300;  // five minutes

    /// Adds a sample and drops the oldest beyond samples_max.
    void add(const load_sample& latest) noexcept;
    [[nodiscard]] std::size_t size() const noexcept;
    /// Returns a sample: 0 is the oldest one, size() - 1 the latest.
    [[nodiscard]] const load_sample& at(std::size_t index) const noexcept;

private:
    std::array<load_sample, samples_max> ring_{};
    std::size_t added_ = 0;  // so far
};

/// Samples a server once a second: rates, their history, and the delays of its event loops.
///
/// Construct, start(); before the server is destroyed, stop(), and wait for done(). Thread safety:
/// the first loop's thread.
class server_sampler {
public:
    explicit server_sampler(smb::server::smb_server& server);
    server_sampler(const server_sampler&) = delete;
    server_sampler& operator=(const server_sampler&) = delete;

    void start() { sampling_.spawn(sample()); }
    void stop() noexcept { sampling_.cancel(); }
    /// Suspends: until the last sample has been taken.
    [[nodiscard]] io::task<void> done() noexcept;

    [[nodiscard]] const rate_window& rates() const noexcept { return rates_; }
    [[nodiscard]] const load_history& history() const noexcept { return history_; }
    /// Returns the delay of each event loop in milliseconds. Allocates: the list.
    [[nodiscard]] std::vector<double> loop_delays_ms() const { return delays_.milliseconds(); }

private:
    [[nodiscard]] io::task<void> sample() noexcept;

    smb::server::smb_server& server_;
    rate_window rates_;
    load_history history_;
    loop_delays delays_;
    io::task_group sampling_;
};

}  // namespace sluice::cli
