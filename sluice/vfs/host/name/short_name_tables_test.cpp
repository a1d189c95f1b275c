#include "sluice/vfs/host/name/short_name_tables.hpp"

#include <gmock/gmock.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_names.hpp"

// Short names in a directory of the host: its record, and changes by other processes.

namespace sluice::vfs {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

class host_short_names : public testing::Test {
protected:
    host_short_names() : root(std::filesystem::current_path().string()) { reopen(); }

    void reopen(const host_volume_options& options = {.short_names = true}) {
        opened.reset();
        opened = host_volume::open(*multiplexer, root.path(), options).value();
    }
    void put(const std::string& name) const { root.write(name, "content"); }
    [[nodiscard]] node_ptr at(std::string_view path) { return opened->find(path, follow_links::yes).value(); }
    [[nodiscard]] int find_code(std::string_view path) { return code(opened->find(path, follow_links::yes)); }
    [[nodiscard]] std::string short_name_of(std::string_view path) {
        return std::string(at(path)->names()->alternate_name().value().view());
    }
    [[nodiscard]] int set(std::string_view path, std::string_view name) {
        return code(at(path)->names()->set_alternate_name(short_name(name)));
    }
    [[nodiscard]] static std::string name_of(std::size_t number) {
        return "Long name " + std::to_string(number);
    }
    // Creates a file for each short name, and sets all of them at the same time. Returns the
    // outcomes.
    [[nodiscard]] std::vector<int> set_at_once(const std::vector<std::string>& wanted) {
        std::vector<int> outcomes(wanted.size());
        std::barrier begin(static_cast<std::ptrdiff_t>(wanted.size()));
        std::vector<std::jthread> all;
        for (std::size_t i = 0; i != wanted.size(); ++i) {
            put(name_of(i));
            all.emplace_back([&, i, node = at(name_of(i))] {
                begin.arrive_and_wait();
                outcomes[i] = code(node->names()->set_alternate_name(short_name(wanted[i])));
            });
        }
        all.clear();
        return outcomes;
    }
    [[nodiscard]] bool has_record() {
        const auto directory = io::path_handle::open({}, root.path()).value();
        return io::xattr_bytes(directory, short_names_attribute).has_value();
    }
    [[nodiscard]] std::vector<std::string> listed_short_names() {
        std::vector<std::string> found;
        const auto listing = at("")->children()->list().value();
        while (listing->next().value() != nullptr)
            found.emplace_back(listing->alternate_name().view());
        return found;
    }

