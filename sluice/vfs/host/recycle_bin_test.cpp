#include "sluice/vfs/host/recycle_bin.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/impersonated_volume.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

template <class T>
int code(const result<T>& of) noexcept {
    return of ? 0 : of.error().code();
}

class recycle_bin_test : public testing::Test {
protected:
    void open(recycle_rules rules = {}) {
        opened_.reset();
        opened_ = host_volume::open(*multiplexer_, path_of(""), {.recycle = std::move(rules)}).value();
    }
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return scratch_.path_of("share/" + name);
    }
    [[nodiscard]] std::string own(const std::string& name = {}) const {
        return ".recycle/" + std::to_string(::geteuid()) + (name.empty() ? "" : "/" + name);
    }
    void put(const std::string& name, const std::string& content = "content") const {
        scratch_.write("share/" + name, content);
    }
    [[nodiscard]] int recycle(const std::string& path) {
        return code(opened_->find(path, follow_links::no).value()->names()->recycle());
    }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream file(path_of(name));
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] std::vector<std::string> names(const std::string& path) const {
        std::vector<std::string> found;
        for (const auto& each : fs::directory_iterator(path_of(path)))
            found.push_back(each.path().filename().string());
        return found;
    }
    void tidy(std::chrono::system_clock::time_point now) {
        for (int parts = 0; opened_->tidy(now); ++parts)
            ASSERT_LT(parts, 10'000) << "a pass has an end";
    }

    io::test_directory scratch_{"/dev/shm"};
    bool made_ = fs::create_directory(scratch_.path_of("share"));
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened_;
    const std::chrono::system_clock::time_point now_ = std::chrono::system_clock::now();
};

TEST_F(recycle_bin_test, a_deleted_file_moves_to_the_bin_with_its_directories_streams_and_times) {
    fs::create_directories(path_of("a/b"));
    put("a/b/f", "data");
    open();
    const node_ptr file = opened_->find("a/b/f", follow_links::no).value();
    const metadata before = file->status().value();
    ASSERT_EQ(code(file->attached()->set_extended_attribute("note", std::as_bytes(std::span("x", 1)))), 0);
    ASSERT_EQ(code(file->names()->recycle()), 0);
    EXPECT_FALSE(fs::exists(path_of("a/b/f")));
    EXPECT_EQ(content(own("a/b/f")), "data");
    const node_ptr recycled = opened_->find(own("a/b/f"), follow_links::no).value();
    EXPECT_EQ(recycled->status().value().modified, before.modified);
    EXPECT_EQ(recycled->attached()->extended_attributes().value().size(), 1U);
    EXPECT_TRUE(file->names()->is_recycled());
    EXPECT_FALSE(recycled->names()->is_recycled());
}

TEST_F(recycle_bin_test, a_file_that_two_opens_delete_stays_in_the_bin) {
    put("f");
    open();
    const node_ptr first = opened_->find("f", follow_links::no).value();
    const node_ptr second = opened_->find("f", follow_links::no).value();
    ASSERT_EQ(code(first->names()->recycle()), 0);
    EXPECT_EQ(code(second->names()->recycle()), ENOENT);
    EXPECT_EQ(content(own("f")), "content");
}

TEST_F(recycle_bin_test, a_new_file_of_the_same_name_is_not_the_deleted_one) {
    put("f", "old");
    open();
    const node_ptr old = opened_->find("f", follow_links::no).value();
    ASSERT_EQ(code(old->names()->recycle()), 0);
    put("f", "new");
    EXPECT_EQ(code(old->names()->recycle()), ENOENT);
    EXPECT_EQ(content("f"), "new");
}

TEST_F(recycle_bin_test, files_of_one_name_get_numbers) {
    open();
    for (const char* const text : {"1", "2", "3"}) {
        put("f.tar", text);
        ASSERT_EQ(recycle("f.tar"), 0);
    }
    EXPECT_THAT(names(own()), UnorderedElementsAre("f.tar", "f (2).tar", "f (3).tar"));
    EXPECT_EQ(content(own("f (3).tar")), "3");
    for (int i = 0; i < 100; ++i) {
        put("f.tar", "more");
        ASSERT_EQ(recycle("f.tar"), 0);
    }
    EXPECT_EQ(names(own()).size(), 103U);
}

TEST_F(recycle_bin_test, without_versions_a_file_replaces_the_one_of_its_name) {
    open({.keeps_versions = false});
    for (const char* const text : {"1", "2"}) {
        put("f", text);
        ASSERT_EQ(recycle("f"), 0);
    }
    EXPECT_THAT(names(own()), ElementsAre("f"));
    EXPECT_EQ(content(own("f")), "2");
}

TEST_F(recycle_bin_test, names_of_versions_are_not_too_long_and_keep_whole_characters) {
    EXPECT_EQ(recycle_bin::name_of_version("f.txt", 1), "f.txt");
    EXPECT_EQ(recycle_bin::name_of_version("f.txt", 2), "f (2).txt");
    EXPECT_EQ(recycle_bin::name_of_version(".profile", 2), ".profile (2)");
    EXPECT_EQ(recycle_bin::name_of_version("f", 12), "f (12)");
    const std::string longest = std::string(251, 'n') + ".txt";
    EXPECT_EQ(recycle_bin::name_of_version(longest, 2), std::string(247, 'n') + " (2).txt");
    std::string umlauts;
    for (int i = 0; i < 127; ++i)
        umlauts += "ä";
    const std::string cut = recycle_bin::name_of_version(umlauts, 2);
    EXPECT_LE(cut.size(), 255U);
    EXPECT_EQ(cut, umlauts.substr(0, 250) + " (2)");
}

