#include "sluice/vfs/host/host_snapshots.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <latch>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/node_children.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr snapshot_time day(unsigned number) {
    return std::chrono::sys_days(2026y / 1 / std::chrono::day(number));
}

class host_snapshots_test : public testing::Test {
protected:
    host_snapshots_test() : scratch("/dev/shm") { fs::create_directories(scratch.path_of("snap")); }

    void put(const std::string& path, std::string_view content = "x") {
        fs::create_directories(fs::path(scratch.path_of(path)).parent_path());
        std::ofstream(scratch.path_of(path)) << content;
    }
    std::shared_ptr<host_snapshots> open(std::string_view text, const host_volume_options& options = {}) {
        return host_snapshots::open(*multiplexer, scratch.path(), snapshot_pattern::parse(text).value(),
                                    options)
            .value();
    }
    std::vector<snapshot_time> list() { return open("snap/%Y-%m-%d")->list().value(); }

    io::test_directory scratch;
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
};

TEST_F(host_snapshots_test, list_the_times_of_the_names_that_match_the_latest_first) {
    put("snap/2026-01-02/f");
    put("snap/2026-01-10/f");
    put("snap/2026-01-01/f");
    put("snap/lost+found/f");
    put("snap/2026-01-03");  // a file
    fs::create_symlink("2026-01-01", scratch.path_of("snap/2026-01-04"));
    EXPECT_THAT(list(), ElementsAre(day(10), day(2), day(1)));
}

TEST_F(host_snapshots_test, follow_links_within_a_snapshot_only_if_the_share_does) {
    put("snap/2026-01-02/other/f");
    fs::create_symlink("other", scratch.path_of("snap/2026-01-02/d"));
    fs::create_symlink("/etc", scratch.path_of("snap/2026-01-02/etc"));
    const auto follows = open("snap/%Y-%m-%d")->open(day(2)).value();
    const auto follows_none = open("snap/%Y-%m-%d", {.follow_links = false})->open(day(2)).value();
    EXPECT_TRUE(follows->find("d/f", follow_links::yes));
    EXPECT_FALSE(follows->find("etc/passwd", follow_links::yes)) << "no link leads out of a snapshot";
    EXPECT_FALSE(follows_none->find("d/f", follow_links::yes));
}

TEST_F(host_snapshots_test, open_the_tree_of_a_time_without_changes_and_watches) {
    put("snap/2026-01-01/d/f", "old");
    const auto tested = open("snap/%Y-%m-%d");
    const auto past = tested->open(day(1)).value();
    EXPECT_TRUE(past->features().is_read_only);
    EXPECT_EQ(past->changes(), nullptr);
    EXPECT_EQ(past->crossing_domain(), nullptr);
    const auto found = past->find("D/F", follow_links::yes);
    ASSERT_TRUE(found) << "in any case";
    EXPECT_EQ((*found)->path(), "d/f");
    EXPECT_EQ((*found)->status()->size_bytes, 3U);
    EXPECT_EQ(code((*found)->change({.dos = dos_attributes::hidden})), EROFS);
    EXPECT_EQ(code(past->create("new", {})), EROFS);
}

TEST_F(host_snapshots_test, find_snapshots_by_their_exact_time_and_neither_links_nor_files) {
    put("snap/2026-01-01/f");
    put("snap/2026-01-02");
    fs::create_symlink("/etc", scratch.path_of("snap/2026-01-03"));
    const auto tested = open("snap/%Y-%m-%d");
    EXPECT_EQ(code(tested->open(day(1) + 1s)), ENOENT);
    EXPECT_EQ(code(tested->open(day(2))), ENOENT);
    EXPECT_EQ(code(tested->open(day(3))), ENOENT);
    EXPECT_EQ(code(tested->open(day(4))), ENOENT);
}

TEST_F(host_snapshots_test, show_the_subpath_and_follow_no_link_to_it) {
    put("snap/2026-01-01/a/b/f");
    put("snap/2026-01-02/other");
    fs::create_directories(scratch.path_of("snap/2026-01-03"));
    fs::create_symlink("../2026-01-01/a", scratch.path_of("snap/2026-01-03/a"));
    const auto tested = open("snap/%Y-%m-%d/a/b");
    EXPECT_THAT(tested->list().value(), ElementsAre(day(1)));
    EXPECT_TRUE(tested->open(day(1)).value()->find("f", follow_links::yes));
    EXPECT_EQ(code(tested->open(day(3))), ENOENT);
}

TEST_F(host_snapshots_test, keep_an_open_tree_when_its_snapshot_vanishes) {
    put("snap/2026-01-01/f");
    const auto tested = open("snap/%Y-%m-%d");
    const auto past = tested->open(day(1)).value();
    const auto held = past->find("f", follow_links::yes).value();
    fs::remove_all(scratch.path_of("snap/2026-01-01"));
    EXPECT_EQ(code(past->find("f", follow_links::yes)), ENOENT);
    EXPECT_TRUE(held->status());
    EXPECT_EQ(code(tested->open(day(1))), ENOENT);
    EXPECT_THAT(tested->list().value(), ElementsAre());
}