    io::test_directory root;
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened;
};

TEST_F(host_short_names, follow_changes_of_other_processes) {
    put("Long name a");
    EXPECT_EQ(at("LONGNA~1")->path(), "Long name a");
    put("Long name b");
    EXPECT_EQ(at("longna~2")->path(), "Long name b");
    std::filesystem::rename(root.path_of("Long name b"), root.path_of("Other name"));
    EXPECT_EQ(find_code("LONGNA~2"), ENOENT);
    EXPECT_EQ(at("OTHERN~1")->path(), "Other name");
    put("LONGNA~1");
    EXPECT_EQ(at("longna~1")->path(), "LONGNA~1");
    EXPECT_EQ(short_name_of("Long name a"), "LONGNA~2");
}

TEST_F(host_short_names, of_directories_lead_to_the_files_in_them) {
    ASSERT_EQ(code(opened->create("A directory", {.kind = node_kind::directory})), 0);
    put("A directory/A long file.text");
    EXPECT_EQ(at("ADIREC~1/ALONGF~1.TEX")->path(), "A directory/A long file.text");
    EXPECT_EQ(code(opened->create("adirec~1/alongf~1.tex", {})), EEXIST);
    ASSERT_EQ(code(opened->create("adirec~1/new", {})), 0);
    EXPECT_EQ(at("A directory/NEW")->path(), "A directory/new");
}

TEST_F(host_short_names, are_stored_only_if_files_compete) {
    put("Long name b");
    put("Another name");
    EXPECT_EQ(short_name_of("Long name b"), "LONGNA~1");
    EXPECT_FALSE(has_record());
    put("Long name a");
    EXPECT_EQ(short_name_of("Long name a"), "LONGNA~2");
    if (not opened->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    EXPECT_TRUE(has_record());
    EXPECT_THAT(at("")->attached()->extended_attributes().value(), IsEmpty());
    // Also after a restart, and without the other file.
    std::filesystem::remove(root.path_of("Long name b"));
    reopen();
    EXPECT_EQ(short_name_of("Long name a"), "LONGNA~2");
}

TEST_F(host_short_names, that_a_client_has_chosen_last_until_the_file_is_renamed) {
    if (not opened->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    put("Long name");
    ASSERT_EQ(set("Long name", "CHOSEN.TXT"), 0);
    EXPECT_EQ(short_name_of("Long name"), "CHOSEN.TXT");
    reopen();
    EXPECT_EQ(at("chosen.txt")->path(), "Long name");
    EXPECT_EQ(find_code("LONGNA~1"), ENOENT);
    EXPECT_THAT(listed_short_names(), UnorderedElementsAre("CHOSEN.TXT"));
    ASSERT_EQ(code(at("CHOSEN.TXT")->names()->rename("Longer name", when_taken::refuse)), 0);
    EXPECT_EQ(find_code("CHOSEN.TXT"), ENOENT);
    EXPECT_EQ(short_name_of("Longer name"), "LONGER~1");
    ASSERT_EQ(set("Longer name", ""), 0);
    EXPECT_EQ(short_name_of("Longer name"), "");
    EXPECT_EQ(find_code("LONGER~1"), ENOENT);
}

TEST_F(host_short_names, cannot_be_chosen_twice) {
    if (not opened->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    put("Long name a");
    put("Other name");
    put("plain");
    EXPECT_EQ(set("Other name", "LONGNA~1"), EEXIST);
    EXPECT_EQ(set("Other name", "PLAIN"), EEXIST);
    EXPECT_EQ(set("Other name", "CHOSEN"), 0);
    EXPECT_EQ(set("Long name a", "CHOSEN"), EEXIST);
    EXPECT_EQ(set("Other name", "CHOSEN"), 0);
    EXPECT_EQ(set("Other name", "OTHER"), 0);
    EXPECT_EQ(set("Long name a", "CHOSEN"), 0);
    EXPECT_EQ(set("plain", "SIMPLE"), 0);
    EXPECT_EQ(at("simple")->path(), "plain");
}

// Each thread scans the directory without a mutex, so the record may change before it stores its
// own.
TEST_F(host_short_names, that_several_threads_choose_at_the_same_time_are_all_stored) {
    if (not opened->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    for (int round = 0; round != 30; ++round) {
        const std::string suffix = std::to_string(round);
        const std::vector<std::string> wanted{"A" + suffix, "B" + suffix, "C" + suffix, "D" + suffix};
        EXPECT_THAT(set_at_once(wanted), testing::Each(0));
        for (std::size_t i = 0; i != wanted.size(); ++i)
            ASSERT_EQ(short_name_of(name_of(i)), wanted[i]);
    }
}

TEST_F(host_short_names, that_several_threads_choose_for_different_files_belong_to_one_of_them) {
    if (not opened->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    for (int round = 0; round != 30; ++round) {
        const std::vector<std::string> wanted(4, "SAME" + std::to_string(round));
        ASSERT_THAT(set_at_once(wanted), UnorderedElementsAre(0, EEXIST, EEXIST, EEXIST));
    }
}

TEST_F(host_short_names, are_absent_from_a_directory_as_long_as_it_has_too_many_files) {
    put("Long name");
    const bool is_chosen = set("Long name", "CHOSEN") == 0;
    for (std::size_t number = 0; number != limits::short_named_files_max; ++number)
        std::ofstream(root.path_of(std::to_string(number)));
    EXPECT_EQ(short_name_of("Long name"), "");
    EXPECT_EQ(find_code("LONGNA~1"), ENOENT);
    EXPECT_EQ(set("Long name", "OTHER"), EOPNOTSUPP);
    std::filesystem::remove(root.path_of("0"));
    EXPECT_EQ(short_name_of("Long name"), is_chosen ? "CHOSEN" : "LONGNA~1");
}

TEST_F(host_short_names, do_not_depend_on_a_record_that_is_too_long) {
    put("Long name");
    auto record = encode_short_names({.entries = {{.number = record_number("Long name"),
                                                   .what = short_name_record::kind::chosen,
                                                   .name = short_name("CHOSEN")}}});
    record.resize(short_name_record_bytes_max + 1);
    {
        const auto directory = io::path_handle::open({}, root.path()).value();
        if (not io::store_xattr(directory, short_names_attribute, record))
            GTEST_SKIP() << "no large extended attributes on this file system";
    }
    EXPECT_EQ(short_name_of("Long name"), "LONGNA~1");
    EXPECT_EQ(find_code("CHOSEN"), ENOENT);
    ASSERT_EQ(set("Long name", "OTHER"), 0);
    EXPECT_EQ(short_name_of("Long name"), "OTHER");
}

TEST_F(host_short_names, do_not_change_a_read_only_volume) {
    put("Long name a");
    put("Long name b");
    reopen({.read_only = true, .short_names = true});
    EXPECT_THAT(listed_short_names(), UnorderedElementsAre("LONGNA~1", "LONGNA~2"));
    EXPECT_EQ(set("Long name a", "CHOSEN"), EROFS);
    EXPECT_FALSE(has_record());
}

TEST_F(host_short_names, are_absent_if_they_are_turned_off) {
    put("Long name");
    reopen({});
    EXPECT_THAT(listed_short_names(), UnorderedElementsAre(""));
    EXPECT_EQ(find_code("LONGNA~1"), ENOENT);
    EXPECT_EQ(short_name_of("Long name"), "");
    EXPECT_EQ(set("Long name", "CHOSEN"), EOPNOTSUPP);
}

}  // namespace
}  // namespace sluice::vfs
