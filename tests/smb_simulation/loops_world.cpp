#include "tests/smb_simulation/loops_world.hpp"

namespace sluice::smb_simulation {

loops_world::loops_world(const loops_world_options& how)
    : how_(how), scheduler_(how.seed, clock_), secrets_(how.seed) {
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

void loops_world::make_server() {
    smb::server::server_configuration configuration;
    configuration.signing = smb::server::protection::offered;
    configuration.shares.push_back({});
    configuration.shares.back().name = "files";
    configuration.shares.back().volume = std::make_unique<slow_volume>(
        std::make_unique<vfs::memory_volume>(*loops_.front(), clock_), how_.seed, how_.slowness);
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

io::task<void> loops_world::stop_when(smb::server::event<bool>& ended, smb::server::smb_server& server,
                                      bool& is_done) {
    (void)co_await ended.wait();
    server.stop();
    io::task<void> ending = server.done();
    co_await std::move(ending);
    is_done = true;
}

void loops_world::run_first(const std::function<void()>& start_clients) {
    make_server();
    clients_ended_ = std::make_unique<smb::server::event<bool>>(*loops_.front());
    scheduler_.spawn("clients", [this, &start_clients] { run_clients(start_clients); });
    bool is_done = false;
    {
        std::optional<io::io_multiplexer::work_guard> until_done(std::in_place, *loops_.front());
        io::task_group ending(*loops_.front());
        ending.spawn(stop_when(*clients_ended_, *server_, is_done));
        while (not is_done) {
            const int done = loops_.front()->run(1).value_or(0);
            const bool is_stuck = done < 0 and clients_ended_->is_set();
            ENSURE(not is_stuck, "the server ends after its clients");
            loop_scheduler::may_switch();
        }
        until_done.reset();
        run_loop(*loops_.front());
    }
    const auto left = server_->gauges();
    EXPECT_EQ(left.connections, 0U);
    EXPECT_EQ(left.sessions, 0U) << "no session outlives its connections";
    EXPECT_EQ(left.opens, 0U) << "no open outlives its session";
    EXPECT_EQ(left.files, 0U) << "no file stays locked or shared";
    EXPECT_EQ(left.buffers, 0U) << "every buffer is returned";
    server_.reset();  // on the thread of its first loop, while the others run
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

io::socket_handle loops_world::connect(std::uint16_t client) {
    auto pair = io::socket_handle::pair().value();
    EXPECT_TRUE(pair.second.set_multiplexer(clients_loop_.get()));
    EXPECT_TRUE(loops_.front()->post([this, given = std::move(pair.first), client]() mutable noexcept {
        server_->adopt(std::move(given), io::socket_address::loopback_v4(client));
    }));
    return std::move(pair.second);
}

}  // namespace sluice::smb_simulation
