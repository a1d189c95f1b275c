#include "sluice/smb/server/net/file_call.hpp"

#include <gtest/gtest.h>

#include "sluice/io/best_available.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/fs_domain.hpp"

namespace sluice::smb::server {
namespace {

struct outcome {
    bool was_latched = true;
};

io::task<bool> is_latched_in_call(io::io_multiplexer& loop, server_latch& latch, vfs::fs_domain& domain) {
    const server_latch::hold held(latch);
    const outcome seen =
        co_await unlatched_call(latch, domain.run(loop, [&] { return outcome{latch.is_mine()}; }));
    EXPECT_TRUE(latch.is_mine()) << "the caller has it again";
    co_return seen.was_latched;
}

class call_of_a_request : public ::testing::TestWithParam<vfs::call_policy> {};

TEST_P(call_of_a_request, releases_the_latch) {
    const std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    const auto domain = std::make_shared<vfs::fs_domain>(vfs::fs_domain_options{.policy = GetParam()});
    server_latch latch;
    EXPECT_FALSE(io::sync_wait(*loop, is_latched_in_call(*loop, latch, *domain)));
}

INSTANTIATE_TEST_SUITE_P(on_the_loop_and_on_a_worker, call_of_a_request,
                         ::testing::Values(vfs::call_policy::always_inline, vfs::call_policy::never_inline));

}  // namespace
}  // namespace sluice::smb::server
