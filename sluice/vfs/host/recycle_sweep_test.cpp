#include "sluice/vfs/host/recycle_sweep.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/recycle_bin_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class recycle_sweep_test : public recycle_bin_test {
protected:
    // One file in the bin, in directories.
    void recycle_in(const std::string& directory, const std::string& name) {
        fs::create_directories(path_of(directory));
        put(directory + "/" + name);
        ASSERT_EQ(recycle(directory + "/" + name), 0);
    }
    // One step of a pass; a part of a pass of the volume has many.
    [[nodiscard]] bool step() {
        if (not pass_ or is_done_) pass_.emplace(opened_->tree(), now_ + std::chrono::days(9));
        is_done_ = not pass_->step();
        return not is_done_;
    }
    void finish() {
        for (int parts = 0; step(); ++parts)
            ASSERT_LT(parts, 10'000) << "a pass has an end";
    }
    void open_again(recycle_rules rules) {
        pass_.reset();
        open(std::move(rules));
    }

    std::optional<recycle_sweep> pass_;
    bool is_done_ = false;
};

TEST_F(recycle_sweep_test, files_that_are_too_old_are_removed_with_their_directories) {
    fs::create_directory(path_of("d"));
    put("d/f");
    open({.age_max = std::chrono::days(30)});
    ASSERT_EQ(recycle("d/f"), 0);
    tidy(now_ + std::chrono::days(29));
    EXPECT_TRUE(fs::exists(path_of(own("d/f"))));
    tidy(now_ + std::chrono::days(31));
    EXPECT_FALSE(fs::exists(path_of(own())));
    EXPECT_TRUE(fs::exists(path_of(".recycle")));
}

TEST_F(recycle_sweep_test, as_many_files_are_removed_as_exceed_the_size) {
    open({.bytes_max = 1000});
    for (int i = 0; i < 300; ++i) {
        const std::string name = "f" + std::to_string(i);
        put(name, "0123456789");
        ASSERT_EQ(recycle(name), 0);
    }
    tidy(now_ + std::chrono::days(1));
    EXPECT_EQ(names(own()).size(), 100U);
    tidy(now_ + std::chrono::days(2));
    EXPECT_EQ(names(own()).size(), 100U);
}

TEST_F(recycle_sweep_test, the_removal_of_old_files_does_not_follow_links) {
    put("kept");
    fs::create_directory(path_of("d"));
    put("d/kept");
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(recycle("f"), 0);
    fs::create_directory_symlink(path_of("d"), path_of(own("d")));
    fs::create_symlink(path_of("kept"), path_of(own("link")));
    tidy(now_ + std::chrono::days(9));
    EXPECT_TRUE(fs::exists(path_of("kept")));
    EXPECT_TRUE(fs::exists(path_of("d/kept")));
    EXPECT_FALSE(fs::exists(path_of(own("f"))));
}

TEST_F(recycle_sweep_test, files_within_the_size_stay_if_a_client_removes_others_during_a_pass) {
    open({.bytes_max = 1000});
    for (int i = 0; i < 200; ++i) {
        const std::string name = "f" + std::to_string(i);
        put(name, "0123456789");
        ASSERT_EQ(recycle(name), 0);
    }
    for (int steps = 0; steps != 4; ++steps)
        ASSERT_TRUE(step());
    for (int i = 0; i < 150; ++i)
        ASSERT_TRUE(fs::remove(path_of(own("f" + std::to_string(i)))));
    finish();
    EXPECT_EQ(names(own()).size(), 50U);
}

TEST_F(recycle_sweep_test, a_file_with_holes_counts_as_what_it_occupies) {
    open({.bytes_max = 1 << 20});
    put("f", "content");
    ASSERT_EQ(recycle("f"), 0);
    put("holes", "");
    fs::resize_file(path_of("holes"), std::uint64_t{1} << 40);
    ASSERT_EQ(recycle("holes"), 0);
    tidy(now_ + std::chrono::days(1));
    EXPECT_TRUE(fs::exists(path_of(own("f"))));
    EXPECT_TRUE(fs::exists(path_of(own("holes"))));
}

TEST_F(recycle_sweep_test, a_directory_that_a_client_restores_during_a_pass_keeps_its_files) {
    open();
    // At each moment of the pass.
    for (int steps = 1; steps < 12; ++steps) {
        for (const std::string& each : names(".recycle"))
            fs::remove_all(path_of(".recycle/" + each));
        fs::remove_all(path_of("restored"));
        open_again({.age_max = std::chrono::days(1)});
        recycle_in("d/e", "f");
        recycle_in("d", "g");
        for (int i = 0; i < steps; ++i)
            (void)step();
        std::set<std::string> restored;
        if (not fs::exists(path_of(own("d")))) continue;
        fs::rename(path_of(own("d")), path_of("restored"));
        for (const auto& each : fs::recursive_directory_iterator(path_of("restored")))
            restored.insert(each.path().string());
        finish();
        for (const std::string& each : restored)
            EXPECT_TRUE(fs::exists(each)) << each << " after " << steps << " steps";
    }
}