TEST_F(host_snapshots_test, stay_in_their_directory_when_its_name_changes) {
    put("snap/2026-01-01/f");
    const auto tested = open("snap/%Y-%m-%d");
    fs::rename(scratch.path_of("snap"), scratch.path_of("renamed"));
    fs::create_symlink("/etc", scratch.path_of("snap"));
    EXPECT_THAT(tested->list().value(), ElementsAre(day(1)));
}

TEST_F(host_snapshots_test, list_the_latest_of_too_many) {
    const auto tested = open("snap/%s");
    for (std::size_t i = 0; i != limits::snapshots_listed_max + 10; ++i)
        fs::create_directories(scratch.path_of("snap/" + std::to_string(1000 + i)));
    const auto times = tested->list().value();
    ASSERT_EQ(times.size(), limits::snapshots_listed_max);
    EXPECT_EQ(times.front().time_since_epoch(), 2033s);
    EXPECT_EQ(times.back().time_since_epoch(), 1010s);
}

TEST_F(host_snapshots_test, are_not_behind_a_link_that_a_client_can_create) {
    put("other/.snapshots/2026-01-01/secret");
    put("share/f");
    put("share/d/f");
    const auto open_share = [&](const std::string& text) {
        return code(host_snapshots::open(*multiplexer, scratch.path_of("share"),
                                         snapshot_pattern::parse(text).value(), {}));
    };
    const std::string absolute = scratch.path_of("share/.snapshots/%Y-%m-%d");
    fs::create_symlink("../other/.snapshots", scratch.path_of("share/.snapshots"));
    EXPECT_EQ(open_share(".snapshots/%Y-%m-%d"), ELOOP);
    EXPECT_EQ(open_share(absolute), ELOOP);
    fs::create_symlink("d", scratch.path_of("share/e"));
    fs::create_directories(scratch.path_of("share/d/inside"));
    EXPECT_EQ(open_share("e/inside/%Y-%m-%d"), ELOOP) << "also if it stays in the share";
    fs::remove(scratch.path_of("share/.snapshots"));
    fs::create_directories(scratch.path_of("share/.snapshots"));
    EXPECT_EQ(open_share(".snapshots/%Y-%m-%d"), 0);
    EXPECT_EQ(open_share(absolute), 0);
}

TEST_F(host_snapshots_test, are_found_if_the_root_of_the_share_is_a_link) {
    put("snap/2026-01-01/f");
    fs::create_symlink(".", scratch.path_of("share"));
    const auto opened = host_snapshots::open(*multiplexer, scratch.path_of("share"),
                                             snapshot_pattern::parse("snap/%Y-%m-%d").value(), {});
    ASSERT_TRUE(opened) << "the administrator has named the root";
    EXPECT_THAT((*opened)->list().value(), ElementsAre(day(1)));
}

TEST_F(host_snapshots_test, have_one_domain_of_their_own_however_often_they_are_opened) {
    put("snap/2026-01-01/f");
    put("snap/2026-01-02/f");
    domain_table domains;
    const auto live = host_volume::open(*multiplexer, scratch.path(), {.domains = &domains}).value();
    const auto tested = open("snap/%Y-%m-%d", {.domains = &domains});
    const std::size_t known = domains.all().size();
    for (unsigned i = 0; i != 100; ++i) {
        const auto past = tested->open(day(1 + i % 2)).value();
        ASSERT_EQ(past->domain().number(), tested->domain().number());
    }
    EXPECT_EQ(domains.all().size(), known);
    EXPECT_NE(tested->domain().number(), live->domain().number());
    EXPECT_EQ(tested->domain().policy(), call_policy::never_inline) << "a loop does not wait for them";
}

TEST_F(host_snapshots_test, are_closed_by_a_worker_of_their_domain) {
    struct blocked final : discardable {
        explicit blocked(std::shared_ptr<std::latch> until) noexcept : goes_on(std::move(until)) {}
        ~blocked() override { goes_on->wait(); }
        std::shared_ptr<std::latch> goes_on;  // the worker may use it after the test
    };
    put("snap/2026-01-01/f");
    domain_table domains({.workers_max = 1});
    const auto tested = open("snap/%Y-%m-%d", {.domains = &domains});
    auto past = tested->open(day(1)).value();
    const auto goes_on = std::make_shared<std::latch>(1);
    tested->domain().discard(std::make_unique<blocked>(goes_on), {}, fs_domain::offloaded::yes);
    const std::size_t before = tested->domain().statistics().running + tested->domain().statistics().queued;
    past.reset();
    EXPECT_EQ(before, 1U);
    EXPECT_EQ(tested->domain().statistics().running + tested->domain().statistics().queued, 2U)
        << "the volume waits for the worker";
    goes_on->count_down();
}

TEST_F(host_snapshots_test, report_a_missing_directory) {
    const auto none =
        host_snapshots::open(*multiplexer, scratch.path(), snapshot_pattern::parse("none/%s").value(), {});
    EXPECT_EQ(code(none), ENOENT);
}

}  // namespace
}  // namespace sluice::vfs
