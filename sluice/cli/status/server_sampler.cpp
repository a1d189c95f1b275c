#include "sluice/cli/status/server_sampler.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::cli {

using smb::server::smb_server;

namespace {

constexpr std::chrono::seconds sampling_every{1};

[[nodiscard]] std::vector<io::io_multiplexer*> loops_of(const smb_server& server) {
    std::vector<io::io_multiplexer*> all;
    for (const auto& each : server.context().loops())
        all.push_back(&each->multiplexer);
    return all;
}

}  // namespace

void load_history::add(const load_sample& latest) noexcept {
    ring_[added_ % samples_max] = latest;
    ++added_;
}

std::size_t load_history::size() const noexcept {
    return std::min(added_, samples_max);
}

const load_sample& load_history::at(std::size_t index) const noexcept {
    ENSURE(index < size(), "a sample that was taken");
    return ring_[(added_ - size() + index) % samples_max];
}

server_sampler::server_sampler(smb_server& server)
    : server_(server),
      delays_(loops_of(server), server.context().clock()),
      sampling_(server.context().loop()) {}

io::task<void> server_sampler::done() noexcept {
    co_await sampling_.join();
}

io::task<void> server_sampler::sample() noexcept {
    for (;;) {
        rates_.add(server_.context().clock().steady_now(), server_.snapshot({}).traffic);
        if (const std::optional<traffic_rate> latest = rates_.over(sampling_every))
            history_.add({.read_bytes = latest->read_bytes,
                          .written_bytes = latest->written_bytes,
                          .requests = latest->requests,
                          .delay_ms = std::ranges::max(delays_.milliseconds())});
        delays_.probe();
        const auto slept = co_await io::co_sleep(server_.context().loop(), sampling_every);
        if (not slept) co_return;
    }
}

}  // namespace sluice::cli
