#include "tests/smb_simulation/world/loops_world.hpp"

#include <algorithm>
#include <array>

namespace sluice::smb_simulation {

loops_world::loops_world(const loops_world_options& how)
    : how_(how), scheduler_(how.seed, clock_), blocked_calls_(how.seed), secrets_(how.seed) {
    for (std::size_t i = 0; i != how_.loops; ++i)
        loops_.push_back(io::make_simulated_multiplexer(options_of(i)).value());
    clients_loop_ = io::make_simulated_multiplexer(options_of(how_.loops)).value();
    const smb::server::user_database::admission only{.name = "u", .password = "p"};
    EXPECT_TRUE(accounts_.users.admit(std::span(&only, 1)));
}

io::simulation_options loops_world::options_of(std::size_t loop) const {
    io::simulation_options options = how_.network;
    options.seed = how_.seed * 16 + loop;
    options.clock = const_cast<simulated_clock*>(&clock_);
    options.sleeper = const_cast<loop_scheduler*>(&scheduler_);
    return options;
}

// Another thread may run after each posted item and each completion. If all threads wait for each
// other, the clients end.
void loops_world::run_loop(io::simulated_multiplexer& loop) {
    while (loop.run(1).value_or(0) != 0)
        loop_scheduler::may_switch();
}

std::shared_ptr<vfs::fs_domain> loops_world::make_domain(const simulated_share& how, simulated_workers& by) {
    constexpr std::array policies{vfs::call_policy::always_inline, vfs::call_policy::never_inline,
                                  vfs::call_policy::starts_inline};
    return std::make_shared<vfs::fs_domain>(
        vfs::fs_domain_options{.name = how.name,
                               .policy = policies.at(static_cast<std::size_t>(how.calls)),
                               .threads = {.executor = &by, .clock = &measured_},
                               .count_sleeps = [] noexcept { return std::uint64_t{0}; }});
}

// A loop makes a call itself. Some of them have blocked: then the domain is offloaded, for five
// minutes, which are over at once.
void loops_world::take_inline_call(const simulated_share& of, vfs::fs_domain& domain) {
    if (not is_serving_) return;
    EXPECT_NE(of.calls, calls_run::on_workers) << "a loop calls a file system that may hang";
    if (of.calls != calls_run::on_either or blocked_calls_.below(50) != 0) return;
    domain.record_blocked_call();
    measured_.advance(vfs::inline_policy::offloaded_at_least);
}

smb::server::share_configuration loops_world::make_share(const simulated_share& how) {
    smb::server::share_configuration share;
    share.name = how.name;
    share.source = how.name;
    workers_.push_back(std::make_unique<simulated_workers>(scheduler_, how.workers, "worker of " + how.name));
    const auto domain = make_domain(how, *workers_.back());
    // The keys of files contain the number of the volume.
    auto in_memory = std::make_unique<vfs::memory_volume>(
        *loops_.front(), clock_, vfs::memory_volume_options{.serial = workers_.size()});
    in_memory->set_domain(domain);
    slow_calls_options slowness = how.slowness;
    slowness.is_hang_over = &is_hang_over_;
    slowness.on_inline_call = [this, how, of = domain.get()] { take_inline_call(how, *of); };
    share.volume = std::make_shared<slow_volume>(std::move(in_memory), how_.seed, slowness);
    return share;
}

void loops_world::make_server() {
    smb::server::server_configuration configuration;
    configuration.signing = smb::server::protection::offered;
    for (const simulated_share& each : how_.shares)
        configuration.shares.push_back(make_share(each));
    std::vector<io::io_multiplexer*> others;
    for (std::size_t i = 1; i != loops_.size(); ++i)
        others.push_back(loops_[i].get());
    server_ =
        std::make_unique<smb::server::smb_server>(smb::server::server_dependencies{.loop = *loops_.front(),
                                                                                   .clock = clock_,
                                                                                   .random = secrets_,
                                                                                   .accounts = accounts_,
                                                                                   .log = log_,
                                                                                   .other_loops = others},
                                                  std::move(configuration));
    EXPECT_TRUE(server_->start({}));
}

io::task<void> loops_world::stop_when(smb::server::one_shot_event<bool>& ended,
                                      smb::server::smb_server& server, bool& is_done) {
    (void)co_await ended.wait();
    server.stop();
    is_hang_over_ = true;  // the server does not wait for calls that hang, but a simulation does
    scheduler_.wake(&is_hang_over_);
    io::task<void> ending = server.done();
    co_await std::move(ending);
    is_done = true;
}

// They still close files, which posts to the first loop.
void loops_world::wait_for_workers() {
    const auto is_busy = [](const auto& each) {
        return each->statistics().queued != 0 or each->statistics().running != 0;
    };
    while (std::ranges::any_of(workers_, is_busy))
        loop_scheduler::block_here(std::chrono::milliseconds(1));
}

void loops_world::run_first(const std::function<void()>& start_clients) {
    make_server();
    clients_ended_ = std::make_unique<smb::server::one_shot_event<bool>>(*loops_.front());
    scheduler_.spawn("clients", [this, &start_clients] { run_clients(start_clients); });
    bool is_done = false;
    {
        std::optional<io::io_multiplexer::work_guard> until_done(std::in_place, *loops_.front());
        io::task_group ending(*loops_.front());
        ending.spawn(stop_when(*clients_ended_, *server_, is_done));
        is_serving_ = true;
        while (not is_done) {
            const int done = loops_.front()->run(1).value_or(0);
            const bool is_stuck = done < 0 and clients_ended_->is_set();
            ENSURE(not is_stuck, "the server ends after its clients");
            loop_scheduler::may_switch();
        }
        wait_for_workers();
        until_done.reset();
        run_loop(*loops_.front());
    }
    const auto left = server_->gauges();
    EXPECT_EQ(left.connections, 0U);
    EXPECT_EQ(left.sessions, 0U) << "no session outlives its connections";
    EXPECT_EQ(left.opens, 0U) << "no open outlives its session";
    EXPECT_EQ(left.files, 0U) << "no file stays locked or shared";
    EXPECT_EQ(left.buffers, 0U) << "every buffer is returned";
    is_serving_ = false;
    server_.reset();  // on the thread of its first loop, while the others run
    for (const auto& each : workers_)
        each->stop();
    clients_ended_.reset();
    for (auto& guard : guards_)
        guard.reset();
}

void loops_world::run_clients(const std::function<void()>& start_clients) {
    clients_ = std::make_unique<io::task_group>(*clients_loop_);
    start_clients();
    while (clients_loop_->run(1).value_or(0) > 0)
        loop_scheduler::may_switch();
    EXPECT_EQ(clients_->size(), 0U) << "a client never ends: " << clients_loop_->stalled();
    clients_->cancel();
    run_loop(*clients_loop_);
    clients_.reset();
    EXPECT_TRUE(loops_.front()->post([this]() noexcept { clients_ended_->set(true); }));
}

void loops_world::run(std::function<void()> start_clients) {
    for (std::size_t i = 1; i != loops_.size(); ++i) {
        guards_.emplace_back(std::in_place, *loops_[i]);
        scheduler_.spawn("loop " + std::to_string(i), [this, i] { run_loop(*loops_[i]); });
    }
    scheduler_.spawn("loop 0", [this, &start_clients] { run_first(start_clients); });
    scheduler_.run();
    scheduler_.record(clients_loop_->digest());
    events_ = clients_loop_->events();
    for (const auto& each : loops_) {
        scheduler_.record(each->digest());
        events_ += each->events();
    }
    digest_ = scheduler_.digest();
}

void loops_world::reload_shares(bool changes) {
    EXPECT_TRUE(loops_.front()->post([this, changes]() noexcept { replace_shares(changes); }));
}

void loops_world::replace_shares(bool changes) {
    std::vector<smb::server::share_configuration> fresh;
    const auto before = server_->context().shares.current();
    for (const auto& each : *before) {
        if (each->is_pipes()) continue;
        fresh.push_back(each->configuration());
        if (changes) fresh.back().comment = "reload " + std::to_string(reloads_);
    }
    ++reloads_;
    server_->replace_shares(std::move(fresh));
}

std::uint64_t loops_world::offloaded_calls() const noexcept {
    std::uint64_t all = 0;
    for (const auto& each : workers_)
        all += each->statistics().completed;
    return all;
}

io::socket_handle loops_world::connect(std::uint16_t client) {
    auto pair = io::socket_handle::pair().value();
    EXPECT_TRUE(pair.second.set_multiplexer(clients_loop_.get()));
    EXPECT_TRUE(loops_.front()->post([this, given = std::move(pair.first), client]() mutable noexcept {
        server_->adopt(std::move(given), io::socket_address::loopback_v4(client));
    }));
    return std::move(pair.second);
}

}  // namespace sluice::smb_simulation
