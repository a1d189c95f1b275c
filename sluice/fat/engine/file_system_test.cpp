#include "sluice/fat/engine/file_system.hpp"

#include <gmock/gmock.h>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/random.hpp"
#include "sluice/fat/check/image_testing.hpp"

// Tests of the engine on volumes of mkfs.fat, checked by fsck.fat.

namespace sluice::fat {
namespace {

using testing::HasSubstr;

constexpr std::string_view floppy = "-F 12";
constexpr std::string_view small16 = "-F 16 -s 1";
constexpr std::string_view small32 = "-F 32 -s 1";

std::string text_of(std::size_t bytes, std::uint64_t seed = 1) {
    const auto made = pattern(seed, bytes);
    return {reinterpret_cast<const char*>(made.data()), made.size()};
}

struct volume_format {
    const char* name;
    std::size_t kibibytes;
    std::string_view options;
};

class file_system_test : public testing::TestWithParam<volume_format> {
protected:
    file_system& fs() { return *on_.system; }
    inode_handle make(std::string_view path, bool is_directory = false) {
        auto made = fs().create(path, is_directory, attributes::none);
        EXPECT_EQ(code(made), 0) << path;
        return made ? std::move(*made) : inode_handle();
    }
    // Unmounts; then fsck.fat reports no problem, and a new mount shows the same content.
    void check() {
        const std::string before = picture(fs());
        ASSERT_EQ(code(fs().unmount()), 0);
        const verdict said = fsck(on_.image.bytes());
        ASSERT_TRUE(said.is_clean) << said.said;
        on_.mount();
        ASSERT_EQ(picture(fs()), before);
    }

