#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/gate_testing.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/flush.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "tests/smb_simulation/clients/asking_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

// File systems whose calls do not return, next to others, on threads.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

using gate = gate_for_testing;

constexpr int calls_per_share = 8;

const std::string hung_prefix = "hung";

/// A volume in memory whose lookups of names that begin with "hung" pass a gate. Its calls never
/// run on a loop.
class hung_volume final : public vfs::volume {
public:
    hung_volume(io::io_multiplexer& loop, const clock_source& clock, gate& at)
        : hung_volume(loop, clock, at,
                      std::make_shared<vfs::fs_domain>(
                          vfs::fs_domain_options{.name = "hung",
                                                 .policy = vfs::call_policy::never_inline,
                                                 .threads = {.threads_max = calls_per_share}})) {}

    [[nodiscard]] const vfs::volume_features& features() const noexcept override { return inner_.features(); }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override { return inner_.identity(); }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override { return inner_.space(); }
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override {
        if (path.starts_with(hung_prefix)) gate_.pass();
        return inner_.find(path, links);
    }
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override {
        if (path.starts_with(hung_prefix)) gate_.pass();
        return inner_.create(path, wanted);
    }
    [[nodiscard]] vfs::change_feed* changes() noexcept override { return inner_.changes(); }
    void serve_on(std::span<io::io_multiplexer* const> loops) override { inner_.serve_on(loops); }

private:
    hung_volume(io::io_multiplexer& loop, const clock_source& clock, gate& at,
                const std::shared_ptr<vfs::fs_domain>& domain)
        : volume(domain), inner_(loop, clock), gate_(at) {
        inner_.set_domain(domain);
    }

    vfs::memory_volume inner_;
    gate& gate_;
};

constexpr std::size_t hung_shares = 8;

// Sends more requests than the share has threads, and leaves without a reply.
void hang(server_on_loops& served, std::uint16_t number, const std::string& share, gate& at) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(number), served.clock(), share, number);
    const std::string name = wire::utf16_of(hung_prefix).value();
    for (int i = 0; i != 2 * calls_per_share; ++i)
        one.put_unawaited(command::create, wire::create_args{.desired_access = wire::file_all_access,
                                                             .disposition = wire::create_disposition::open_if,
                                                             .name = std::as_bytes(std::span(name))});
    one.flush();
    at.await(calls_per_share);
    one.close_connection();
}

// Does one request of each kind after the other, several times.
void work(server_on_loops& served, std::uint16_t number) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(number), served.clock(), "files", number);
    for (int i = 0; i != 50; ++i) {
        const std::string name = "f" + std::to_string(number) + " " + std::to_string(i);
        ASSERT_EQ(one.open(name, wire::share_access::none), nt_status::success);
        const wire::file_id file = one.file();
        EXPECT_EQ(one.write(file, 0, std::byte{1}), nt_status::success);
        EXPECT_EQ(one.read(file, 0), std::byte{1});
        EXPECT_EQ(one.answer_to(command::flush, wire::flush_args{.file = file}), nt_status::success);
        EXPECT_EQ(one.rename(file, name + " renamed", true), nt_status::success);
        EXPECT_EQ(one.change(file, wire::file_information_class::disposition,
                             wire::disposition_information{.delete_on_close = true}),
                  nt_status::success);
        EXPECT_EQ(one.close(file), nt_status::success);
    }
}

// Without isolation, the clients of "files" would wait until the gates open, which is after them.
TEST(server_on_several_loops, serves_a_share_while_all_threads_of_eight_others_hang) {
    std::array<gate, hung_shares> gates;
    server_on_loops served(3, [&](io::io_multiplexer& loop, clock_source& clock) {
        server_on_loops::shares all(hung_shares + 1);
        for (std::size_t i = 0; i != hung_shares; ++i) {
            all[i].name = "hung" + std::to_string(i);
            all[i].volume = std::make_shared<hung_volume>(loop, clock, gates.at(i));
        }
        all.back().name = "files";
        all.back().volume = std::make_shared<vfs::memory_volume>(loop, clock);
        return all;
    });
    std::atomic<unsigned> working{0};
    std::vector<std::function<void()>> clients;
    for (std::size_t i = 0; i != hung_shares; ++i)
        clients.emplace_back([&, i] {
            hang(served, static_cast<std::uint16_t>(i + 10), "hung" + std::to_string(i), gates.at(i));
        });
    for (std::uint16_t i = 0; i != 3; ++i)
        clients.emplace_back([&, i] {
            for (const gate& each : gates)
                each.await(calls_per_share);
            work(served, i + 1);
            if (++working != 3) return;
            for (gate& each : gates)
                each.open();
        });
    served.serve(std::move(clients));
}

// Watches a directory when no thread of the share is free, and cancels that: it cannot take effect
// before there is a watch. The end of the session and of the connection do not wait for that.
void leave_cancelled_watch(server_on_loops& served, bool logs_off, std::binary_semaphore& is_open, gate& at) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(1), served.clock(), "hung", 1);
    ASSERT_EQ(one.create("d", {.desired_access = wire::file_all_access,
                               .disposition = wire::create_disposition::open_if,
                               .options = wire::create_options::directory_file}),
              nt_status::success);
    is_open.release();
    at.await(calls_per_share);
    one.put_unawaited(
        command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1000, .file = one.file(), .filter = wire::completion_filter::file_name});
    one.put_cancel_of_last();
    one.flush();
    if (logs_off) {
        EXPECT_EQ(one.answer_to(command::logoff, wire::logoff_args{}), nt_status::success);
    }
    one.close_connection();
    while (served.server().gauges().connections != 1)
        std::this_thread::yield();
}

class server_with_hung_share : public testing::TestWithParam<bool> {};

TEST_P(server_with_hung_share, ends_the_connection_of_a_cancelled_change_notify_that_has_no_thread) {
    gate shut;
    std::binary_semaphore is_open(0);
    server_on_loops served(2, [&](io::io_multiplexer& loop, clock_source& clock) {
        server_on_loops::shares all(1);
        all.front().name = "hung";
        all.front().volume = std::make_shared<hung_volume>(loop, clock, shut);
        return all;
    });
    std::vector<std::function<void()>> clients;
    clients.emplace_back([&] {
        is_open.acquire();
        hang(served, 10, "hung", shut);
    });
    clients.emplace_back([&] {
        leave_cancelled_watch(served, GetParam(), is_open, shut);
        shut.open();
    });
    served.serve(std::move(clients));
}

INSTANTIATE_TEST_SUITE_P(session, server_with_hung_share, testing::Bool(), [](const auto& how) {
    return how.param ? "that_logs_off" : "that_loses_its_connection";
});

}  // namespace
}  // namespace sluice::smb_simulation
