#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "tests/smb_simulation/clients/asking_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

// Sessions that end on one loop while others work, with a thread for each loop and each client.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

// --- many opens
// -------------------------------------------------------------------------------------------------

// As many as a session may have, but for a few: the other clients have the same user.
constexpr std::uint64_t many = server::limits::opens_per_session_max - 64;

void open_many(asking_client& by) {
    for (std::uint64_t i = 0; i != many; ++i) {
        const std::string name = wire::utf16_of("n" + std::to_string(i % 512)).value();
        by.put_unawaited(command::create, wire::create_args{.desired_access = wire::file_generic_read,
                                                            .share_access = shared_by_all,
                                                            .disposition = wire::create_disposition::open_if,
                                                            .name = std::as_bytes(std::span(name))});
        if (i % 64 != 63) continue;
        by.flush();
        by.await_all_but(by.credits() < 256 ? 0 : 64);
    }
    by.flush();
    by.await_all_but(0);
    ASSERT_EQ(by.opens(), many);
}

// Opens, writes and closes a file of its own until the other client's opens have ended.
void work_until_few_are_open(server_on_loops& served, std::uint16_t number, std::atomic<bool>& is_ending,
                             unsigned& rounds) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(number), served.clock(), "files", number);
    const std::string name = "own " + std::to_string(number);
    while ((not is_ending.load() or served.server().gauges().opens > many / 2) and
           not testing::Test::HasFailure()) {
        ASSERT_EQ(one.open(name, wire::share_access::none), nt_status::success);
        ASSERT_EQ(one.write(), nt_status::success);
        ASSERT_EQ(one.close(one.file()), nt_status::success);
        ++rounds;
    }
}

TEST(session_on_several_loops, with_as_many_opens_as_it_may_have_ends_while_others_work) {
    server_on_loops served(3, in_memory);
    std::atomic<bool> is_ending{false};
    std::array<unsigned, 3> rounds{};
    std::vector<std::function<void()>> clients{[&] {
        const auto loop = make_client_loop();
        asking_client one(*loop, served.connect_from_thread(1), served.clock());
        open_many(one);
        EXPECT_GE(served.server().gauges().opens, many);
        is_ending.store(true);
        one.close_connection();
    }};
    for (std::uint16_t i = 0; i != rounds.size(); ++i)
        clients.emplace_back([&, i] { work_until_few_are_open(served, i + 2, is_ending, rounds.at(i)); });
    served.serve(std::move(clients));
    for (const unsigned each : rounds)
        EXPECT_GT(each, 0U);
}

// --- channels
// -------------------------------------------------------------------------------------------------

[[nodiscard]] bool is_over(nt_status status) {
    return status == nt_status::user_session_deleted or status == nt_status::network_name_deleted;
}

/// The channels of one session, each on its own thread; the first one ends it.
class session_that_ends {
public:
    explicit session_that_ends(server_on_loops& served) : served_(served) {}

    /// Sets the session up, lets the others join, and logs off in the middle of their work.
    void log_off() {
        const auto loop = make_client_loop();
        first_ = std::make_unique<asking_client>(*loop, served_.connect_from_thread(1), served_.clock());
        EXPECT_EQ(first_->open("shared", shared_by_all), nt_status::success);
        shared_ = first_->file();
        begins_.release(channels);
        while (working_.load() < kinds_of_work)
            std::this_thread::yield();
        for (int i = 0; i != 20; ++i)
            EXPECT_EQ(first_->answer_to(command::echo, wire::echo_args{}), nt_status::success);
        EXPECT_EQ(first_->answer_to(command::logoff, wire::logoff_args{}), nt_status::success);
        expect_no_open_of_the_session();
        while (left_.load() != channels)
            std::this_thread::yield();
        first_->close_connection();
    }
    /// A channel that sends such requests until the session has ended.
    void work(unsigned kind) {
        begins_.acquire();
        const auto loop = make_client_loop();
        asking_client one(*loop, served_.connect_from_thread(1), served_.clock(), *first_);
        EXPECT_TRUE(one.is_bound());
        ++working_;
        for (unsigned i = 0; not is_over(send_one(one, kind, i)) and not testing::Test::HasFailure(); ++i) {}
        one.close_connection();
        ++left_;
    }
    /// A channel that joins the session when it may be ending.
    void bind_late() {
        begins_.acquire();
        while (working_.load() < kinds_of_work)
            std::this_thread::yield();
        const auto loop = make_client_loop();
        asking_client one(*loop, served_.connect_from_thread(1), served_.clock(), *first_);
        one.close_connection();
        ++left_;
    }

    static constexpr int kinds_of_work = 4;
    static constexpr int channels = kinds_of_work + 1;  // one of which binds late

private:
    nt_status send_one(asking_client& by, unsigned kind, unsigned number) const {
        const auto element = wire::encode_lock_element(
            {.offset_bytes = 0,
             .length_bytes = 10,
             .flags = number % 2 == 0 ? wire::lock_flags::unlock : wire::lock_flags::exclusive});
        switch (kind) {
            case 0:
                return by.open("alone " + std::to_string(number % 8), wire::share_access::none);
            case 1:
                return by.write(shared_, number, std::byte{1});
            case 2:
                by.put_unawaited(
                    command::lock,
                    wire::lock_args{.file = shared_, .elements = wire::lock_list(std::span(&element, 1))});
                return by.answer_to(command::echo, wire::echo_args{}) == nt_status::success
                           ? by.write(shared_, 100, std::byte{1})
                           : nt_status::network_name_deleted;
            default: {
                const nt_status opened = by.create("d", {.desired_access = wire::file_all_access,
                                                         .share_access = shared_by_all,
                                                         .disposition = wire::create_disposition::open_if,
                                                         .options = wire::create_options::directory_file});
                if (opened != nt_status::success) return opened;
                by.put_unawaited(command::change_notify,
                                 wire::change_notify_args{.output_bytes_max = 1024,
                                                          .file = by.file(),
                                                          .filter = wire::completion_filter(0xfff)});
                return by.close(by.file());
            }
        }
    }
    void expect_no_open_of_the_session() {
        const auto loop = make_client_loop();
        asking_client other(*loop, served_.connect_from_thread(2), served_.clock(), "files", 2);
        for (int i = 0; i != 8; ++i)
            EXPECT_EQ(other.open("alone " + std::to_string(i), wire::share_access::none), nt_status::success);
        EXPECT_EQ(other.open("shared", wire::share_access::none), nt_status::success);
        other.close_connection();
    }

    server_on_loops& served_;
    std::unique_ptr<asking_client> first_;
    wire::file_id shared_{};
    std::counting_semaphore<> begins_{0};
    std::atomic<int> working_{0};
    std::atomic<int> left_{0};
};

TEST(session_on_several_loops, ends_during_create_write_lock_watch_and_bind_on_other_channels) {
    for (int round = 0; round != 5 and not testing::Test::HasFailure(); ++round) {
        server_on_loops served(3, in_memory);
        session_that_ends one(served);
        std::vector<std::function<void()>> threads{[&] { one.log_off(); }, [&] { one.bind_late(); }};
        for (unsigned kind = 0; kind != session_that_ends::kinds_of_work; ++kind)
            threads.emplace_back([&, kind] { one.work(kind); });
        served.serve(std::move(threads));
    }
}

}  // namespace
}  // namespace sluice::smb_simulation