TEST_F(recycle_bin_test, directories_links_and_excluded_files_are_removed) {
    fs::create_directory(path_of("d"));
    fs::create_directory(path_of("cache"));
    fs::create_symlink("f", path_of("link"));
    put("a.tmp");
    put("cache/f");
    open({.excluded = name_patterns::parse(std::vector<std::string>{"*.TMP", "cache"}).value()});
    for (const char* const name : {"d", "link", "a.tmp", "cache/f"})
        EXPECT_EQ(recycle(name), 0) << name;
    EXPECT_FALSE(fs::exists(path_of(".recycle")));
    EXPECT_THAT(names(""), ElementsAre("cache"));
}

TEST_F(recycle_bin_test, a_file_in_the_bin_is_removed) {
    put("f");
    open();
    ASSERT_EQ(recycle("f"), 0);
    ASSERT_EQ(recycle(own("f")), 0);
    EXPECT_THAT(names(own()), IsEmpty());
}

TEST_F(recycle_bin_test, a_file_that_is_larger_than_the_bin_is_removed) {
    put("f", "12345");
    put("g", "1234");
    open({.bytes_max = 4});
    ASSERT_EQ(recycle("f"), 0);
    ASSERT_EQ(recycle("g"), 0);
    EXPECT_THAT(names(own()), ElementsAre("g"));
}

TEST_F(recycle_bin_test, a_bin_that_is_a_link_or_writable_for_others_is_not_used) {
    fs::create_directory(path_of("elsewhere"));
    put("f");
    open();
    fs::create_directory_symlink("elsewhere", path_of(".recycle"));
    EXPECT_NE(recycle("f"), 0);
    fs::remove(path_of(".recycle"));
    fs::create_directory(path_of(".recycle"));
    ASSERT_EQ(::chmod(path_of(".recycle").c_str(), 0777), 0);
    EXPECT_EQ(recycle("f"), EACCES);
    EXPECT_EQ(code(host_volume::open(*multiplexer_, path_of(""), {.recycle = recycle_rules{}})), EACCES);
    EXPECT_TRUE(fs::exists(path_of("f")));
    ASSERT_EQ(::chmod(path_of(".recycle").c_str(), 0755), 0);
    fs::create_directory_symlink("../elsewhere", path_of(own()));
    EXPECT_NE(recycle("f"), 0);
    EXPECT_TRUE(fs::exists(path_of("f")));
    EXPECT_THAT(names("elsewhere"), IsEmpty());
}

TEST_F(recycle_bin_test, a_link_in_the_tree_of_the_bin_is_not_followed) {
    fs::create_directories(path_of("a/b"));
    fs::create_directory(path_of("elsewhere"));
    put("a/b/f");
    open();
    fs::create_directories(path_of(own("a")));
    ASSERT_EQ(::chmod(path_of(".recycle").c_str(), 0755), 0);
    ASSERT_EQ(::chmod(path_of(own()).c_str(), 0700), 0);
    fs::create_directory_symlink(path_of("elsewhere"), path_of(own("a/b")));
    ASSERT_EQ(recycle("a/b/f"), 0);
    EXPECT_THAT(names("elsewhere"), IsEmpty());
    EXPECT_THAT(names(own("a")), UnorderedElementsAre("b", "f")) << "the deepest directory";
}

TEST_F(recycle_bin_test, only_the_owner_can_enter_the_bin) {
    fs::create_directory(path_of("d"));
    put("d/f");
    open();
    ASSERT_EQ(recycle("d/f"), 0);
    for (const std::string& name : {own(), own("d")}) {
        struct stat status{};
        ASSERT_EQ(::stat(path_of(name).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 07777U, 0700U) << name;
    }
}

TEST_F(recycle_bin_test, files_that_are_too_old_are_removed_with_their_directories) {
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

TEST_F(recycle_bin_test, as_many_files_are_removed_as_exceed_the_size) {
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

TEST_F(recycle_bin_test, the_removal_of_old_files_does_not_follow_links) {
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

class recycle_bin_as_root : public recycle_bin_test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root may act as other accounts";
        ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
        open();
        user_ = impersonated_volume::create(*opened_, {.user_id = 54321, .group_id = 54321}).value();
    }
    void put_for(const std::string& name, uid_t owner) const {
        put(name);
        ASSERT_EQ(::chown(path_of(name).c_str(), owner, owner), 0);
    }
    [[nodiscard]] int recycle_as_user(const std::string& path) {
        return code(user_->find(path, follow_links::no).value()->names()->recycle());
    }
    std::unique_ptr<impersonated_volume> user_;
};

TEST_F(recycle_bin_as_root, a_user_deletes_only_what_the_user_may_remove) {
    fs::create_directory(path_of("closed"));
    fs::create_directory(path_of("open"));
    fs::create_directory(path_of("sticky"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    ASSERT_EQ(::chmod(path_of("sticky").c_str(), 01777), 0);
    put_for("closed/f", 54321);
    put_for("open/f", 12345);
    put_for("sticky/f", 12345);
    put_for("sticky/own", 54321);
    EXPECT_EQ(recycle_as_user("closed/f"), EACCES);
    EXPECT_EQ(recycle_as_user("sticky/f"), EPERM);
    EXPECT_EQ(recycle_as_user("open/f"), 0);
    EXPECT_EQ(recycle_as_user("sticky/own"), 0);
    EXPECT_TRUE(fs::exists(path_of("closed/f")));
    EXPECT_TRUE(fs::exists(path_of("sticky/f")));
    // Each in the bin of its owner.
    EXPECT_EQ(content(".recycle/12345/open/f"), "content");
    EXPECT_EQ(code(user_->find(".recycle/12345/open/f", follow_links::no)), EACCES);
    EXPECT_EQ(code(user_->find(".recycle/54321/sticky/own", follow_links::no)), 0);
}

}  // namespace
}  // namespace sluice::vfs
