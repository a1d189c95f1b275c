#include "sluice/vfs/host/host_listing.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/path/xattr.hpp"

// The short names of unfinished listings.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

class host_listing_short_names : public testing::Test {
protected:
    host_listing_short_names() {
        for (const char* name : {"Long name a", "Long name b", "Long name c"})
            root.write(name, "content");
    }
    [[nodiscard]] io::path_handle directory(const std::string& path) const {
        return io::path_handle::open({}, path).value();
    }
    [[nodiscard]] std::unique_ptr<directory_listing> begin(const io::handle& of) {
        auto listing = list_host_directory(tree, of).value();
        EXPECT_NE(listing->next().value(), nullptr);
        return listing;
    }

    io::test_directory root{fs::current_path().string()};
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    host_tree tree{*loop, directory(root.path()), {.short_names = true}, reports_all_changes::yes};
    io::path_handle there = directory(root.path());
};

TEST_F(host_listing_short_names, do_not_keep_the_table_of_the_directory) {
    std::vector<std::unique_ptr<directory_listing>> unfinished;
    for (int count = 0; count != 3; ++count) {
        unfinished.push_back(begin(there));
        EXPECT_FALSE(unfinished.back()->alternate_name().empty());
    }
    const std::weak_ptr table = tree.last_short_names_in(there);
    EXPECT_EQ(table.use_count(), 1) << "only the volume keeps it";
}

TEST_F(host_listing_short_names, are_returned_after_the_volume_has_dropped_the_table) {
    const auto listing = begin(there);
    std::set<std::string> found{std::string(listing->alternate_name().view())};
    const std::weak_ptr table = tree.last_short_names_in(there);
    const io::test_directory other{fs::current_path().string()};
    for (std::size_t number = 0; number != limits::short_name_directories_max; ++number) {
        const std::string path = other.path_of(std::to_string(number));
        fs::create_directory(path);
        EXPECT_NE(tree.short_names_in(directory(path)), nullptr);
    }
    EXPECT_TRUE(table.expired());
    while (listing->next().value() != nullptr)
        found.insert(std::string(listing->alternate_name().view()));
    EXPECT_EQ(found, (std::set<std::string>{"LONGNA~1", "LONGNA~2", "LONGNA~3"}));
}

TEST_F(host_listing_short_names, are_computed_only_if_they_are_requested) {
    const auto listing = begin(there);
    while (listing->next().value() != nullptr) {}
    EXPECT_FALSE(io::xattr_bytes(there, short_names_attribute)) << "no record was written";
}

}  // namespace
}  // namespace sluice::vfs
