#include "tests/shared_lines/two_loops.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/vfs/host/host_volume.hpp"

namespace sluice::shared_lines {
namespace {

using smb_simulation::steady_client;

[[nodiscard]] std::filesystem::path share_directory() {
    return std::filesystem::path(testing::TempDir()) / ("sluice-shared-lines-" + std::to_string(::getpid()));
}

// With the domain of a local disk, as sluice serve.
[[nodiscard]] std::unique_ptr<vfs::volume> in_directory(io::io_multiplexer& loop, clock_source&) {
    auto made = vfs::host_volume::open(loop, share_directory().c_str()).value();
    made->set_domain(std::make_shared<vfs::fs_domain>(
        vfs::fs_domain_options{.name = "directory", .policy = vfs::call_policy::starts_inline}));
    return made;
}

}  // namespace

two_loops::two_loops(clients how, unsigned attempt) : how_(how), attempt_(attempt) {
    constexpr int listed_files = 10;
    for (std::size_t i = 0; i != count; ++i) {
        const auto directory = share_directory() / name_of(i);
        std::filesystem::create_directories(directory);
        for (int file = 0; file != listed_files; ++file)
            std::ofstream(directory / ("listed" + std::to_string(file))) << "text";
    }
}

two_loops::~two_loops() {
    std::filesystem::remove_all(share_directory());
}

std::string two_loops::name_of(std::size_t directory) const {
    return "client" + std::to_string(attempt_) + "-" + std::to_string(directory);
}

void two_loops::run(const std::function<void()>& body) {
    served_ = std::make_unique<smb_simulation::server_on_loops>(count, in_directory);
    // The server chooses the loop with the fewest connections: each gets one.
    for (std::size_t i = 0; i != count; ++i)
        sockets_.at(i) = served_->connect(static_cast<std::uint16_t>(i + 1));
    served_->serve({[&] { live(body); }});
    served_.reset();
}

void two_loops::live(const std::function<void()>& body) {
    loop_ = io::make_epoll_multiplexer().value();
    for (std::size_t i = 0; i != count; ++i) {
        EXPECT_TRUE(sockets_.at(i).set_multiplexer(loop_.get()));
        const bool are_channels = how_ == clients::are_channels;
        clients_.push_back(std::make_unique<steady_client>(
            std::move(sockets_.at(i)), served_->clock(),
            steady_client::files{.directory = name_of(directory_of(i)), .name = "file"},
            are_channels ? 1 : i + 1));
        const bool is_channel = are_channels and i != 0;
        io::task<bool> beginning =
            is_channel ? clients_[i]->begin_as_channel_of(*clients_[0]) : clients_[i]->begin();
        EXPECT_TRUE(io::sync_wait(*loop_, std::move(beginning)));
    }
    let_loops_finish();
    body();
    for (const auto& each : clients_) {
        EXPECT_EQ(each->problem(), "");
        each->close_connection();
    }
    clients_.clear();
    loop_.reset();
}

void two_loops::end_of_turn::wait_at(smb::server::server_loop& loop) {
    core_ = static_cast<int>(loop.number);
    loop.multiplexer.post(*this);
    is_reached_.acquire();
}

void two_loops::end_of_turn::invoke() noexcept {
    access_trace::become_core(access_trace::no_core);
    is_reached_.release();
    access_trace::become_core(core_);
}

// Waits until each loop has finished its work. Each records for its core from then on.
void two_loops::let_loops_finish() {
    for (int turn = 0; turn != 3; ++turn)
        for (const auto& each : host().loops())
            ends_.at(each->number).wait_at(*each);
}

void two_loops::carry_out(std::size_t client, operation what) {
    EXPECT_TRUE(io::sync_wait(*loop_, (*clients_[client].*what)()));
    let_loops_finish();
}

two_loops::recording two_loops::record(operation what) {
    constexpr std::size_t executions_to_warm_up = 200;
    for (std::size_t i = 0; i != executions_to_warm_up; ++i)
        carry_out(i % count, what);
    // Odd, so that one loop has two turns: a place in a ring that all loops use was used by the
    // other loop before.
    constexpr std::size_t uncounted = executions_each * count + 1;
    std::vector<execution> executions;
    access_trace::begin();
    for (std::size_t i = 0; i != uncounted + executions_each * count; ++i) {
        const std::size_t client = (i < uncounted ? i : i - uncounted) % count;
        const std::size_t begin = access_trace::count();
        carry_out(client, what);
        executions.push_back(
            {.begin = begin, .end = access_trace::count(), .core = static_cast<unsigned>(client)});
    }
    access_trace::end();
    EXPECT_FALSE(access_trace::is_cut());
    const std::span all(access_trace::recorded(), access_trace::count());
    for (const execution& one : executions) {
        const auto accesses = all.subspan(one.begin, one.end - one.begin);
        const auto own = std::ranges::count(accesses, one.core, &access::core);
        EXPECT_GT(2 * own, std::ssize(accesses)) << "the other loop only comes to its end of turn";
    }
    return {.lines = lines_that_move(all, executions, uncounted),
            .executions = executions_each * count,
            .accesses = static_cast<double>(all.size()) / static_cast<double>(executions.size())};
}

}  // namespace sluice::shared_lines