    mounted_image on_{formatted(GetParam().kibibytes, std::string(GetParam().options))};
    run_list::hint hint_;
};
INSTANTIATE_TEST_SUITE_P(on, file_system_test,
                         testing::Values(volume_format{"fat12", 1440, floppy},
                                         volume_format{"fat16", 16 << 10, small16},
                                         volume_format{"fat32", 40 << 10, small32},
                                         volume_format{"sectors_of_4096", 40 << 10, "-F 16 -S 4096 -s 1"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(file_system_test, a_new_volume_is_empty_and_mounting_does_not_change_it) {
    const std::vector<std::byte> before(on_.image.bytes().begin(), on_.image.bytes().end());
    EXPECT_EQ(picture(fs()), "");
    EXPECT_FALSE(fs().was_dirty());
    EXPECT_EQ(code(fs().unmount()), 0);
    EXPECT_TRUE(std::ranges::equal(before, on_.image.bytes())) << "the mount changed nothing";
}

TEST_P(file_system_test, created_and_written_files_exist_after_a_mount) {
    make("Directory", true);
    make("Directory/below", true);
    put(fs(), "Directory/below/A long name, with spaces.text", text_of(5000));
    put(fs(), "UPPER.TXT", "upper");
    put(fs(), "lower.txt", "lower");
    put(fs(), "Grüße \xf0\x9f\x98\x80", "non-BMP");
    put(fs(), "empty", "");
    check();
    EXPECT_EQ(content_of(fs(), "directory/BELOW/a long NAME, with spaces.TEXT"), text_of(5000));
    EXPECT_EQ(content_of(fs(), "directory/below/alongn~1.tex"), text_of(5000)) << "by its short name";
    EXPECT_EQ(content_of(fs(), "lower.TXT"), "lower");
    EXPECT_FALSE(fs().was_dirty());
}

TEST_P(file_system_test, free_space_is_counted) {
    const auto before = fs().free_clusters().value();
    auto file = make("file");
    const std::string text = text_of(10 * on_.shape.cluster_bytes);
    ASSERT_EQ(code(fs().write(*file, hint_, std::as_bytes(std::span(text)), 0)), 0);
    EXPECT_EQ(fs().free_clusters().value(), before - 10);
    ASSERT_EQ(code(fs().truncate(*file, 1)), 0);
    EXPECT_EQ(fs().free_clusters().value(), before - 1);
    ASSERT_EQ(code(fs().remove(*file)), 0);
    file = {};
    EXPECT_EQ(fs().free_clusters().value(), before);
    check();
    EXPECT_EQ(fs().free_clusters().value(), before);
}

TEST_P(file_system_test, a_full_volume_returns_an_error_and_remains_usable) {
    auto file = make("file");
    const std::string part = text_of(64 * 1024);
    std::uint64_t offset = 0;
    result<void> done;
    while (done) {
        done = fs().write(*file, hint_, std::as_bytes(std::span(part)), offset);
        if (done) offset += part.size();
    }
    EXPECT_EQ(code(done), ENOSPC);
    EXPECT_EQ(fs().status(*file).size_bytes, offset);
    ASSERT_EQ(code(fs().truncate(*file, 100)), 0);
    const auto again = fs().write(*file, hint_, std::as_bytes(std::span(part)), 100);
    EXPECT_EQ(code(again), 0) << "a commit makes released clusters available";
    file = {};
    check();
    EXPECT_EQ(content_of(fs(), "file"), part.substr(0, 100) + part);
}

TEST_P(file_system_test, an_extended_file_reads_as_zeros_and_writes_none) {
    // The previous content must not be visible.
    std::ranges::fill(on_.image.bytes().subspan(on_.shape.data_offset + 2 * on_.shape.cluster_bytes),
                      std::byte{0xaa});
    auto file = make("file");
    ASSERT_EQ(code(fs().truncate(*file, 1 << 20)), 0);
    EXPECT_EQ(fs().status(*file).size_bytes, 1U << 20);
    ASSERT_EQ(code(fs().write(*file, hint_, std::as_bytes(std::span("middle", 6)), 100'000)), 0);
    std::string wanted(1 << 20, '\0');
    wanted.replace(100'000, 6, "middle");
    EXPECT_EQ(content_of(fs(), "file"), wanted);
    // Shrink and extend within a cluster.
    ASSERT_EQ(code(fs().truncate(*file, 100'003)), 0);
    ASSERT_EQ(code(fs().truncate(*file, 100'100)), 0);
    wanted = wanted.substr(0, 100'003) + std::string(97, '\0');
    EXPECT_EQ(content_of(fs(), "file"), wanted);
    file = {};
    check();
    EXPECT_EQ(content_of(fs(), "file"), wanted);
}

TEST_P(file_system_test, setting_a_size_of_four_gibibytes_fails) {
    auto file = make("file");
    EXPECT_EQ(code(fs().truncate(*file, 1ULL << 32)), EFBIG);
    EXPECT_EQ(code(fs().truncate(*file, (1ULL << 32) - 1)), ENOSPC);
    EXPECT_EQ(code(fs().write(*file, hint_, std::as_bytes(std::span("x", 1)), UINT32_MAX)), EFBIG);
    EXPECT_EQ(code(fs().write(*file, hint_, std::as_bytes(std::span("x", 1)), UINT64_MAX)), EFBIG);
    EXPECT_EQ(code(fs().preallocate(*file, 1ULL << 32)), EFBIG);
    EXPECT_EQ(fs().status(*file).size_bytes, 0U);
}

TEST_P(file_system_test, a_removed_file_exists_until_its_last_handle_is_closed) {
    put(fs(), "file", text_of(3000));
    const auto full = fs().free_clusters().value();
    auto held = fs().find("file").value();
    ASSERT_EQ(code(fs().remove(*held)), 0);
    put(fs(), "file", text_of(3000, 2));
    ASSERT_EQ(code(fs().commit()), 0);
    std::string text(3000, '\0');
    EXPECT_EQ(fs().read(*held, hint_, std::as_writable_bytes(std::span(text)), 0).value(), 3000U);
    EXPECT_EQ(text, text_of(3000));
    held = {};
    EXPECT_EQ(fs().free_clusters().value(), full);
    check();
    EXPECT_EQ(content_of(fs(), "file"), text_of(3000, 2));
}

TEST_P(file_system_test, renames_preserve_identities) {
    make("a", true);
    make("b", true);
    put(fs(), "a/file", "x");
    auto file = fs().find("a/file").value();
    const auto id = file->id;
    ASSERT_EQ(code(fs().rename(*file, "b/another long name", file_system::if_taken::refuse)), 0);
    ASSERT_EQ(code(fs().commit()), 0);
    file = {};
    EXPECT_EQ(fs().find("b/another long name").value()->id, id);
    put(fs(), "a/file", "y");
    EXPECT_NE(fs().find("a/file").value()->id, id);
    check();
}

TEST_P(file_system_test, a_rename_replaces_another_name_ignoring_case) {
    put(fs(), "new", "new content");
    put(fs(), "OLD", "old content");
    auto file = fs().find("new").value();
    ASSERT_EQ(code(fs().rename(*file, "Old", file_system::if_taken::replace)), 0);
    EXPECT_EQ(fs().path_of(*file), "Old");
    EXPECT_EQ(content_of(fs(), "old"), "new content");
    ASSERT_EQ(code(fs().rename(*file, "oLD", file_system::if_taken::refuse)), 0);
    ASSERT_EQ(code(fs().rename(*file, "old", file_system::if_taken::refuse)), 0);
    file = {};
    check();
    EXPECT_EQ(fs().path_of(*fs().find("OLD").value()), "old");
}

TEST_P(file_system_test, moving_a_directory_updates_its_parent_entry) {
    make("a", true);
    make("a/moved", true);
    make("b", true);
    put(fs(), "a/moved/file", "x");
    auto moved = fs().find("a/moved").value();
    ASSERT_EQ(code(fs().rename(*moved, "b/Moved here", file_system::if_taken::refuse)), 0);
    EXPECT_EQ(code(fs().rename(*fs().find("b").value(), "b/moved here/x", file_system::if_taken::refuse)),
              EINVAL);
    moved = {};
    check();
    EXPECT_EQ(content_of(fs(), "b/moved here/file"), "x");
}

TEST_P(file_system_test, attributes_and_times_are_preserved) {
    using namespace std::chrono_literals;
    auto file = fs().create("file", false, attributes::hidden | attributes::archive).value();
    const time_point when = std::chrono::sys_days(std::chrono::year(2001) / 2 / 3) + 4h + 6s;
    ASSERT_EQ(code(fs().change(*file, {.created = when + 1s, .modified = when, .bits = attributes::system})),
              0);
    file = {};
    check();
    const inode_status found = fs().status(*fs().find("file").value());
    EXPECT_EQ(found.bits, attributes::system);
    EXPECT_EQ(found.created, when + 1s);
    EXPECT_EQ(found.modified, when);
}

TEST_P(file_system_test, names_written_by_mtools_are_read) {
    const std::string listed = run_on(on_.image.bytes(),
                                      "touch /dev/shm/sluice_fat_x && mmd -i % ::/dir && mcopy -i % "
                                      "/dev/shm/sluice_fat_x '::/dir/A long name.text' "
                                      "&& mcopy -i % /dev/shm/sluice_fat_x ::/lower.txt && cat % ");
    ASSERT_EQ(listed.size(), on_.image.bytes().size()) << listed.substr(0, 400);
    std::ranges::copy(std::as_bytes(std::span(listed)), on_.image.bytes().begin());
    on_.mount();
    EXPECT_EQ(code(fs().find("DIR/a long name.TEXT")), 0);
    EXPECT_EQ(fs().path_of(*fs().find("LOWER.TXT").value()), "lower.txt");
    put(fs(), "dir/another", "x");
    check();
}

TEST_P(file_system_test, written_files_are_read_by_mtools_and_7z) {
    make("dir", true);
    put(fs(), "dir/A long name of more than thirteen.text", "for mtools");
    ASSERT_EQ(code(fs().unmount()), 0);
    EXPECT_EQ(run_on(on_.image.bytes(), "mtype -i % '::/dir/A long name of more than thirteen.text'"),
              "for mtools");
    EXPECT_THAT(run_on(on_.image.bytes(), "7z t %"), HasSubstr("Everything is Ok"));
}

// The cost of a file read in pieces of a cluster, counted in entries of the table.
TEST(file_system_strategies, sequential_reads_take_quadratic_or_linear_steps) {
    constexpr std::uint64_t clusters = 512;
    mounted_image on(formatted(5000, std::string(small16)));
    put(*on.system, "file", text_of(clusters * 512));
    const auto steps = [&](lookup_strategy strategy) {
        on.mount({.zone = time_zone::utc(), .strategy = strategy});
        const auto file = on.system->find("file").value();
        const std::uint64_t before = on.system->counters().steps;
        run_list::hint hint;
        std::array<std::byte, 512> part;
        for (std::uint64_t i = 0; i < clusters; ++i)
            EXPECT_EQ(on.system->read(*file, hint, part, i * 512).value(), 512U);
        return on.system->counters().steps - before;
    };
    EXPECT_EQ(steps(lookup_strategy::naive), clusters * (clusters - 1) / 2);
    EXPECT_EQ(steps(lookup_strategy::cursor), clusters - 1);
    EXPECT_LE(steps(lookup_strategy::runs), clusters);
}

// The possible result of a crash during the rename of "target" to "Target" if its sector has no
// room for both.
class two_spellings : public testing::Test {
protected:
    two_spellings() {
        put(*on_.system, "target", text_of(4000));
        put(*on_.system, "Tarxet", text_of(100));
        EXPECT_EQ(code(on_.system->unmount()), 0);
        spell_the_second_like_the_first();
    }
    std::span<unsigned char> bytes() {
        return {reinterpret_cast<unsigned char*>(on_.image.bytes().data()), on_.image.bytes().size()};
    }
    unsigned char* find(std::string_view what) {
        const auto found = std::ranges::search(bytes(), what);
        EXPECT_FALSE(found.empty());
        return &*found.begin();
    }
    void spell_the_second_like_the_first() {
        find(std::string_view("r\0x\0e\0", 6))[2] = 'g';
        const unsigned char* const one = find("TARGET     ");
        std::copy_n(one + 26, 6, find("TARXET~1   ") + 26);  // first cluster and size
    }
    mounted_image on_{formatted(16 << 10, std::string(small16))};
};

TEST_F(two_spellings, are_shown_as_one_and_the_next_commit_removes_the_other) {
    EXPECT_THAT(fsck(on_.image.bytes()).said, HasSubstr("share clusters"));
    on_.mount({.is_read_only = true});
    EXPECT_EQ(picture(*on_.system).find("target"), std::string::npos);
    EXPECT_EQ(content_of(*on_.system, "target"), text_of(4000));
    on_.mount();
    EXPECT_EQ(content_of(*on_.system, "Target"), text_of(4000));
    ASSERT_EQ(code(on_.system->unmount()), 0);
    const verdict said = fsck(on_.image.bytes());
    EXPECT_EQ(said.said.find("share clusters"), std::string::npos) << said.said;
    EXPECT_EQ(said.said.find("Duplicate"), std::string::npos) << said.said;
    on_.mount();
    EXPECT_EQ(content_of(*on_.system, "TARGET"), text_of(4000));
}

TEST_F(two_spellings, are_both_kept_if_they_are_different_files) {
    find("TARXET~1   ")[26] ^= 3;
    const std::vector<std::byte> before(on_.image.bytes().begin(), on_.image.bytes().end());
    on_.mount();
    EXPECT_NE(picture(*on_.system).find("target"), std::string::npos);
    EXPECT_NE(picture(*on_.system).find("Target"), std::string::npos);
    ASSERT_EQ(code(on_.system->unmount()), 0);
    EXPECT_TRUE(std::ranges::equal(before, on_.image.bytes()));
}

TEST(short_name_of_a_file, whose_entry_the_medium_has_lost_is_an_io_error) {
    constexpr int directories = 2000;  // about twice as many as are kept in memory
    mounted_image on(formatted(20 << 10, "-F 16 -s 1"));
    file_system& fs = *on.system;
    for (const char* name : {"lost", "all"})
        ASSERT_EQ(code(fs.create(name, true, attributes::none)), 0);
    put(fs, "lost/A long name", "x");
    for (int i = 0; i != directories; ++i)
        ASSERT_EQ(code(fs.create("all/" + std::to_string(i), true, attributes::none)), 0);
    ASSERT_EQ(code(fs.commit()), 0);
    const auto file = fs.find("lost/A long name").value();
    EXPECT_EQ(fs.alias_of(*file).value(), "ALONGN~1");
    // Evicts the content of its directory, so that it is read again.
    for (int i = 0; i != 2 * directories; ++i)
        ASSERT_EQ(code(fs.find("all/" + std::to_string(i % directories) + "/missing")), ENOENT);
    constexpr std::string_view entry = "ALONGN~1   ";
    const auto there = std::ranges::search(on.image.bytes(), std::as_bytes(std::span(entry)));
    ASSERT_FALSE(there.empty());
    there.front() = std::byte{0xe5};  // a removed entry
    EXPECT_EQ(code(fs.alias_of(*file)), EIO);
}

}  // namespace
}  // namespace sluice::fat
