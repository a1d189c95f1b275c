#include "sluice/smb/server/core/loop_activity.hpp"
#include "sluice/smb/server/report/loop_watchdog.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The work that a loop stores for its watchdog.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

class unknown_threads final : public server::thread_usage_source {
public:
    std::optional<server::thread_usage> of(int) noexcept override { return std::nullopt; }
};

class work_of_a_loop : public testing::Test {
protected:
    work_of_a_loop() {
        EXPECT_EQ(client_->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(client_->connect_tree("files"), nt_status::success);
    }
    ~work_of_a_loop() override {
        client_.reset();
        where_.stop();
    }

    simulated_clock clock_;
    unknown_threads threads_;
    silent_log log_;
    server::loop_watchdog watchdog_{{}, clock_, threads_, log_};
    world where_{io::simulation_options{.seed = 1}, 1, nullptr, nullptr, &watchdog_};
    server::loop_activity activity_{*where_.loop};
    const server::loop_activity::use here_{activity_, 1};
    std::optional<compliant_client> client_{std::in_place, where_};
};

TEST_F(work_of_a_loop, names_the_command_and_the_share_of_the_last_request) {
    (void)client_->create("f");
    EXPECT_EQ(activity_.look().work->command, command::create);
    EXPECT_EQ(watchdog_.domains().name_of(activity_.look().work->domain), "files");
    EXPECT_EQ(client_->call(command::echo, wire::echo_args{}).status(), nt_status::success);
    EXPECT_EQ(activity_.look().work, (server::loop_work{.command = command::echo}));
}

}  // namespace
}  // namespace sluice::smb_simulation
