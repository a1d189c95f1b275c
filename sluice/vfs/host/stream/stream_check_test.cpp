#include "sluice/vfs/host/stream/stream_check.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "sluice/vfs/host/stream/stream_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class stream_checks : public stream_test {
protected:
    stream_check_result check(const stream_check_options& options = {}) {
        lines.clear();
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
        {
            const auto inner = host_volume::open(*multiplexer, scratch.path_of("inner")).value();
            const auto file = inner->find("g", follow_links::yes).value();
            const auto one = file->attached()->open_stream({.name = "s", .create = true}).value();
            ASSERT_EQ(code(one->data()->open_data(both)), 0);
            ASSERT_EQ(code(write(*one, large)), 0);
        }
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
    EXPECT_EQ(found.copies, 1U);
    EXPECT_EQ(found.repaired, 1U);
    EXPECT_EQ(check().problems(), 0U);
    struct stat after{};
    ASSERT_EQ(::stat((directory_of("restored") / "=s").c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    const auto one = stream("restored", "s");
    EXPECT_TRUE(one->data()->transfers_at_once()) << "it is the file's own";
    EXPECT_EQ(read(*one), large);
}

TEST_F(stream_checks, separate_the_streams_of_copies) {
    put("f", "s", large);
    copy_reference("f", "copy");
    copy_reference("f", "second");
    EXPECT_EQ(check().copies, 2U);
    EXPECT_EQ(check(repair).repaired, 2U);
    EXPECT_EQ(check().problems(), 0U);
    EXPECT_THAT(stored(), SizeIs(3));
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_EQ(content("copy", "s"), large);
    EXPECT_EQ(content("second", "s"), large);
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

TEST_F(stream_checks, report_streams_in_two_stores) {
    put_in_inner_store();
    const fs::path in_root = directory_of("inner/g");
    const fs::path in_inner = fs::path(scratch.path_of("inner")) / fs::relative(in_root, scratch.path());
    put("f", "s", large);  // so that there is a store
    const auto mark = load_stream_record(io::directory_handle::open({}, in_inner.string()).value()).value();
    fs::create_directories(in_root);
    const auto second = io::directory_handle::open({}, in_root.string()).value();
    ASSERT_TRUE(store_stream_record(second, *mark, record_storing::replace));
    const auto found = check(repair);
    EXPECT_EQ(found.split, 1U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_THAT(lines, ElementsAre("inner/g: has streams in two stores"));
}

TEST_F(stream_checks, copy_the_streams_of_a_file_if_the_original_may_be_in_a_closed_directory) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may search every directory";
    put("f", "s", large);
    copy_reference("f", "copy");
    fs::create_directory(scratch.path_of("closed"));
    fs::rename(scratch.path_of("f"), scratch.path_of("closed/f"));
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0), 0);
    EXPECT_EQ(check(repair).repaired, 1U);
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0700), 0);
    EXPECT_NE(directory_of("copy"), directory_of("closed/f"));
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
    EXPECT_EQ(found.first_unreadable, "closed");
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_EQ(found.failed, 1U);
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0700), 0);
}

TEST_F(stream_checks, report_references_to_streams_of_another_owner) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    put("f", "s", large);
    copy_reference("f", "forged");
    ASSERT_EQ(::chown(scratch.path_of("forged").c_str(), 12345, 12345), 0);
    const auto found = check(repair);
    EXPECT_EQ(found.foreign, 1U);
    EXPECT_EQ(found.repaired, 0U);
    EXPECT_THAT(lines, ElementsAre("forged: refers to streams of another owner"));
}

}  // namespace
}  // namespace sluice::vfs
