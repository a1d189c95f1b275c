#include "sluice/vfs/host/stream/stream_check.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "sluice/vfs/host/stream/stream_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class stream_checks : public stream_test {
protected:
    stream_check_result check(stream_check_options options = {}) {
        lines.clear();
        const system_clock_source clock;
        if (options.now == time_point()) options.now = time_of(clock.utc_now());
        stream_check checking(*volume, options, [&](const std::string& line) { lines.push_back(line); });
        const auto done = checking.run();
        EXPECT_EQ(code(done), 0);
        return done.value_or(stream_check_result{});
    }
    static constexpr stream_check_options repair{.repairs = true};

    // Streams that a server has stored that shares only a directory in this one.
    void put_in_inner_store() {
        fs::create_directory(scratch.path_of("inner"));
        scratch.write("inner/g", "");
        put_in_volume("inner", "g", "s");
    }
    void put_in_volume(const std::string& root, const std::string& name, const std::string& stream_name) {
        const auto inner = host_volume::open(*multiplexer, scratch.path_of(root)).value();
        const auto file = inner->find(name, follow_links::yes).value();
        const auto one = file->attached()->open_stream({.name = stream_name, .create = true}).value();
        ASSERT_EQ(code(one->data()->open_data(both)), 0);
        ASSERT_EQ(code(write(*one, large)), 0);
    }
    // Gives the streams of `name`, which are in the store of `inner`, a second directory of their
    // ID in the store of the root, with one stream.
    void put_in_second_store(const std::string& name, const std::string& stream_name) {
        const fs::path in_root = directory_of(name);
        const fs::path in_inner = fs::path(scratch.path_of("inner")) / fs::relative(in_root, scratch.path());
        const auto mark =
            load_stream_record(io::directory_handle::open({}, in_inner.string()).value()).value();
        fs::create_directories(in_root);
        const auto second = io::directory_handle::open({}, in_root.string()).value();
        ASSERT_TRUE(store_stream_record(second, *mark, record_storing::replace));
        std::ofstream(in_root / ('=' + stream_name)) << "second";
        // Otherwise the store is not used.
        fs::permissions(scratch.path_of(".sluice-streams"), fs::perms::owner_all);
    }

    std::vector<std::string> lines;
};

TEST_F(stream_checks, find_no_problem_without_a_store_or_in_a_consistent_one) {
    EXPECT_EQ(check().problems(), 0U);
    put("f", "s", large);
    put("f", "t", large);
    ASSERT_EQ(code(at("f")->names()->link("g", when_taken::refuse)), 0);
    const auto found = check(repair);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.referring_files, 1U);
    EXPECT_EQ(found.directories, 1U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_THAT(lines, IsEmpty());
    EXPECT_EQ(content("g", "s"), large);
}

TEST_F(stream_checks, move_streams_of_files_that_other_programs_removed_and_later_remove_them) {
    put("f", "s", large);
    const fs::path directory = directory_of("f");
    fs::remove(scratch.path_of("f"));
    EXPECT_EQ(check().unreferenced, 1U);
    EXPECT_THAT(lines, ElementsAre(HasSubstr("without a file")));
    EXPECT_TRUE(fs::exists(directory)) << "only a repair changes anything";
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_THAT(lost(), ElementsAre("=s"));
    const system_clock_source clock;
    auto found = check({.repairs = true, .now = time_of(clock.utc_now())});
    EXPECT_EQ(found.lost, 1U);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_THAT(lost(), ElementsAre("=s")) << "too early";
    found = check({.repairs = true, .now = time_of(clock.utc_now()) + std::chrono::days(31)});
    EXPECT_EQ(found.repaired, 1U);
    EXPECT_THAT(lost(), IsEmpty());
    EXPECT_EQ(check().lost, 0U);
}

