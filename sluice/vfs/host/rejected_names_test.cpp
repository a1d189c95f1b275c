#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <string>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_names.hpp"

// Names that a host volume hides, and those that do not exist for its clients.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

name_patterns parsed(std::vector<std::string> texts) {
    return name_patterns::parse(texts).value();
}

class rejected_names_test : public testing::Test {
protected:
    void open(const host_volume_options& options) {
        opened_.reset();
        opened_ = host_volume::open(*multiplexer_, path_of(""), options).value();
    }
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return scratch_.path_of("share/" + name);
    }
    void put(const std::string& name) const { scratch_.write("share/" + name, "content"); }
    [[nodiscard]] result<node_ptr> find(std::string_view path) {
        return opened_->find(path, follow_links::yes);
    }
    [[nodiscard]] std::vector<std::string> names(std::string_view path = {}) {
        std::vector<std::string> found;
        auto listing = find(path).value()->children()->list().value();
        while (const listed_name* next = listing->next().value())
            found.emplace_back(next->name);
        return found;
    }

    io::test_directory scratch_{"/dev/shm"};
    bool made_ = fs::create_directory(scratch_.path_of("share"));
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened_;
};

TEST_F(rejected_names_test, rejected_names_are_not_found_and_not_listed) {
    put("a.exe");
    put("a.txt");
    fs::create_directories(path_of("private/inner"));
    put("private/inner/f");
    open({.rejected_names = parsed({"*.exe", "private"})});
    EXPECT_THAT(names(), ElementsAre("a.txt"));
    for (const char* const path :
         {"a.exe", "A.EXE", "private", "PRIVATE", "private/inner", "private/inner/f"}) {
        const int expected = std::string_view(path).contains('/') ? ENOTDIR : ENOENT;
        EXPECT_EQ(code(find(path)), expected) << path;
        EXPECT_EQ(code(opened_->find_with_status(path, follow_links::no, {.read = true, .write = false},
                                                 name_match::any_case)),
                  expected)
            << path;
        EXPECT_EQ(code(opened_->find_directory(path)), expected) << path;
    }
    // The second lookup of a known file takes another way.
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(code(opened_->find_with_status("a.txt", follow_links::yes, {.read = true, .write = false},
                                                 name_match::any_case)),
                  0);
}

TEST_F(rejected_names_test, rejected_names_cannot_be_created_renamed_or_linked_to) {
    put("f");
    fs::create_directory(path_of("d"));
    open({.rejected_names = parsed({"*.exe"})});
    EXPECT_EQ(code(opened_->create("a.exe", {})), EACCES);
    EXPECT_EQ(code(opened_->create("A.Exe", {.kind = node_kind::directory})), EACCES);
    EXPECT_NE(code(opened_->create("x.exe/f", {})), 0);
    EXPECT_EQ(code(find("f").value()->names()->rename("f.exe", when_taken::replace)), EACCES);
    EXPECT_EQ(code(find("f").value()->names()->link("d/f.exe", when_taken::refuse)), EACCES);
    EXPECT_EQ(code(find("d").value()->names()->rename("d.exe", when_taken::refuse)), EACCES);
    EXPECT_EQ(code(find("d").value()->names()->rename("e", when_taken::refuse)), 0);
    EXPECT_THAT(names(), UnorderedElementsAre("f", "e"));
}

TEST_F(rejected_names_test, links_and_short_names_do_not_lead_to_rejected_names) {
    put("a program.exe");
    fs::create_symlink("a program.exe", path_of("link"));
    fs::create_directory(path_of("private"));
    put("private/f");
    fs::create_symlink("private", path_of("way"));
    open({.short_names = true, .rejected_names = parsed({"*program*", "private"})});
    EXPECT_EQ(code(find("link")), ENOENT);
    EXPECT_EQ(code(find("way")), ENOENT);
    EXPECT_EQ(code(find("way/f")), ENOENT);
    EXPECT_EQ(code(opened_->find_directory("way")), ENOENT);
    EXPECT_NE(code(opened_->create("way/g", {})), 0);
    EXPECT_EQ(code(find("APROGR~1.EXE")), ENOENT);
    EXPECT_EQ(code(opened_->create("APROGR~1.EXE", {})), EACCES);
    EXPECT_EQ(code(opened_->find("link", follow_links::no)), 0) << "the link itself has another name";
}

TEST_F(rejected_names_test, links_do_not_lead_to_a_rejected_name_that_looks_like_the_kernels_remark) {
    put("secret (deleted)");
    put("plain (deleted)");
    fs::create_symlink("secret (deleted)", path_of("link"));
    fs::create_symlink("plain (deleted)", path_of("other"));
    open({.rejected_names = parsed({"secret*"})});
    EXPECT_EQ(code(find("link")), ENOENT);
    EXPECT_EQ(code(find("other")), 0);
    EXPECT_EQ(code(find("plain (deleted)")), 0);
}

// Linux reports no path of more than 4095 bytes.
TEST_F(rejected_names_test, links_do_not_lead_to_a_rejected_name_that_is_too_deep_for_a_path) {
    const std::string name(250, 'n');
    std::string half = name;
    for (int i = 0; i != 9; ++i)
        half += "/" + name;
    fs::create_directories(path_of(half));
    fs::create_directories(path_of("second/" + half + "/private"));
    put("second/" + half + "/private/f");
    fs::create_symlink(half, path_of("way"));
    fs::create_symlink("second/" + half + "/private/f", path_of(half + "/link"));
    fs::rename(path_of("second"), path_of("way/second"));
    open({.rejected_names = parsed({"private"})});
    EXPECT_EQ(code(find("way")), 0);
    EXPECT_EQ(code(find("way/link")), ENOENT);
    fs::rename(path_of("way/second"), path_of("second"));  // for its removal
}

TEST_F(rejected_names_test, a_directory_with_rejected_names_moves_and_is_not_empty) {
    fs::create_directory(path_of("d"));
    put("d/a.exe");
    open({.rejected_names = parsed({"*.exe"})});
    EXPECT_THAT(names("d"), ElementsAre());
    EXPECT_EQ(code(remove(*find("d").value())), ENOTEMPTY);
    EXPECT_EQ(code(find("d").value()->names()->rename("e", when_taken::refuse)), 0);
    EXPECT_TRUE(fs::exists(path_of("e/a.exe")));
}

TEST_F(rejected_names_test, hidden_names_have_the_attribute_whatever_is_stored) {
    put("a.tmp");
    put(".dot");
    put("b");
    open({.hidden_names = parsed({"*.tmp", ".*"})});
    const auto hidden = dos_attributes::archive | dos_attributes::hidden;
    EXPECT_EQ(find("A.TMP").value()->status().value().dos, hidden);
    EXPECT_EQ(find(".dot").value()->status().value().dos, hidden);
    EXPECT_EQ(find("b").value()->status().value().dos, dos_attributes::archive);
    ASSERT_EQ(code(find("a.tmp").value()->change({.dos = dos_attributes::archive})), 0);
    EXPECT_EQ(find("a.tmp").value()->status().value().dos, hidden);
    auto listing = find("").value()->children()->list().value();
    while (const listed_name* next = listing->next().value())
        EXPECT_EQ(next->status.dos, next->name == "b" ? dos_attributes::archive : hidden) << next->name;
    EXPECT_EQ(find("").value()->status().value().dos, dos_attributes::none);
    const auto made = opened_->create("c.tmp", {.dos = dos_attributes::archive});
    ASSERT_EQ(code(made), 0);
    EXPECT_EQ((*made)->status().value().dos, hidden);
}

}  // namespace
}  // namespace sluice::vfs