TEST_F(recycle_sweep_test, files_outside_of_the_bin_survive_all_orders_of_passes_and_clients) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto one_of = [&](unsigned count) {
            return std::uniform_int_distribution<unsigned>(0, count - 1)(random);
        };
        fs::remove_all(path_of(""));
        fs::create_directory(path_of(""));
        open_again({.keeps_versions = one_of(2) == 0, .age_max = std::chrono::days(1), .bytes_max = 40});
        std::set<std::string> outside;
        const auto directory = [&] {
            return "d" + std::to_string(one_of(2)) + "/e" + std::to_string(one_of(2));
        };
        for (unsigned i = 0; i < 150; ++i) {
            const std::string where = directory();
            const std::string name = where + "/f" + std::to_string(one_of(3));
            const unsigned action = one_of(8);
            if (action == 0) {
                fs::create_directories(path_of(where));
                put(name, "new");
                outside.insert(name);
            } else if (action == 1 and outside.erase(name) != 0) {
                ASSERT_EQ(recycle(name), 0);
            } else if (action == 2 and fs::exists(path_of(own(name))) and not outside.contains(name)) {
                fs::create_directories(path_of(where));
                fs::rename(path_of(own(name)), path_of(name));
                outside.insert(name);
            } else if (action == 3 and fs::exists(path_of(own(where)))) {
                const std::string to = "r" + std::to_string(i);
                fs::rename(path_of(own(where)), path_of(to));
                for (const auto& each : fs::directory_iterator(path_of(to)))
                    outside.insert(to + "/" + each.path().filename().string());
            } else if (action >= 4) {
                (void)step();
            }
            for (const std::string& each : outside)
                ASSERT_TRUE(fs::exists(path_of(each))) << each;
        }
        finish();
        finish();
        for (const std::string& each : outside)
            EXPECT_TRUE(fs::exists(path_of(each))) << each;
        if (fs::exists(path_of(own()))) EXPECT_THAT(names(own()), IsEmpty());
    }
}

TEST_F(recycle_sweep_test, a_pass_ends_if_its_bin_is_renamed) {
    open({.age_max = std::chrono::days(1)});
    for (int i = 0; i < 300; ++i)
        recycle_in("d", "f" + std::to_string(i));
    for (int i = 0; i < 5; ++i)
        (void)step();
    fs::rename(path_of(".recycle"), path_of("kept"));
    const auto before = std::distance(fs::recursive_directory_iterator(path_of("kept")), {});
    finish();
    EXPECT_EQ(std::distance(fs::recursive_directory_iterator(path_of("kept")), {}), before);
}

TEST_F(recycle_sweep_test, a_bin_that_cannot_be_used_is_for_the_log) {
    open({.age_max = std::chrono::days(1)});
    fs::remove(path_of(".recycle"));
    put(".recycle");
    finish();
    EXPECT_EQ(opened_->take_recycle_problem(), ".recycle: open the recycle bin: Not a directory");
}

TEST_F(recycle_sweep_test, only_directories_of_owners_are_swept) {
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(recycle("f"), 0);
    fs::create_directory(path_of(".recycle/name"));
    fs::create_directory(path_of(".recycle/007"));
    for (const char* const name : {".recycle/kept", ".recycle/name/kept", ".recycle/007/kept"})
        put(name);
    finish();
    EXPECT_FALSE(fs::exists(path_of(own("f"))));
    for (const char* const name : {".recycle/kept", ".recycle/name/kept", ".recycle/007/kept"})
        EXPECT_TRUE(fs::exists(path_of(name))) << name;
}

TEST_F(recycle_sweep_test, a_file_with_many_names_counts_once) {
    open({.bytes_max = 1000});
    put("f", "content");
    ASSERT_EQ(recycle("f"), 0);
    put("g", std::string(600, 'x'));
    ASSERT_EQ(recycle("g"), 0);
    for (int i = 0; i < 50; ++i)
        fs::create_hard_link(path_of(own("g")), path_of(own("link" + std::to_string(i))));
    tidy(now_ + std::chrono::days(1));
    EXPECT_EQ(names(own()).size(), 52U);
}

