#include "sluice/smb/server/net/file_call.hpp"

#include <gtest/gtest.h>

#include "sluice/io/best_available.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/domain/fs_domain.hpp"

namespace sluice::smb::server {
namespace {

constexpr loop_work read_in_one{.command = wire::command::read, .domain = 1};

io::task<std::optional<loop_work>> work_after_a_call(io::io_multiplexer& loop, vfs::fs_domain& domain) {
    loop_activity::begin(read_in_one);
    (void)co_await within_work(domain.run(loop, [] { return true; }));
    co_return loop_activity::current();
}

class call_of_a_request : public ::testing::TestWithParam<vfs::call_policy> {};

TEST_P(call_of_a_request, is_followed_by_the_same_work) {
    const std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    const auto domain = std::make_shared<vfs::fs_domain>(vfs::fs_domain_options{.policy = GetParam()});
    loop_activity activity(*loop);
    const loop_activity::use here(activity, 77);
    EXPECT_EQ(io::sync_wait(*loop, work_after_a_call(*loop, *domain)), read_in_one);
}

INSTANTIATE_TEST_SUITE_P(on_the_loop_and_on_a_worker, call_of_a_request,
                         ::testing::Values(vfs::call_policy::always_inline, vfs::call_policy::never_inline));

}  // namespace
}  // namespace sluice::smb::server
