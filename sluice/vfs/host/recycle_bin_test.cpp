#include "sluice/vfs/host/recycle_bin.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/recycle_bin_testing.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

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
    EXPECT_TRUE(file->names()->has_lost_name());
    EXPECT_FALSE(recycled->names()->has_lost_name());
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
    EXPECT_THAT(names(".recycle"), IsEmpty());
    EXPECT_THAT(names(""), UnorderedElementsAre(".recycle", "cache"));
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

TEST_F(recycle_bin_test, a_link_in_the_place_of_a_bin_is_not_used) {
    fs::create_directory(path_of("elsewhere"));
    put("f");
    open();
    fs::remove(path_of(".recycle"));
    fs::create_directory_symlink("elsewhere", path_of(".recycle"));
    EXPECT_NE(recycle("f"), 0);
    fs::remove(path_of(".recycle"));
    fs::create_directory(path_of(".recycle"));
    fs::create_directory_symlink("../elsewhere", path_of(own()));
    EXPECT_NE(recycle("f"), 0);
    EXPECT_TRUE(fs::exists(path_of("f")));
    EXPECT_THAT(names("elsewhere"), IsEmpty());
}

unsigned mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
}

TEST_F(recycle_bin_test, a_bin_to_which_others_may_write_is_repaired) {
    fs::create_directory(path_of("d"));
    put("d/f");
    put("d/g");
    open();
    ASSERT_EQ(::chmod(path_of(".recycle").c_str(), 0777), 0);
    ASSERT_EQ(recycle("d/f"), 0);
    EXPECT_EQ(mode_of(path_of(".recycle")), 0755U);
    for (const std::string& name : {own(), own("d")})
        ASSERT_EQ(::chmod(path_of(name).c_str(), 0777), 0);
    ASSERT_EQ(recycle("d/g"), 0);
    EXPECT_EQ(mode_of(path_of(own())), 0755U);
    EXPECT_EQ(mode_of(path_of(own("d"))), 0755U);
}

TEST_F(recycle_bin_test, the_bin_and_its_directories_have_their_modes_whatever_the_umask_is) {
    fs::create_directory(path_of("d"));
    put("d/f");
    const mode_t before = ::umask(0777);
    open();
    const int done = recycle("d/f");
    (void)::umask(before);
    ASSERT_EQ(done, 0);
    EXPECT_EQ(mode_of(path_of(".recycle")), 0755U);
    EXPECT_EQ(mode_of(path_of(own())), 0700U);
    EXPECT_EQ(mode_of(path_of(own("d"))), 0700U);
}

TEST_F(recycle_bin_test, a_directory_with_other_files_does_not_become_the_bin) {
    // By their names, these could be of owners.
    fs::create_directories(path_of("Documents/2025"));
    put("Documents/2025/letter");
    put("f");
    open({.directory = "Documents", .age_max = std::chrono::days(1)});
    EXPECT_THAT(opened_->take_recycle_problem(), testing::HasSubstr("with other files"));
    EXPECT_EQ(recycle("f"), EACCES);
    EXPECT_EQ(recycle("Documents/2025/letter"), EACCES) << "it could not be restored";
    tidy(now_ + std::chrono::days(9));
    EXPECT_TRUE(fs::exists(path_of("Documents/2025/letter")));
    fs::rename(path_of("Documents/2025"), path_of("2025"));
    EXPECT_EQ(recycle("f"), 0) << "it is empty";
    open({.directory = "Documents"});
    put("g");
    EXPECT_EQ(recycle("g"), 0) << "it has the mark";
}

