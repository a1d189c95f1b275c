#include "sluice/smb/server/open/directory_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::smb::server {

namespace {

class directory_scan_test : public testing::Test {
protected:
    directory_scan_test() {
        make("sub", vfs::node_kind::directory);
        make("sub/One.txt");
        make("sub/two.txt");
        make("sub/three");
        directory = volume.find("sub", vfs::follow_links::yes).value();
        scan.emplace(volume, *directory);
    }

    void make(std::string_view path, vfs::node_kind kind = vfs::node_kind::file) {
        ASSERT_TRUE(volume.create(path, {.kind = kind}));
    }
    [[nodiscard]] std::vector<std::string> all(std::string pattern) {
        scan->start(std::move(pattern));
        return rest();
    }
    // Examines as many names as necessary.
    [[nodiscard]] static const vfs::listed_name* peek(directory_scan& at) {
        std::size_t names_left = 1000;
        return at.peek(names_left).value();
    }
    [[nodiscard]] const vfs::listed_name* peek() { return peek(*scan); }
    [[nodiscard]] std::vector<std::string> rest() {
        std::vector<std::string> names;
        while (const vfs::listed_name* const next = peek()) {
            names.emplace_back(next->name);
            scan->take();
        }
        return names;
    }

    system_clock_source clock;
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    vfs::memory_volume volume{*loop, clock};
    vfs::node_ptr directory;
    std::optional<directory_scan> scan;
};

using names = std::vector<std::string>;

TEST_F(directory_scan_test, the_dots_come_first_then_every_name) {
    names found = all("*");
    ASSERT_EQ(found.size(), 5U);
    EXPECT_EQ(found[0], ".");
    EXPECT_EQ(found[1], "..");
    std::ranges::sort(found);
    EXPECT_EQ(found, (names{".", "..", "One.txt", "three", "two.txt"}));
}

TEST_F(directory_scan_test, no_pattern_means_all) {
    EXPECT_EQ(all("").size(), 5U);
}

TEST_F(directory_scan_test, a_restart_keeps_the_pattern) {
    ASSERT_EQ(all("t*").size(), 2U);
    scan->restart();
    EXPECT_FALSE(scan->has_returned_any());
    EXPECT_EQ(rest().size(), 2U);
}

TEST_F(directory_scan_test, a_pattern_is_compared_without_case) {
    names found = all("*.TXT");
    std::ranges::sort(found);
    EXPECT_EQ(found, (names{"One.txt", "two.txt"}));
}

TEST_F(directory_scan_test, several_stars_in_a_row_match_what_one_matches) {
    EXPECT_EQ(all("***").size(), 5U);
    EXPECT_EQ(all("**o*.***t"), all("*o*.*t"));
    names with_dots = all("**.*");
    std::ranges::sort(with_dots);
    EXPECT_EQ(with_dots, (names{".", "..", "One.txt", "two.txt"})) << "only *.* matches names without a dot";
    EXPECT_EQ(all("*.*").size(), 5U);
}

TEST_F(directory_scan_test, a_call_ends_after_the_names_that_it_may_examine) {
    for (int i = 0; i != 20; ++i)
        make("sub/name" + std::to_string(i));
    scan->start("two*");
    int calls = 0;
    const vfs::listed_name* found = nullptr;
    for (; found == nullptr and not scan->is_at_end(); ++calls) {
        std::size_t names_left = 5;
        found = scan->peek(names_left).value();
        EXPECT_TRUE(found != nullptr or names_left == 0 or scan->is_at_end());
    }
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, "two.txt");
    EXPECT_GE(calls, 4);
    EXPECT_FALSE(scan->is_at_end());
    std::size_t names_left = 0;
    EXPECT_EQ(scan->peek(names_left).value(), found) << "it was examined before";
    EXPECT_EQ(rest(), names{"two.txt"});
    EXPECT_TRUE(scan->is_at_end());
}

TEST_F(directory_scan_test, a_name_without_wildcards_is_returned_as_it_was_created) {
    EXPECT_EQ(all("ONE.TXT"), names{"One.txt"});
    EXPECT_EQ(all("four"), names{});
    EXPECT_EQ(all("."), names{"."});
}

TEST_F(directory_scan_test, a_name_has_its_security_descriptor_however_it_was_found) {
    const std::vector<std::byte> descriptor(20, std::byte{1});
    const auto secured = volume.find("sub/three", vfs::follow_links::no).value();
    ASSERT_TRUE(secured->attached()->set_security(descriptor));
    for (const char* const pattern : {"THREE", "*"}) {
        scan->start(pattern);
        while (const vfs::listed_name* const next = peek()) {
            if (not next->name.starts_with('.')) {
                const bool has_any = next->name == "three";
                EXPECT_EQ(scan->security().value(), has_any ? descriptor : std::vector<std::byte>{})
                    << pattern << ' ' << next->name;
            }
            scan->take();
        }
    }
}

TEST_F(directory_scan_test, a_name_that_is_skipped_does_not_count_as_given) {
    scan->start("three");
    ASSERT_NE(peek(), nullptr);
    scan->skip();
    EXPECT_EQ(peek(), nullptr);
    EXPECT_FALSE(scan->has_returned_any());
}

TEST_F(directory_scan_test, a_name_no_file_can_have_is_just_not_there) {
    EXPECT_EQ(all("a:b"), names{});
    EXPECT_EQ(all(std::string(300, 'x')), names{});
}

TEST_F(directory_scan_test, an_entry_that_was_peeked_at_and_not_taken_comes_again) {
    scan->start("*.txt");
    const std::string first(peek()->name);
    EXPECT_FALSE(scan->has_returned_any());
    EXPECT_EQ(peek()->name, first);
    EXPECT_EQ(rest().size(), 2U);
    EXPECT_TRUE(scan->has_returned_any());
}

TEST_F(directory_scan_test, the_parent_of_the_root_is_the_root) {
    const vfs::node_ptr root = volume.find("", vfs::follow_links::yes).value();
    directory_scan of_root(volume, *root);
    of_root.start("..");
    const vfs::listed_name* const parent = peek(of_root);
    ASSERT_NE(parent, nullptr);
    EXPECT_EQ(parent->name, "..");
    EXPECT_EQ(parent->status.id, root->status().value().id);
}

TEST_F(directory_scan_test, a_new_start_sees_entries_created_since_the_last) {
    ASSERT_EQ(all("*").size(), 5U);
    make("sub/four");
    EXPECT_EQ(rest(), names{}) << "the end stays the end";
    EXPECT_EQ(all("*").size(), 6U);
}

}  // namespace

}  // namespace sluice::smb::server
