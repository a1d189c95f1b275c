#include "sluice/io/path/directory_handle.hpp"

#include <array>
#include <filesystem>
#include <set>
#include <vector>

#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using directory_handle_on = on_each_volume;

std::multiset<std::string> list(const directory_handle& directory, std::size_t entry_count,
                                std::size_t storage_bytes, std::string_view pattern = {}) {
    std::vector<directory_entry> entries(entry_count);
    std::vector<char> storage(storage_bytes);
    std::multiset<std::string> names;
    std::uint64_t position = 0;
    for (;;) {
        const auto part = directory.enumerate(
            {.entries = entries, .storage = storage, .position = position, .pattern = pattern});
        EXPECT_TRUE(part) << part.error().message();
        if (not part or part->entries.empty()) return names;
        for (const auto& entry : part->entries)
            names.emplace(entry.name);
        position = part->next;
    }
}

TEST_P(directory_handle_on, ten_thousand_entries_are_returned_once_each_through_small_buffers) {
    constexpr std::size_t count = 10'000;
    std::multiset<std::string> made;
    fs::create_directory(directory.path_of("many"));
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = "entry " + std::to_string(i);
        directory.write("many/" + name, "");
        made.insert(name);
    }
    const auto many = directory_handle::open(directory.anchor(), "many").value();
    EXPECT_EQ(list(many, 7, 1024), made);
    EXPECT_EQ(list(many, 1000, limits::enumerate_storage_bytes_min), made);
    EXPECT_EQ(list(many, 1, 64 << 10), made);
    EXPECT_EQ(list(many, 20'000, 1 << 20), made);
}

TEST_P(directory_handle_on, entries_have_inode_type_and_only_the_requested_status) {
    directory.write("file", "12345");
    fs::create_directory(directory.path_of("directory"));
    fs::create_symlink("nowhere", directory.path_of("link"));
    const auto opened = directory_handle::open(directory.anchor(), ".").value();
    std::array<directory_entry, 10> entries;
    std::array<char, 4096> storage{};
    const auto plain = opened.enumerate({.entries = entries, .storage = storage}).value();
    ASSERT_EQ(plain.entries.size(), 3U);
    for (const auto& entry : plain.entries)
        EXPECT_EQ(entry.status.known, stat_fields::none);

    const auto part = opened.enumerate({.entries = entries, .storage = storage, .wanted = stat_fields::size});
    ASSERT_TRUE(part) << part.error().message();
    for (const auto& entry : part->entries) {
        EXPECT_EQ(entry.inode, status_at(directory.anchor(), entry.name).value().inode);
        EXPECT_TRUE(entry.status.knows(stat_fields::size));
        EXPECT_EQ(entry.name.data()[entry.name.size()], '\0');
        if (entry.name == "file") {
            EXPECT_EQ(entry.type, file_type::regular);
            EXPECT_EQ(entry.status.size_bytes, 5U);
        }
        if (entry.name == "directory") EXPECT_EQ(entry.type, file_type::directory);
        if (entry.name == "link") EXPECT_EQ(entry.type, file_type::symlink);
    }
}

TEST_P(directory_handle_on, a_pattern_selects_names) {
    for (const char* name : {"a.txt", "b.txt", "c.dat"})
        directory.write(name, "");
    const auto opened = directory_handle::open(directory.anchor(), ".").value();
    EXPECT_EQ(list(opened, 1, 300, "*.txt"), (std::multiset<std::string>{"a.txt", "b.txt"}));
    EXPECT_TRUE(list(opened, 1, 300, "*.none").empty());
}

TEST_P(directory_handle_on, a_listing_can_be_started_again) {
    directory.write("a", "");
    const auto opened = directory_handle::open(directory.anchor(), ".").value();
    EXPECT_EQ(list(opened, 5, 1000).size(), 1U);
    directory.write("b", "");
    EXPECT_EQ(list(opened, 5, 1000).size(), 2U);
}

TEST_P(directory_handle_on, too_small_a_storage_is_an_error_and_not_the_end) {
    directory.write(std::string(255, 'n'), "");
    const auto opened = directory_handle::open(directory.anchor(), ".").value();
    std::array<directory_entry, 4> entries;
    std::array<char, 64> storage{};
    std::uint64_t position = 0;
    for (int part_count = 0; part_count < 4; ++part_count) {
        const auto part = opened.enumerate({.entries = entries, .storage = storage, .position = position});
        if (not part) {
            EXPECT_EQ(part.error(), std::errc::invalid_argument);
            return;
        }
        position = part->next;
    }
    FAIL() << "the long name was neither listed nor an error";
}

TEST_P(directory_handle_on, creation_decides_what_happens_to_an_existing_directory) {
    const auto& base = directory.anchor();
    EXPECT_EQ(directory_handle::open(base, "d").error(), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(directory_handle::open(base, "d", mode::read, creation::only_if_not_exist));
    EXPECT_EQ(directory_handle::open(base, "d", mode::read, creation::only_if_not_exist).error(),
              std::errc::file_exists);
    EXPECT_TRUE(directory_handle::open(base, "d", mode::read, creation::if_needed));
    EXPECT_TRUE(directory_handle::open(base, "e/", mode::read, creation::if_needed));
    EXPECT_EQ(directory_handle::open(base, "d", mode::read, creation::always_new).error(),
              std::errc::invalid_argument);
    directory.write("file", "");
    EXPECT_EQ(directory_handle::open(base, "file", mode::read, creation::if_needed).error(),
              std::errc::not_a_directory);
}

TEST_P(directory_handle_on, creation_beneath_a_confined_one_does_not_lead_outside) {
    fs::create_directories(directory.path_of("share"));
    fs::create_directories(directory.path_of("outside"));
    fs::create_directory_symlink("../outside", directory.path_of("share/out"));
    const auto share = path_handle::open(directory.anchor(), "share", confinement::beneath).value();
    for (const char* path : {"../x", "out/x", "/x"})
        EXPECT_EQ(directory_handle::open(share, path, mode::read, creation::if_needed).error(),
                  std::errc::cross_device_link)
            << path;
    EXPECT_EQ(directory_handle::open(share, "out", mode::read, creation::if_needed).error(),
              std::errc::cross_device_link);
    EXPECT_TRUE(fs::is_empty(directory.path_of("outside")));
    const auto made = directory_handle::open(share, "x//", mode::read, creation::only_if_not_exist);
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(made->confined(), confinement::beneath);
}

TEST_P(directory_handle_on, a_removed_directory_lists_no_entries) {
    const auto opened =
        directory_handle::open(directory.anchor(), "d", mode::read, creation::if_needed).value();
    fs::remove(directory.path_of("d"));
    std::array<directory_entry, 4> entries;
    std::array<char, 1000> storage{};
    const auto part = opened.enumerate({.entries = entries, .storage = storage});
    EXPECT_TRUE(not part or part->entries.empty());
}

TEST_P(directory_handle_on, a_barrier_requires_a_directory_open_for_listing) {
    EXPECT_TRUE(directory_handle::open(directory.anchor(), ".").value().barrier());
    EXPECT_EQ(directory_handle::open(directory.anchor(), ".", mode::none).value().barrier().error(),
              std::errc::bad_file_descriptor);
}

SLUICE_ON_EACH_VOLUME(directory_handle_on);

}  // namespace
}  // namespace sluice::io
