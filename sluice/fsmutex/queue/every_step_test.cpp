// A process is stepped through locking and unlocking, instruction by instruction. Whenever the file
// has changed, a copy of it is the state after a kill at that moment, without its kernel locks. A
// process that opens the copy must be able to lock everything, and get a report of the death if
// something was held. The same applies to a process that removes the requests of a dead one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using open_function = result<std::unique_ptr<shared_fs_mutex>> (*)(const io::path_handle&, io::path_view,
                                                                   const dependencies&);

// Steps a process that waits to be traced, until `is_over()` or a test has failed. Returns false if
// it cannot be traced.
bool step(const process& child, const std::function<bool()>& is_over, const std::function<void()>& look) {
    int status = 0;
    EXPECT_EQ(::waitpid(child.id(), &status, 0), child.id());
    if (WIFEXITED(status)) return false;
    while (not is_over() and not testing::Test::HasFailure()) {
        EXPECT_EQ(::ptrace(PTRACE_SINGLESTEP, child.id(), nullptr, nullptr), 0);
        EXPECT_EQ(::waitpid(child.id(), &status, 0), child.id());
        EXPECT_TRUE(WIFSTOPPED(status)) << "it ended early";
        look();
    }
    return true;
}
void wait_to_be_traced() {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(0);
    ::raise(SIGSTOP);
}

enum phase : int { before, inside, holding, leaving, after };

struct stepped_run {
    open_function open;
    std::size_t compared_bytes;  // at the start of the file, where all changes are
    std::vector<entity> wanted;
    unsigned states_min;  // the least number of states of the file
};

class every_step : public testing::Test {
protected:
    void run(const stepped_run& what) {
        process child([&] { be_stepped(what); });
        int file = -1;  // created by the process
        std::vector<char> last(what.compared_bytes);
        std::vector<char> now(what.compared_bytes);
        unsigned states = 0;
        const auto look = [&] {
            if (file < 0) file = ::open(directory.path_of("mutex").c_str(), O_RDONLY | O_CLOEXEC);
            ASSERT_GE(::pread(file, now.data(), now.size(), 0), 0);
            if (now == last) return;
            last = now;
            ++states;
            judge(what, file, at->load() == holding);
        };
        if (not step(child, [&] { return at->load() == after; }, look))
            GTEST_SKIP() << "this sandbox does not let processes be traced";
        ::close(file);
        EXPECT_GE(states, what.states_min);
        RecordProperty("states", static_cast<int>(states));
    }

private:
    void be_stepped(const stepped_run& what) {
        const auto mutex = what.open(directory.anchor(), "mutex", dependencies::of_this_machine()).value();
        wait_to_be_traced();
        at->store(inside);
        auto held = mutex->lock(what.wanted);
        at->store(holding);
        at->store(leaving);
        held->unlock();
        at->store(after);
    }
    // Checks the state that the next process finds after a kill at this moment.
    void judge(const stepped_run& what, int file, bool was_held) {
        const off_t size = ::lseek(file, 0, SEEK_END);
        std::string content(static_cast<std::size_t>(size), '\0');
        ASSERT_EQ(::pread(file, content.data(), content.size(), 0), size);
        directory.write("copy", content);
        {
            const auto mutex = what.open(directory.anchor(), "copy", dependencies::of_this_machine());
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

TEST_F(every_step, on_a_mapped_mutex_can_be_the_last_of_its_process) {
    run({.open = memory_map::open,
         .compared_bytes = 80 << 10,
         .wanted = {entity(1), entity(2, lock_mode::shared)},
         .states_min = 25});
}

TEST_F(every_step, on_a_mapped_mutex_with_a_request_of_several_records_can_be_the_last) {
    std::vector<entity> wanted;
    for (std::uint64_t i = 0; i != 11; ++i)
        wanted.emplace_back(i);
    run({.open = memory_map::open, .compared_bytes = 80 << 10, .wanted = wanted, .states_min = 100});
}

TEST_F(every_step, on_a_queue_file_can_be_the_last_of_its_process) {
    std::vector<entity> wanted;
    for (std::uint64_t i = 0; i != 12; ++i)  // more than one slot
        wanted.emplace_back(i);
    run({.open = atomic_append::open, .compared_bytes = 8 << 10, .wanted = wanted, .states_min = 3});
}

// In the memory of a queue, without a file.
class every_step_of_a_reap : public testing::Test {
protected:
    static constexpr std::uint32_t dead = 7;
    static constexpr std::uint32_t alive = 1;

    // Three records: one of tombstones only, one without, and one with some.
    [[nodiscard]] static std::vector<entity> entities_of_three_records() {
        std::vector<entity> wanted;
        for (std::uint64_t i = 0; i != 19; ++i)
            wanted.emplace_back(
                i, i / mapped::links_per_request == 1 ? lock_mode::shared : lock_mode::exclusive);
        return wanted;
    }
    // The same steps as in mapped_file after a process has died while it held the latch.
    static void judge(const mapped::memory& left) {
        const auto copy = std::make_unique<mapped::memory>();
        std::memcpy(static_cast<void*>(copy.get()), static_cast<const void*>(&left), sizeof left);
        mapped_queue queue(*copy);
        mapped_queue::wake_list ignored;
        queue.rebuild(ignored);
        queue.reap_instance(dead, ignored);
        std::vector<mapped_queue::request_key> entered;
        for (const entity each : entities_of_three_records()) {
            const auto key = queue.enter({.instance = alive}, std::span(&each, 1));
            ASSERT_TRUE(key) << each.number();
            entered.push_back(*key);
            const mapped::request& own = queue.request_at(entered.back().number);
            ASSERT_EQ(own.state.load(), mapped::granted) << each.number();
            ASSERT_EQ(own.owner_died != 0, each.is_exclusive()) << each.number();
        }
        for (const auto& each : entered)
            queue.leave(each, true, ignored);
        ASSERT_TRUE(queue.is_empty());
        ASSERT_FALSE(queue.is_damaged());
    }

    shared_memory<mapped::memory> memory;
    shared_memory<std::atomic<bool>> is_over;
};

TEST_F(every_step_of_a_reap, may_be_the_last_for_a_request_with_several_records) {
    mapped_queue queue(*memory);
    mapped_queue::wake_list ignored;
    const std::array another{entity(100)};
    const auto leaves = queue.enter({.instance = alive}, another).value();
    ASSERT_TRUE(queue.enter({.instance = dead}, entities_of_three_records()));
    queue.leave(leaves, true, ignored);  // a free record that another freed record names
    process undertaker([&] {
        wait_to_be_traced();
        queue.reap_instance(dead, ignored);
        is_over->store(true);
    });
    const std::span in_use(reinterpret_cast<const std::byte*>(&*memory),
                           offsetof(mapped::memory, requests) + 5 * sizeof(mapped::request));
    std::vector<std::byte> last(in_use.begin(), in_use.end());
    unsigned states = 0;
    const auto look = [&] {
        if (std::memcmp(in_use.data(), last.data(), last.size()) == 0) return;
        last.assign(in_use.begin(), in_use.end());
        ++states;
        judge(*memory);
    };
    if (not step(undertaker, [&] { return is_over->load(); }, look))
        GTEST_SKIP() << "this sandbox does not let processes be traced";
    EXPECT_GE(states, 25U);
}

}  // namespace
}  // namespace sluice::fsmutex
