#include "sluice/vfs/domain/domain_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;

io::directory_handle open(const char* path) {
    return io::directory_handle::open({}, path).value();
}

// Returns the mounts of this process as if all of them were of one type.
std::string mounts_of_type(const std::string& type) {
    std::string text;
    for (const mount_entry& each : parse_mountinfo(read_mountinfo()))
        text += std::to_string(each.id) + " 1 0:" + std::to_string(each.device % 1000 + 1) + " / /m rw - " +
                type + " x rw\n";
    return text;
}

TEST(domain_table, directories_of_one_file_system_share_a_domain) {
    domain_table table;
    const auto one = table.domain_of(open(".")).value();
    EXPECT_EQ(table.domain_of(open("./")).value(), one);
    const auto other = table.domain_of(open("/proc")).value();
    EXPECT_NE(other, one);
    EXPECT_EQ(other->policy(), call_policy::starts_inline);
    EXPECT_EQ(other->name(), "/proc");
    EXPECT_EQ(table.all().size(), 2U);
    EXPECT_EQ(table.find(one->number()), one);
}

TEST(domain_table, a_domain_ends_with_its_last_owner) {
    domain_table table;
    (void)table.domain_of(open("/proc")).value();
    EXPECT_TRUE(table.all().empty());
}

TEST(domain_table, type_of_the_file_system_decides_where_calls_start) {
    domain_table remote({.read_mounts = [] { return mounts_of_type("9p"); }});
    EXPECT_EQ(remote.domain_of(open(".")).value()->policy(), call_policy::never_inline);
    EXPECT_EQ(remote.domain_of(open(".")).value()->statistics().threads, 1U)
        << "the worker must exist before the first call";
    domain_table layered({.read_mounts = [] { return mounts_of_type("overlay"); }});
    const auto domain = layered.domain_of(open(".")).value();
    EXPECT_EQ(domain->policy(), call_policy::starts_offloaded);
    EXPECT_FALSE(domain->is_inline());
    domain_table unknown({.read_mounts = [] { return std::string(); }});
    EXPECT_EQ(unknown.domain_of(open(".")).value()->policy(), call_policy::starts_offloaded);
}

TEST(domain_table, one_share_that_is_always_offloaded_offloads_its_file_system) {
    domain_table table({.read_mounts = [] { return mounts_of_type("ext4"); }});
    const auto domain = table.domain_of(open(".")).value();
    EXPECT_TRUE(domain->is_inline());
    EXPECT_EQ(table.domain_of(open("."), true).value(), domain);
    EXPECT_FALSE(domain->is_inline());
    domain->record_blocked_call();
    EXPECT_EQ(domain->policy(), call_policy::never_inline);
}

TEST(domain_table, directories_of_mount_points_are_known_until_the_mounts_change) {
    std::string mounts = "36 35 0:9 / /a/b/mnt rw - tmpfs x rw\n37 35 0:9 / /top rw - tmpfs x rw\n";
    bool has_changed = false;
    domain_table table(
        {.read_mounts = [&] { return mounts; }, .have_mounts_changed = [&] { return has_changed; }});
    EXPECT_TRUE(table.has_mounts_in("/a/b"));
    EXPECT_TRUE(table.has_mounts_in("/"));
    EXPECT_FALSE(table.has_mounts_in("/a"));
    mounts.clear();
    EXPECT_TRUE(table.has_mounts_in("/a/b"));
    has_changed = true;
    EXPECT_FALSE(table.has_mounts_in("/a/b"));
}

TEST(domain_table, kernel_reports_whether_the_mounts_have_changed) {
    const auto have_changed = mount_changes();
    (void)have_changed();
    EXPECT_FALSE(have_changed());
}

// The domain's measurements of its own calls.

constinit std::uint64_t sleeps = 0;  // used by the loop's thread only

class measured_domains : public testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<fs_domain> make(call_policy policy) {
        return std::make_shared<fs_domain>(
            fs_domain_options{.name = "measured",
                              .policy = policy,
                              .threads = {.threads_max = 1, .clock = &clock_},
                              .count_sleeps = []() noexcept { return sleeps; }});
    }
    // Makes a call with this duration, asleep or preempted.
    void call(fs_domain& domain, clock_source::duration takes, bool is_asleep) {
        const auto once = [](fs_domain& on, io::io_multiplexer& loop, simulated_clock& clock,
                             clock_source::duration time, bool asleep) -> io::task<int> {
            co_return co_await on.run(loop, [&] {
                clock.advance(time);
                sleeps += asleep ? 1U : 0U;
                return 0;
            });
        };
        (void)io::sync_wait(*loop_, once(domain, *loop_, clock_, takes, is_asleep));
    }

    simulated_clock clock_;
    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
};

TEST_F(measured_domains, slow_calls_that_sleep_are_offloaded_until_calls_are_prompt) {
    const auto domain = make(call_policy::starts_inline);
    int calls = 0;
    for (; domain->is_inline() and calls != 1000; ++calls)
        call(*domain, 10ms, true);
    EXPECT_LE(calls, 2 * 16 + 4);
    for (int i = 0; i != 150; ++i)
        call(*domain, 10us, false);
    EXPECT_FALSE(domain->is_inline()) << "300 s have not passed";
    clock_.advance(300s);
    call(*domain, 10us, false);
    EXPECT_TRUE(domain->is_inline());
}

TEST_F(measured_domains, preempted_calls_stay_inline) {
    const auto domain = make(call_policy::starts_inline);
    for (int i = 0; i != 1000; ++i)
        call(*domain, 10ms, false);
    EXPECT_TRUE(domain->is_inline());
}

TEST_F(measured_domains, calls_that_are_always_inline_stay_so) {
    const auto domain = make(call_policy::always_inline);
    for (int i = 0; i != 200; ++i)
        call(*domain, 10ms, true);
    domain->record_blocked_call();
    EXPECT_TRUE(domain->is_inline());
}

TEST_F(measured_domains, a_blocked_call_offloads_at_once) {
    const auto domain = make(call_policy::starts_inline);
    domain->record_blocked_call();
    EXPECT_FALSE(domain->is_inline());
}

TEST_F(measured_domains, calls_that_start_offloaded_become_inline_when_they_are_prompt) {
    const auto domain = make(call_policy::starts_offloaded);
    for (int i = 0; i != 99; ++i)
        call(*domain, 10us, false);
    clock_.advance(300s);
    EXPECT_FALSE(domain->is_inline());
    call(*domain, 10us, false);
    EXPECT_TRUE(domain->is_inline());
}

}  // namespace
}  // namespace sluice::vfs