TEST_F(recycle_sweep_test, no_file_is_too_old_if_the_time_is_not_known) {
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(recycle("f"), 0);
    while (opened_->tidy(std::nullopt)) {}
    EXPECT_TRUE(fs::exists(path_of(own("f"))));
    tidy(now_ + std::chrono::days(9));
    EXPECT_FALSE(fs::exists(path_of(own("f"))));
}

TEST_F(recycle_sweep_test, one_part_of_a_pass_covers_many_directories) {
    open({.age_max = std::chrono::days(1)});
    for (int i = 0; i < 20; ++i)
        recycle_in("d" + std::to_string(i), "f");
    recycle_sweep by_steps(opened_->tree(), now_);
    int steps = 1;
    while (by_steps.step())
        ++steps;
    int parts = 1;
    while (opened_->tidy(now_))
        ++parts;
    EXPECT_LE(parts * 2, steps);
}

TEST_F(recycle_sweep_test, files_of_a_file_system_without_change_times_stay) {
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(recycle("f"), 0);
    opened_->tree().bin_state.lacks_ages = true;
    tidy(now_ + std::chrono::days(9));
    EXPECT_TRUE(fs::exists(path_of(own("f"))));
    EXPECT_THAT(opened_->take_recycle_problem(), testing::HasSubstr("have no effect"));
}

TEST_F(recycle_sweep_test, the_owner_of_most_bytes_loses_the_oldest_files) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has files of several owners";
    open({.bytes_max = 1000});
    const auto recycle_for = [&](uid_t owner, const std::string& name, std::size_t bytes) {
        put(name, std::string(bytes, 'x'));
        ASSERT_EQ(::chown(path_of(name).c_str(), owner, owner), 0);
        ASSERT_EQ(recycle(name), 0);
    };
    recycle_for(11111, "old", 300);
    for (int i = 0; i < 20; ++i)
        recycle_for(22222, "large" + std::to_string(i), 500);
    tidy(now_ + std::chrono::days(1));
    EXPECT_THAT(names(".recycle/11111"), ElementsAre("old"));
    EXPECT_EQ(names(".recycle/22222").size(), 1U);
    for (int i = 0; i < 20; ++i)
        recycle_for(33333, "small" + std::to_string(i), 50);
    tidy(now_ + std::chrono::days(1));
    EXPECT_THAT(names(".recycle/11111"), ElementsAre("old")) << "a third of the limit";
    EXPECT_FALSE(fs::exists(path_of(".recycle/22222"))) << "500 are more than its part of 350";
    EXPECT_EQ(names(".recycle/33333").size(), 7U);
}

TEST_F(recycle_sweep_test, a_file_of_another_owner_in_the_directory_of_a_user_stays) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has files of several owners";
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(::chown(path_of("f").c_str(), 54321, 54321), 0);
    ASSERT_EQ(recycle("f"), 0);
    put(".recycle/54321/kept");
    ASSERT_EQ(::chown(path_of(".recycle/54321/kept").c_str(), 12345, 12345), 0);
    finish();
    EXPECT_THAT(names(".recycle/54321"), ElementsAre("kept"));
}

TEST_F(recycle_sweep_test, a_new_process_finds_the_age_of_files) {
    open({.age_max = std::chrono::days(30)});
    put("f");
    ASSERT_EQ(recycle("f"), 0);
    open({.age_max = std::chrono::days(30)});
    tidy(now_ + std::chrono::days(31));
    EXPECT_FALSE(fs::exists(path_of(own())));
    tidy(now_ + std::chrono::days(31));
    EXPECT_THAT(names(".recycle"), IsEmpty());
}

TEST_F(recycle_sweep_test, a_directory_of_another_owner_in_the_directory_of_a_user_is_not_entered) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has files of several owners";
    open({.age_max = std::chrono::days(1)});
    put("f");
    ASSERT_EQ(::chown(path_of("f").c_str(), 54321, 54321), 0);
    ASSERT_EQ(recycle("f"), 0);
    // As if the user had moved an own directory there, in which others have theirs.
    for (const char* const owned : {"12345", "0"}) {
        const std::string moved = ".recycle/54321/moved/" + std::string(owned);
        fs::create_directories(path_of(moved));
        put(moved + "/kept");
        ASSERT_EQ(::chown(path_of(moved).c_str(), static_cast<uid_t>(std::stoul(owned)), 0), 0);
    }
    ASSERT_EQ(::chown(path_of(".recycle/54321/moved").c_str(), 54321, 54321), 0);
    finish();
    EXPECT_FALSE(fs::exists(path_of(".recycle/54321/f")));
    EXPECT_TRUE(fs::exists(path_of(".recycle/54321/moved/12345/kept")));
    EXPECT_TRUE(fs::exists(path_of(".recycle/54321/moved/0/kept")));
}

}  // namespace
}  // namespace sluice::vfs