TEST_F(stream_checks, complete_a_removal_that_was_interrupted) {
    put("f", "s", large);
    const fs::path directory = directory_of("f");
    fs::remove(scratch.path_of("f"));
    ASSERT_EQ(check(repair).repaired, 1U);
    const fs::path lost = scratch.path_of(".sluice-streams/lost");
    fs::rename(lost / directory.filename(), lost / (directory.filename().string() + ".removed"));
    EXPECT_EQ(check({.repairs = true, .now = time_point(std::chrono::days(100'000))}).repaired, 1U);
    EXPECT_TRUE(fs::is_empty(lost));
}

TEST_F(stream_checks, leave_streams_whose_file_is_back) {
    put("f", "s", large);
    fs::rename(scratch.path_of("f"), fs::path(scratch.path()).parent_path() / "sluice-streams-away");
    EXPECT_EQ(check(repair).repaired, 1U);
    fs::rename(fs::path(scratch.path()).parent_path() / "sluice-streams-away", scratch.path_of("f"));
    EXPECT_EQ(check({.repairs = true, .now = time_point(std::chrono::days(100'000))}).problems(), 0U);
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_checks, give_a_restored_file_its_streams_without_a_copy) {
    put("f", "s", large);
    copy_reference("f", "restored");
    const fs::path directory = directory_of("f");
    struct stat before{};
    ASSERT_EQ(::stat((directory / "=s").c_str(), &before), 0);
    fs::remove(scratch.path_of("f"));
    const auto found = check(repair);
    EXPECT_EQ(found.restored, 1U);
    EXPECT_EQ(found.repaired, 1U);
    EXPECT_THAT(lines, ElementsAre("restored: restored"));
    EXPECT_EQ(check().problems(), 0U);
    struct stat after{};
    ASSERT_EQ(::stat((directory_of("restored") / "=s").c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    const auto one = stream("restored", "s");
    EXPECT_TRUE(one->data()->transfers_at_once()) << "it is the file's own";
    EXPECT_EQ(read(*one), large);
}

// Copies would be made with the identity of the server, which no quota limits.
TEST_F(stream_checks, leave_copies_of_a_file_to_its_server) {
    put("f", "s", large);
    copy_reference("f", "copy");
    copy_reference("f", "second");
    const auto found = check(repair);
    EXPECT_EQ(found.copies, 2U);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_THAT(lines, UnorderedElementsAre("copy: copied, and not changed since",
                                            "second: copied, and not changed since"));
    EXPECT_THAT(stored(), SizeIs(1));
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_EQ(content("copy", "s"), large);
    EXPECT_EQ(content("second", "s"), large);
}

TEST_F(stream_checks, give_the_streams_of_a_missing_file_to_one_of_its_copies) {
    put("f", "s", large);
    copy_reference("f", "copy");
    copy_reference("f", "second");
    fs::remove(scratch.path_of("f"));
    auto found = check();
    EXPECT_EQ(found.restored, 1U);
    EXPECT_EQ(found.copies, 1U);
    found = check(repair);
    EXPECT_EQ(found.repaired, 1U);
    EXPECT_EQ(check().problems(), 0U);
    EXPECT_THAT(stored(), SizeIs(1));
    EXPECT_EQ(content("copy", "s"), large);
    EXPECT_EQ(content("second", "s"), large);
}

TEST_F(stream_checks, keep_the_streams_of_the_root) {
    put("", "s", large);
    EXPECT_EQ(check(repair).problems(), 0U);
    EXPECT_EQ(content("", "s"), large);
    EXPECT_THAT(stored(), SizeIs(1));
}

TEST_F(stream_checks, keep_the_streams_of_a_file_whose_path_is_longer_than_the_kernel_permits) {
    put("f", "s", large);
    int here = ::open(scratch.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int top = here;
    const std::string name(250, 'n');
    for (unsigned i = 0; i != 20; ++i) {
        ASSERT_EQ(::mkdirat(here, name.c_str(), 0700), 0);
        const int next = ::openat(here, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (here != top) ::close(here);
        here = next;
    }
    ASSERT_EQ(::renameat(top, "f", here, "f"), 0);
    const auto found = check(repair);
    EXPECT_EQ(found.unreadable, 0U);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.referring_files, 1U);
    ASSERT_EQ(::renameat(here, "f", top, "f"), 0);
    ::close(here);
    ::close(top);
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_checks, ignore_directories_that_were_created_after_its_start) {
    put("f", "s", large);
    const system_clock_source clock;
    fs::remove(scratch.path_of("f"));
    const auto found = check({.repairs = true, .now = time_of(clock.utc_now()) - std::chrono::hours(1)});
    EXPECT_EQ(found.unreferenced, 0U);
    EXPECT_THAT(stored(), SizeIs(1));
}

// A server stores the new reference last, while it holds the lock of the store.
TEST_F(stream_checks, remove_a_directory_without_streams_and_without_a_file) {
    put("f", "s", large);
    const fs::path directory = directory_of("f");
    fs::remove(directory / "=s");
    fs::remove(scratch.path_of("f"));
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_FALSE(scratch.exists(".sluice-streams/lost"));
}

TEST_F(stream_checks, report_objects_in_the_store_that_are_not_a_part_of_it) {
    put("f", "s", large);
    const std::string group = directory_of("f").parent_path().filename().string();
    scratch.write(".sluice-streams/stray", "");
    scratch.write(".sluice-streams/" + group + "/other", "");
    scratch.write(".sluice-streams/lost", "");
    const auto found = check(repair);
    EXPECT_EQ(found.strays, 3U);
    EXPECT_EQ(found.directories, 1U) << "the others are checked";
    EXPECT_THAT(lines, UnorderedElementsAre(HasSubstr(".sluice-streams/stray: not a part of the store"),
                                            HasSubstr(".sluice-streams/" + group + "/other: not a part"),
                                            HasSubstr(".sluice-streams/lost: not a part of the store")));
}

TEST_F(stream_checks, count_streams_that_have_been_lost_for_too_long) {
    put("f", "s", large);
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_EQ(check().problems(), 0U);
    const auto found = check({.now = time_point(std::chrono::days(100'000))});
    EXPECT_EQ(found.due, 1U);
    EXPECT_EQ(found.problems(), 1U);
    EXPECT_THAT(lines, ElementsAre(HasSubstr("without a file for too long")));
}

TEST_F(stream_checks, move_nested_stores_to_the_root) {
    put_in_inner_store();
    put("f", "s", large);
    EXPECT_EQ(check().nested, 1U);
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_EQ(check().problems(), 0U);
    ASSERT_EQ(code(at("inner/g")->names()->rename("h", when_taken::refuse)), 0);
    EXPECT_EQ(content("h", "s"), large) << "although it is not in the inner directory any more";
}

TEST_F(stream_checks, create_the_store_of_the_root_for_nested_streams) {
    put_in_inner_store();
    ASSERT_FALSE(scratch.exists(".sluice-streams"));
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_EQ(check().problems(), 0U);
    EXPECT_TRUE(fs::exists(directory_of("inner/g") / "=s"));
}

TEST_F(stream_checks, find_the_streams_of_a_file_that_has_left_the_directory_of_their_store) {
    put_in_inner_store();
    fs::rename(scratch.path_of("inner/g"), scratch.path_of("g"));
    ASSERT_EQ(content("g", "s"), "error " + std::to_string(ENOENT));
    EXPECT_EQ(check().nested, 1U);
    EXPECT_THAT(lines,
                ElementsAre(AllOf(HasSubstr("inner/.sluice-streams/"), HasSubstr("nested directory"))));
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_EQ(content("g", "s"), large);
    EXPECT_FALSE(scratch.exists("inner/.sluice-streams"));
    EXPECT_EQ(check().problems(), 0U);
}

TEST_F(stream_checks, move_lost_streams_of_nested_stores) {
    put_in_inner_store();
    {
        const auto inner = host_volume::open(*multiplexer, scratch.path_of("inner")).value();
        ASSERT_EQ(code(inner->find("g", follow_links::yes).value()->names()->remove()), 0);
    }
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_FALSE(scratch.exists("inner/.sluice-streams"));
    EXPECT_EQ(check().lost, 1U);
}

TEST_F(stream_checks, join_the_streams_of_one_file_from_two_stores) {
    put_in_inner_store();
    put_in_second_store("inner/g", "other");
    EXPECT_EQ(check().nested, 1U);
    EXPECT_EQ(check(repair).repaired, 1U);
    EXPECT_EQ(content("inner/g", "s"), large);
    EXPECT_EQ(content("inner/g", "other"), "second");
    EXPECT_FALSE(scratch.exists("inner/.sluice-streams"));
}

TEST_F(stream_checks, report_streams_of_one_name_in_two_stores) {
    put_in_inner_store();
    put_in_second_store("inner/g", "S");
    const auto found = check(repair);
    EXPECT_EQ(found.split, 1U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("inner/.sluice-streams/"), HasSubstr("of this ID, too"))));
    EXPECT_EQ(content("inner/g", "S"), "second");
}

TEST_F(stream_checks, leave_copies_if_the_original_may_be_in_a_closed_directory) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may search every directory";
    put("f", "s", large);
    copy_reference("f", "copy");
    fs::create_directory(scratch.path_of("closed"));
    fs::rename(scratch.path_of("f"), scratch.path_of("closed/f"));
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0), 0);
    EXPECT_EQ(check(repair).repaired, 0U);
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0700), 0);
    EXPECT_TRUE(stream("closed/f", "s")->data()->transfers_at_once()) << "it has lost its streams";
}

TEST_F(stream_checks, move_nothing_if_a_directory_cannot_be_searched) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may search every directory";
    put("f", "s", large);
    fs::remove(scratch.path_of("f"));
    fs::create_directory(scratch.path_of("closed"));
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0), 0);
    const auto found = check(repair);
    EXPECT_EQ(found.unreadable, 1U);
    EXPECT_THAT(lines, Contains(HasSubstr("closed: cannot be read")));
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_EQ(found.failed, 1U);
    EXPECT_EQ(check({.repairs = true, .skips_unreadable = true}).repaired, 1U);
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0700), 0);
    EXPECT_THAT(lost(), ElementsAre("=s"));
}

TEST_F(stream_checks, report_references_to_streams_of_another_owner_which_do_not_keep_them) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    put("f", "s", large);
    copy_reference("f", "forged");
    ASSERT_EQ(::chown(scratch.path_of("forged").c_str(), 12345, 12345), 0);
    auto found = check(repair);
    EXPECT_EQ(found.foreign, 1U);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_THAT(lines, ElementsAre("forged: refers to streams of another owner"));
    fs::remove(scratch.path_of("f"));
    found = check(repair);
    EXPECT_EQ(found.unreferenced, 1U);
    EXPECT_EQ(found.repaired, 1U);
    found = check({.repairs = true, .now = time_point(std::chrono::days(100'000))});
    EXPECT_EQ(found.repaired, 1U);
    EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(stream_checks, keep_the_streams_of_a_file_whose_owner_was_changed) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    put("f", "s", large);
    ASSERT_EQ(::chown(scratch.path_of("f").c_str(), 12345, 12345), 0);
    EXPECT_EQ(check(repair).problems(), 0U);
    EXPECT_EQ(content("f", "s"), large);
}

class stream_checks_of_mounts : public stream_checks {
protected:
    // Mounts at the directory "mnt", until the end of the test.
    [[nodiscard]] bool mount(const std::string& source, const char* type, unsigned long flags) {
        fs::create_directory(scratch.path_of("mnt"));
        is_mounted_ = ::mount(source.c_str(), scratch.path_of("mnt").c_str(), type, flags, nullptr) == 0;
        return is_mounted_;
    }
    void unmount() {
        if (is_mounted_) EXPECT_EQ(::umount2(scratch.path_of("mnt").c_str(), MNT_DETACH), 0);
        is_mounted_ = false;
    }
    void TearDown() override { unmount(); }

private:
    bool is_mounted_ = false;
};

TEST_F(stream_checks_of_mounts, keep_the_streams_of_files_beneath_a_bind_mount) {
    const io::test_directory outside(fs::current_path().string());
    outside.write("g", "");
    if (not mount(outside.path(), nullptr, MS_BIND)) GTEST_SKIP() << "no right to mount";
    put("mnt/g", "s", large);
    ASSERT_TRUE(scratch.exists(".sluice-streams"));
    const auto found = check(repair);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.referring_files, 1U);
    EXPECT_EQ(content("mnt/g", "s"), large);
}

TEST_F(stream_checks_of_mounts, leave_the_stores_of_other_mounts) {
    const io::test_directory outside(fs::current_path().string());
    outside.write("g", "");
    if (not mount(outside.path(), nullptr, MS_BIND)) GTEST_SKIP() << "no right to mount";
    put_in_volume("mnt", "g", "s");
    ASSERT_FALSE(scratch.exists(".sluice-streams"));
    const auto found = check(repair);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.failed, 0U);
    EXPECT_EQ(content("mnt/g", "s"), large);
}

TEST_F(stream_checks_of_mounts, keep_the_streams_of_copies_on_other_file_systems) {
    if (not mount("test", "tmpfs", 0)) GTEST_SKIP() << "no right to mount";
    put("f", "s", large);
    copy_reference("f", "mnt/copy");
    fs::remove(scratch.path_of("f"));
    const auto found = check(repair);
    EXPECT_EQ(found.problems(), 0U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_EQ(content("mnt/copy", "s"), large);
    EXPECT_THAT(stored(), SizeIs(1));
}

}  // namespace
}  // namespace sluice::vfs
