#include "sluice/fsmutex/process/process_identity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "sluice/fsmutex/process/processes_testing.hpp"

namespace sluice::fsmutex {
namespace {

TEST(a_process, knows_its_identity_and_is_alive) {
    const auto self = process_identity::of_this_process().value();
    EXPECT_EQ(self.id, static_cast<std::uint32_t>(::getpid()));
    EXPECT_FALSE(self.host_name().empty());
    EXPECT_EQ(self.boot().size(), 36);
    EXPECT_FALSE(is_surely_dead(self.id, self.start_time));
}

TEST(a_process, is_dead_once_killed_even_before_its_parent_looked_or_if_its_id_is_anothers) {
    const auto self = process_identity::of_this_process().value();
    EXPECT_TRUE(is_surely_dead(self.id, self.start_time + 1)) << "another process has the id";
    const shared_memory<std::atomic<std::uint64_t>> start_time;
    process other([&] {
        start_time->store(process_identity::of_this_process().value().start_time);
        for (;;)
            ::pause();
    });
    ASSERT_TRUE(eventually([&] { return start_time->load() != 0; }));
    const auto id = static_cast<std::uint32_t>(other.id());
    EXPECT_FALSE(is_surely_dead(id, start_time->load()));
    other.send(SIGKILL);
    EXPECT_TRUE(eventually([&] { return is_surely_dead(id, start_time->load()); })) << "a zombie is dead";
    other.stop();
    EXPECT_TRUE(is_surely_dead(id, start_time->load()));
}

}  // namespace
}  // namespace sluice::fsmutex