TEST_F(recycle_bin_test, clients_cannot_create_rename_or_remove_the_bin) {
    fs::create_directory(path_of("d"));
    put("f");
    open();
    const creation_request directory{.kind = node_kind::directory};
    const auto renamed = [&](const char* from, const char* to) {
        return code(opened_->find(from, follow_links::no).value()->names()->rename(to, when_taken::replace));
    };
    EXPECT_EQ(renamed(".recycle", "elsewhere"), EACCES);
    EXPECT_EQ(code(opened_->find(".recycle", follow_links::no).value()->names()->remove()), EACCES);
    EXPECT_EQ(renamed("d", ".recycle"), EACCES);
    EXPECT_EQ(code(opened_->create(".recycle/x", {})), EACCES);
    EXPECT_EQ(renamed("f", ".recycle/x"), EACCES);
    fs::remove(path_of(".recycle"));
    EXPECT_EQ(code(opened_->create(".recycle", directory)), EACCES);
    EXPECT_EQ(code(opened_->create(".Recycle", directory)), EACCES);
    EXPECT_EQ(renamed("d", ".recycle"), EACCES);
    EXPECT_EQ(code(opened_->create("d/.recycle", directory)), 0) << "only the root has a bin";
    EXPECT_EQ(recycle("f"), 0) << "it is created again";
}

TEST_F(recycle_bin_test, a_file_with_the_inode_number_of_a_former_bin_is_not_the_bin) {
    fs::create_directory(path_of("d"));
    open();
    struct stat status{};
    ASSERT_EQ(::stat(path_of("d").c_str(), &status), 0);
    opened_->tree().bin_state.inode = status.st_ino;
    EXPECT_EQ(code(opened_->create("d/f", {})), 0);
    EXPECT_EQ(code(opened_->find("d", follow_links::no).value()->names()->rename("e", when_taken::refuse)),
              0);
}

TEST_F(recycle_bin_test, a_directory_whose_name_differs_in_case_is_not_the_bin) {
    fs::create_directory(path_of(".Recycle"));
    put(".Recycle/f");
    open();
    ASSERT_EQ(recycle(".Recycle/f"), 0);
    EXPECT_TRUE(fs::exists(path_of(own(".Recycle/f"))));
}

TEST_F(recycle_bin_test, a_volume_opens_although_its_bin_cannot_be_used) {
    put(".recycle");
    put("f");
    open();
    EXPECT_NE(opened_->take_recycle_problem(), "");
    EXPECT_NE(recycle("f"), 0);
    EXPECT_TRUE(fs::exists(path_of("f")));
}

TEST_F(recycle_bin_test, a_file_that_another_server_has_recycled_has_lost_its_name) {
    fs::create_directory(path_of("d"));
    put("d/f");
    // One without a bin, and one with another.
    const auto without = host_volume::open(*multiplexer_, path_of(""), {}).value();
    const auto other =
        host_volume::open(*multiplexer_, path_of(""), {.recycle = recycle_rules{.directory = ".bin"}})
            .value();
    open();
    std::vector<node_ptr> found;
    for (const auto& each : {std::ref(without), std::ref(other)})
        for (const char* const name : {"d/f", "D/F"})
            found.push_back(each.get()->find(name, follow_links::no).value());
    const node_ptr stream = found.front()->attached()->open_stream({.name = "s", .create = true}).value();
    for (const node_ptr& each : found)
        EXPECT_FALSE(each->names()->has_lost_name());
    EXPECT_FALSE(stream->names()->has_lost_name());
    ASSERT_EQ(recycle("d/f"), 0);
    for (const node_ptr& each : found)
        EXPECT_TRUE(each->names()->has_lost_name());
    EXPECT_TRUE(stream->names()->has_lost_name());
    EXPECT_FALSE(opened_->find(own("d/f"), follow_links::no).value()->names()->has_lost_name());
}

TEST_F(recycle_bin_test, a_link_and_a_file_that_was_found_through_one_have_their_names) {
    fs::create_directory(path_of("d"));
    put("d/f");
    fs::create_directory_symlink("d", path_of("l"));
    open();
    EXPECT_FALSE(opened_->find("L/F", follow_links::yes).value()->names()->has_lost_name());
    EXPECT_FALSE(opened_->find("l", follow_links::no).value()->names()->has_lost_name());
    EXPECT_FALSE(opened_->find("", follow_links::no).value()->names()->has_lost_name());
}

TEST_F(recycle_bin_test, a_file_whose_name_seems_to_be_that_of_a_deleted_one_moves) {
    put("f (deleted)");
    open();
    ASSERT_EQ(recycle("f (deleted)"), 0);
    EXPECT_THAT(names(own()), ElementsAre("f (deleted)"));
}

