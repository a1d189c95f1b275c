// A process is stepped through locking and unlocking, instruction by instruction. Whenever the file has
// changed, a copy of it is what a kill at that moment would leave behind, its kernel locks gone: whoever
// opens the copy must be able to lock everything, and be told of the death if something was held.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/processes_testing.hpp"
#include "sluice/io/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using open_function = result<std::unique_ptr<shared_fs_mutex>> (*)(const io::path_handle&, io::path_view,
                                                                   const seams&);

enum phase : int { before, inside, holding, leaving, after };

struct stepped_run {
    open_function open;
    std::size_t compared_bytes;  // of the front of the file, where everything happens
    std::vector<entity> wanted;
    unsigned states_min;  // that the file goes through at least
};

class every_step : public testing::Test {
protected:
    void run(const stepped_run& what) {
        process child([&] { be_stepped(what); });
        int status = 0;
        ASSERT_EQ(::waitpid(child.id(), &status, 0), child.id());
        if (WIFEXITED(status)) GTEST_SKIP() << "this sandbox does not let processes be traced";
        const int file = ::open(directory.path_of("mutex").c_str(), O_RDONLY | O_CLOEXEC);
        ASSERT_GE(file, 0);
        std::vector<char> last(what.compared_bytes);
        std::vector<char> now(what.compared_bytes);
        unsigned states = 0;
        while (at->load() != after and not HasFailure()) {
            ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, child.id(), nullptr, nullptr), 0);
            ASSERT_EQ(::waitpid(child.id(), &status, 0), child.id());
            ASSERT_TRUE(WIFSTOPPED(status)) << "it ended before its time";
            const ssize_t got = ::pread(file, now.data(), now.size(), 0);
            ASSERT_GE(got, 0);
            if (now == last) continue;
            last = now;
            ++states;
            judge(what, file, at->load() == holding);
        }
        ::close(file);
        EXPECT_GE(states, what.states_min);
        RecordProperty("states", static_cast<int>(states));
    }

private:
    void be_stepped(const stepped_run& what) {
        const auto mutex = what.open(directory.anchor(), "mutex", seams::of_this_machine()).value();
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(0);
        ::raise(SIGSTOP);
        at->store(inside);
        auto held = mutex->lock(what.wanted);
        at->store(holding);
        at->store(leaving);
        held->unlock();
        at->store(after);
    }
    // What the next to come finds, if it was killed just now.
    void judge(const stepped_run& what, int file, bool was_held) {
        const off_t size = ::lseek(file, 0, SEEK_END);
        std::string content(static_cast<std::size_t>(size), '\0');
        ASSERT_EQ(::pread(file, content.data(), content.size(), 0), size);
        directory.write("copy", content);
        {
            const auto mutex = what.open(directory.anchor(), "copy", seams::of_this_machine());
            ASSERT_TRUE(mutex) << mutex.error().message();
            auto held = (*mutex)->lock(what.wanted, 5s);
            ASSERT_TRUE(held) << held.error().message();
            if (was_held) EXPECT_TRUE(held->owner_died());
            held->unlock();
            const auto again = (*mutex)->try_lock(what.wanted);
            ASSERT_TRUE(again) << again.error().message();
            EXPECT_FALSE(again->owner_died());
        }
        EXPECT_FALSE(directory.exists("copy")) << "something was left in it";
    }

    shared_memory<std::atomic<int>> at;
    io::test_directory directory{"/dev/shm"};
};

TEST_F(every_step, of_a_mapped_mutex_can_be_the_last_of_its_process) {
    run({.open = memory_map::open,
         .compared_bytes = 80 << 10,
         .wanted = {entity(1), entity(2, lock_mode::shared)},
         .states_min = 25});
}

TEST_F(every_step, of_a_mapped_mutex_with_a_request_of_several_records_can_be_the_last) {
    std::vector<entity> wanted;
    for (std::uint64_t i = 0; i != 11; ++i)
        wanted.emplace_back(i);
    run({.open = memory_map::open, .compared_bytes = 80 << 10, .wanted = wanted, .states_min = 100});
}

TEST_F(every_step, of_a_queue_file_can_be_the_last_of_its_process) {
    std::vector<entity> wanted;
    for (std::uint64_t i = 0; i != 12; ++i)  // more than one slot
        wanted.emplace_back(i);
    run({.open = atomic_append::open, .compared_bytes = 8 << 10, .wanted = wanted, .states_min = 3});
}

}  // namespace
}  // namespace sluice::fsmutex
