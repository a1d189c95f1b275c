#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "sluice/vfs/host/recycle_bin_testing.hpp"

// Clients and the removal of old files at the same time.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

class recycle_by_threads : public recycle_bin_test {
protected:
    void recycle_files(const std::string& directory, int count) {
        fs::create_directories(path_of(directory));
        for (int i = 0; i < count; ++i) {
            put(directory + "/f" + std::to_string(i));
            ASSERT_EQ(recycle(directory + "/f" + std::to_string(i)), 0);
        }
    }
    // Runs passes, in which every file is old, until it is told to stop.
    [[nodiscard]] std::jthread sweeper() {
        return std::jthread([this](const std::stop_token& stop) {
            while (not stop.stop_requested())
                (void)opened_->tidy(now_ + std::chrono::days(9));
        });
    }
};

TEST_F(recycle_by_threads, a_directory_that_is_restored_during_passes_keeps_its_files) {
    open({.age_max = std::chrono::days(1)});
    std::set<fs::path> restored;
    {
        const std::jthread sweeping = sweeper();
        for (int round = 0; round < 60; ++round) {
            recycle_files("d", 8);
            const fs::path to = path_of("restored" + std::to_string(round));
            std::error_code removed;
            fs::rename(path_of(own("d")), to, removed);
            if (removed) continue;
            for (const auto& each : fs::directory_iterator(to))
                restored.insert(each.path());
        }
    }
    for (const fs::path& each : restored)
        EXPECT_TRUE(fs::exists(each)) << each;
}

TEST_F(recycle_by_threads, deletions_succeed_while_empty_directories_are_removed) {
    open({.age_max = std::chrono::days(1)});
    std::atomic<int> failed{0};
    {
        const std::jthread sweeping = sweeper();
        fs::create_directories(path_of("a/b"));
        for (int round = 0; round < 400; ++round) {
            put("a/b/f");
            failed += recycle("a/b/f") == 0 ? 0 : 1;
        }
    }
    EXPECT_EQ(failed, 0);
    EXPECT_TRUE(fs::is_empty(path_of("a/b")));
}

TEST_F(recycle_by_threads, two_opens_of_a_file_move_it_once) {
    open();
    for (int round = 0; round < 200; ++round) {
        const std::string name = "f" + std::to_string(round);
        put(name);
        const node_ptr first = opened_->find(name, follow_links::no).value();
        const node_ptr second = opened_->find(name, follow_links::no).value();
        std::atomic<int> moved{0};
        {
            const std::jthread other([&] { moved += second->names()->recycle() ? 1 : 0; });
            moved += first->names()->recycle() ? 1 : 0;
        }
        EXPECT_EQ(moved, 1) << name;
        EXPECT_TRUE(fs::exists(path_of(own(name)))) << name;
    }
}

}  // namespace
}  // namespace sluice::vfs