TEST_F(recycle_bin_test, without_versions_files_of_deep_directories_do_not_replace_each_other) {
    std::string deep;
    for (unsigned i = 0; i <= limits::recycled_depth_max; ++i)
        deep += "d/";
    open({.keeps_versions = false});
    for (const char* const last : {"x", "y"}) {
        fs::create_directories(path_of(deep + last));
        put(deep + last + "/f", last);
        ASSERT_EQ(recycle(deep + last + "/f"), 0);
    }
    std::string deepest;
    for (unsigned i = 0; i != limits::recycled_depth_max; ++i)
        deepest += "d/";
    EXPECT_THAT(names(own(deepest)), UnorderedElementsAre("f", "f (2)"));
}

TEST_F(recycle_bin_test, a_directory_of_the_bin_has_the_rights_of_the_one_that_the_files_were_in) {
    fs::create_directory(path_of("d"));
    put("d/f");
    put("d/g");
    open();
    const auto descriptor_of = [&](const std::string& name) {
        return opened_->find(name, follow_links::no).value()->attached()->security().value();
    };
    const std::vector<std::byte> first(40, std::byte{1});
    const std::vector<std::byte> second(44, std::byte{2});
    const node_ptr directory = opened_->find("d", follow_links::no).value();
    ASSERT_EQ(code(directory->attached()->set_security(first)), 0);
    ASSERT_EQ(recycle("d/f"), 0);
    EXPECT_EQ(descriptor_of(own("d")), first);
    EXPECT_THAT(descriptor_of(own()), IsEmpty()) << "as the root";
    ASSERT_EQ(code(directory->attached()->set_security(second)), 0);
    ASSERT_EQ(recycle("d/g"), 0);
    EXPECT_EQ(descriptor_of(own("d")), second);
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

TEST_F(recycle_bin_test, a_file_that_a_rename_replaces_is_in_the_bin) {
    fs::create_directory(path_of("d"));
    put("d/f", "old");
    put("new", "new");
    open();
    const node_ptr replaced = opened_->find("d/f", follow_links::no).value();
    const node_ptr renamed = opened_->find("new", follow_links::no).value();
    ASSERT_EQ(code(renamed->names()->rename("d/f", when_taken::replace)), 0);
    EXPECT_EQ(content("d/f"), "new");
    EXPECT_EQ(content(own("d/f")), "old");
    EXPECT_EQ(fs::hard_link_count(path_of(own("d/f"))), 1U);
    EXPECT_TRUE(replaced->names()->has_lost_name());
    EXPECT_FALSE(renamed->names()->has_lost_name());
    EXPECT_EQ(code(replaced->names()->recycle()), ENOENT);
    EXPECT_EQ(content("d/f"), "new");
}

TEST_F(recycle_bin_test, a_file_that_a_link_replaces_is_in_the_bin) {
    put("f", "old");
    put("new", "new");
    open();
    const node_ptr linked = opened_->find("new", follow_links::no).value();
    ASSERT_EQ(code(linked->names()->link("f", when_taken::replace)), 0);
    EXPECT_EQ(content("f"), "new");
    EXPECT_EQ(content(own("f")), "old");
}

TEST_F(recycle_bin_test, a_rename_that_fails_leaves_the_bin_as_it_was) {
    fs::create_directory(path_of("d"));
    put("f", "content");
    open();
    const node_ptr renamed = opened_->find("d", follow_links::no).value();
    EXPECT_NE(code(renamed->names()->rename("f", when_taken::replace)), 0);
    EXPECT_EQ(content("f"), "content");
    EXPECT_THAT(names(own()), IsEmpty());
}

TEST_F(recycle_bin_test, a_rename_to_another_case_or_within_the_bin_recycles_nothing) {
    put("f");
    put("g", "replaced");
    open();
    ASSERT_EQ(code(opened_->find("f", follow_links::no).value()->names()->rename("F", when_taken::replace)),
              0);
    EXPECT_THAT(names(".recycle"), IsEmpty());
    ASSERT_EQ(recycle("F"), 0);
    ASSERT_EQ(recycle("g"), 0);
    const node_ptr inside = opened_->find(own("F"), follow_links::no).value();
    ASSERT_EQ(code(inside->names()->rename(own("g"), when_taken::replace)), 0);
    EXPECT_THAT(names(own()), ElementsAre("g"));
    EXPECT_EQ(content(own("g")), "content");
}

TEST_F(recycle_bin_test, without_versions_a_replaced_file_replaces_the_one_of_its_name) {
    put("f", "1");
    open({.keeps_versions = false});
    for (const char* const text : {"2", "3"}) {
        put("new", text);
        const node_ptr renamed = opened_->find("new", follow_links::no).value();
        ASSERT_EQ(code(renamed->names()->rename("f", when_taken::replace)), 0);
    }
    EXPECT_EQ(content("f"), "3");
    EXPECT_THAT(names(own()), ElementsAre("f"));
    EXPECT_EQ(content(own("f")), "2");
}

TEST_F(recycle_bin_test, without_versions_a_directory_of_the_name_stays) {
    put("f");
    open({.keeps_versions = false});
    fs::create_directories(path_of(own("f/d")));
    ASSERT_EQ(::chmod(path_of(".recycle").c_str(), 0755), 0);
    ASSERT_EQ(::chmod(path_of(own()).c_str(), 0700), 0);
    ASSERT_EQ(recycle("f"), 0);
    EXPECT_THAT(names(own()), UnorderedElementsAre("f", "f (2)"));
}

TEST_F(recycle_bin_test, one_name_of_a_file_with_two_moves) {
    put("f");
    fs::create_hard_link(path_of("f"), path_of("g"));
    open({.keeps_versions = false});
    ASSERT_EQ(recycle("f"), 0);
    EXPECT_TRUE(fs::exists(path_of("g")));
    // The name in the bin is that of the same file.
    fs::create_hard_link(path_of("g"), path_of("f"));
    ASSERT_EQ(recycle("f"), 0);
    EXPECT_FALSE(fs::exists(path_of("f")));
    EXPECT_THAT(names(own()), ElementsAre("f"));
}

TEST_F(recycle_bin_test, a_file_of_the_bin_that_is_found_by_a_link_is_removed) {
    put("f");
    open();
    ASSERT_EQ(recycle("f"), 0);
    fs::create_directory_symlink(own(), path_of("bin"));
    const node_ptr found = opened_->find("bin/f", follow_links::yes).value();
    EXPECT_FALSE(found->names()->has_lost_name());
    EXPECT_EQ(code(found->names()->recycle()), 0);
    EXPECT_THAT(names(own()), IsEmpty());
}

TEST_F(recycle_bin_test, a_failure_is_for_the_log_once) {
    put("f");
    open();
    fs::remove(path_of(".recycle"));
    put(".recycle");
    EXPECT_EQ(recycle("f"), EACCES);
    EXPECT_EQ(opened_->take_recycle_problem(), "f: open the recycle bin: Not a directory");
    EXPECT_EQ(opened_->take_recycle_problem(), "");
}

TEST_F(recycle_bin_test, the_bin_is_hidden) {
    put("f");
    open();
    ASSERT_EQ(recycle("f"), 0);
    const node_ptr bin = opened_->find(".recycle", follow_links::no).value();
    EXPECT_TRUE(has(bin->status().value().dos, dos_attributes::hidden));
    EXPECT_FALSE(
        has(opened_->find(own(), follow_links::no).value()->status().value().dos, dos_attributes::hidden));
}

TEST_F(recycle_bin_test, a_bin_with_a_rejected_name_is_used_but_does_not_exist_for_clients) {
    put("f");
    opened_ = host_volume::open(
                  *multiplexer_, path_of(""),
                  {.rejected_names = name_patterns::parse(std::vector<std::string>{".recycle"}).value(),
                   .recycle = recycle_rules{}})
                  .value();
    const node_ptr file = opened_->find("f", follow_links::no).value();
    ASSERT_EQ(code(file->names()->recycle()), 0);
    EXPECT_TRUE(file->names()->has_lost_name());
    EXPECT_EQ(content(own("f")), "content");
    EXPECT_EQ(code(opened_->find(own("f"), follow_links::no)), ENOTDIR);
}

}  // namespace
}  // namespace sluice::vfs
