#include "sluice/fat/check/repair.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/device/recording_device.hpp"
#include "sluice/fat/edit/set_label.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fat {
namespace {

using testing::Contains;
using testing::HasSubstr;

// The readable content of every file of a damaged volume: along its chain as far as possible, up to
// its size.
class contents {
public:
    explicit contents(sample_volume& volume) : volume_(volume) {
        read_directory(volume.root_slot(0),
                       volume.shape.type == fat_type::fat32 ? 16 : volume.shape.root_entries, 0);
    }

    std::vector<std::string> files;
    std::map<std::string, std::string> by_short_name;

private:
    void read_directory(std::uint64_t first, std::uint64_t slots, int depth) {
        if (depth == 3) return;
        for (std::uint64_t i = 0; i != slots; ++i) {
            const directory_entry entry = volume_.entry(first + i * slot_bytes);
            const slot_kind kind = kind_of(entry);
            if (kind == slot_kind::end) return;
            const bool is_wide = volume_.shape.type == fat_type::fat32;
            const std::uint32_t start =
                first_cluster(entry, is_wide ? cluster_width::four_bytes : cluster_width::two_bytes);
            if (kind == slot_kind::directory and volume_.shape.is_cluster(start))
                read_directory(volume_.slot_of(start, 0), 16, depth + 1);
            if (kind != slot_kind::file) continue;
            const std::string text = read_file(start, entry.size_bytes.value());
            if (not text.empty()) files.push_back(text);
            by_short_name[std::string(entry.name.begin(), entry.name.end())] = text;
        }
    }

    std::string read_file(std::uint32_t cluster, std::size_t size) {
        const geometry& shape = volume_.shape;
        const auto fat = volume_.image().bytes().subspan(shape.fat_offset, shape.fat_bytes);
        std::string text;
        while (text.size() < size and shape.is_cluster(cluster)) {
            const std::uint32_t value = *read_entry(shape.type, fat, cluster);
            const entry_kind kind = shape.classify(value).kind;
            if (kind == entry_kind::free or kind == entry_kind::bad) break;
            const auto bytes =
                volume_.image().bytes().subspan(shape.cluster_offset(cluster), shape.cluster_bytes);
            text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            cluster = value;
        }
        return text.substr(0, size);
    }

    sample_volume& volume_;
};

std::string all_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& each : lines)
        text += each + "\n";
    return text;
}

void expect_consistent_for_fsck(sample_volume& volume) {
    if (not has_tool("fsck.fat")) return;
    const io::test_directory directory("/dev/shm");
    volume.save(directory.path_of("image"));
    std::string said;
    EXPECT_EQ(status_of("fsck.fat -n " + directory.path_of("image"), said), 0) << said;
}

TEST(repair, repairs_each_damage_and_keeps_all_readable_data) {
    for_each_damage([](sample_volume& volume, const sample_damage& damage) {
        const contents before(volume);
        const auto report = repair(volume.image());
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->before.has(damage.kind));
        EXPECT_TRUE(report->after.is_consistent()) << text_of(report->after) << all_of(report->actions);
        EXPECT_FALSE(report->actions.empty());
        const contents after(volume);
        for (const std::string& each : before.files)
            EXPECT_THAT(after.files, Contains(each)) << all_of(report->actions);
        expect_consistent_for_fsck(volume);
    });
}

TEST(repair, writes_nothing_to_a_consistent_volume) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        recording_device recorder(volume.image());
        const auto report = repair(recorder);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->actions.empty());
        EXPECT_TRUE(recorder.log().empty());
    }
}

TEST(repair, saves_removed_clusters_under_unused_numbers) {
    sample_volume volume(fat_type::fat16);
    volume.put(volume.root_slot(volume.unused), "FSCK0003REC", attributes::archive, 0, 0);
    volume.fat(6, free_entry);  // 6 is lost, 7 is removed
    volume.chain({50, 51});
    std::ranges::fill(volume.image().bytes().subspan(volume.shape.cluster_offset(50), 2048), std::byte{50});
    ASSERT_TRUE(repair(volume.image())->after.is_consistent());
    contents after(volume);
    EXPECT_EQ(after.by_short_name["FSCK0004REC"], std::string(volume.clusters(1), 7));
    EXPECT_EQ(after.by_short_name["FSCK0005REC"].size(), volume.clusters(2));
    EXPECT_EQ(after.by_short_name["ONE     TXT"].size(), volume.clusters(1));
}

TEST(repair, keeps_the_long_name_of_an_entry_whose_short_name_is_double) {
    sample_volume volume(fat_type::fat12);
    volume.put(volume.root_slot(volume.unused), "ALONGN~1TXT", attributes::archive, 0, 0);
    volume.change(volume.root_slot(volume.one), [](auto& entry) { entry.name[0] = free_mark; });
    // Put the plain one first, so that the one with the long name is the second.
    const directory_entry plain = volume.entry(volume.root_slot(volume.unused));
    volume.put(volume.root_slot(volume.one), plain);
    volume.change(volume.root_slot(volume.unused), [](auto& entry) { entry.name[0] = free_mark; });
    ASSERT_TRUE(repair(volume.image())->after.is_consistent());
    const auto report = check(volume.image());
    EXPECT_FALSE(report->has(problem_kind::orphan_long_name));
    EXPECT_EQ(volume.entry(volume.root_slot(volume.pieces)).name[0], 0x42);
}

// Counts the reads of another device.
class counting_device final : public device {
public:
    explicit counting_device(device& below) noexcept : below_(below) {}
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        ++reads;
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        ++writes;
        return below_.write_at(offset, pieces);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

    std::uint64_t reads = 0;
    std::uint64_t writes = 0;

private:
    device& below_;
};

TEST(repair, saves_many_lost_chains_under_different_names_in_linear_time) {
    constexpr std::uint32_t chains = 12'000;
    memory_device image(40 << 20);
    format_options options;
    options.type = fat_type::fat32;
    options.cluster_bytes = 512;
    const geometry shape = plan_format(image.size_bytes(), options).value().shape;
    ASSERT_TRUE(format(image, plan_format(image.size_bytes(), options).value()));
    for (std::uint32_t copy = 0; copy != shape.fat_count; ++copy)
        for (std::uint32_t i = 0; i != chains; ++i)
            ASSERT_TRUE(write_entry(
                shape.type, {.bytes = image.bytes().subspan(shape.fat_copy_offset(copy), shape.fat_bytes)},
                1000 + 2 * i, end_entry(shape.type)));
    counting_device counter(image);
    const auto report = repair(counter);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->after.is_consistent()) << text_of(report->after);
    EXPECT_EQ(report->after.files, chains);
    const auto saved = static_cast<std::uint64_t>(std::ranges::count_if(
        report->actions, [](const std::string& each) { return each.starts_with("saved 1 lost clusters"); }));
    EXPECT_EQ(saved, chains);
    EXPECT_THAT(report->actions, Contains(HasSubstr("/FSCK9999.REC")));
    EXPECT_THAT(report->actions, Contains(HasSubstr("/FSC11999.REC")));
    EXPECT_LT(counter.reads, 6 * std::uint64_t{chains});
    EXPECT_LT(counter.writes, 6 * std::uint64_t{chains});
}

TEST(repair, moves_the_entries_that_take_the_place_of_dots) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        const std::uint64_t slots = volume.shape.cluster_bytes / slot_bytes;
        for (std::uint64_t i = 0; i != slots; ++i) {  // full, so that it needs another cluster
            std::string name = "FILE    X  ";
            name[4] = static_cast<char>('A' + i / 10);
            name[5] = static_cast<char>('0' + i % 10);
            volume.put(volume.slot_of(30, i), name, attributes::archive, 0, 0);
        }
        const auto report = repair(volume.image());
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->after.is_consistent()) << text_of(report->after);
        EXPECT_EQ(report->after.files, 3 + slots);
        EXPECT_EQ(volume.entry(volume.slot_of(30, 0)).name[0], '.');
        EXPECT_EQ(volume.entry(volume.slot_of(30, 2)).name[5], '2');
        expect_consistent_for_fsck(volume);
    }
}

// A device with a bad sector.
class bad_sector_device final : public device {
public:
    bad_sector_device(device& below, std::uint64_t bad) noexcept : below_(below), bad_(bad) {}
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        if (offset < bad_ + 512 and offset + bytes_in(pieces) > bad_) return failure({EIO, "read"});
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        return below_.write_at(offset, pieces);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

private:
    device& below_;
    std::uint64_t bad_;
};

TEST(repair, saves_no_lost_clusters_while_a_directory_cannot_be_read) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        bad_sector_device image(volume.image(), volume.shape.cluster_offset(12));
        const auto report = repair(image);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->after.has(problem_kind::directory_unreadable)) << text_of(report->after);
        EXPECT_TRUE(report->actions.empty()) << all_of(report->actions);
        const auto again = check(volume.image());
        ASSERT_TRUE(again);
        EXPECT_TRUE(again->is_consistent()) << text_of(*again);
    }
}

TEST(repair, saves_no_lost_clusters_of_an_image_that_was_cut) {
    sample_volume volume(fat_type::fat16);
    const std::vector<std::byte> before(volume.image().bytes().begin(), volume.image().bytes().end());
    const std::uint64_t end = volume.shape.cluster_offset(12);
    memory_device cut(
        std::vector<std::byte>(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(end)));
    const auto report = repair(cut);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->actions.empty()) << all_of(report->actions);
    EXPECT_EQ(std::memcmp(cut.bytes().data(), before.data(), end), 0);
}

TEST(repair, writes_no_counts_over_a_sector_that_is_something_else) {
    sample_volume volume(fat_type::fat32);
    const std::uint64_t backup = *volume.shape.backup_offset;
    const std::uint64_t info = *volume.shape.info_offset;
    for (const std::uint64_t offset : {backup, info})
        std::ranges::fill(volume.image().bytes().subspan(offset, 512), std::byte{0x37});
    ASSERT_TRUE(repair(volume.image()));
    EXPECT_EQ(volume.at(info + 100), std::byte{0x37});
    EXPECT_EQ(volume.at(info + 490), std::byte{0x37});
}

TEST(repair, keeps_and_reports_lost_clusters_if_the_root_has_no_room) {
    sample_volume volume(fat_type::fat12);
    for (std::uint64_t i = volume.unused; i != volume.shape.root_entries; ++i) {
        std::string name = "F0000000   ";
        for (std::uint64_t digits = i, at = 7; digits != 0; digits /= 10, --at)
            name[at] = static_cast<char>('0' + digits % 10);
        volume.put(volume.root_slot(i), name, attributes::archive, 0, 0);
    }
    volume.chain({50, 51, 52});
    const auto report = repair(volume.image());
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->after.has(problem_kind::lost_clusters));
    EXPECT_FALSE(report->after.is_consistent());
}

TEST(repair, extends_the_root_of_fat32_for_what_it_saves) {
    sample_volume volume(fat_type::fat32);
    for (std::uint64_t i = volume.unused; i != volume.shape.cluster_bytes / slot_bytes; ++i) {
        std::string name = "F       X  ";
        name[1] = static_cast<char>('A' + i);
        volume.put(volume.root_slot(i), name, attributes::archive, 0, 0);
    }
    volume.chain({50, 51, 52});
    const auto report = repair(volume.image());
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->after.is_consistent()) << text_of(report->after);
    expect_consistent_for_fsck(volume);
}

TEST(repair, believes_the_copy_of_the_fat_with_fewer_problems) {
    sample_volume volume(fat_type::fat16);
    for (std::uint32_t cluster = 5; cluster != 40; ++cluster)
        volume.fat_copy(0, cluster, free_entry);
    const auto report = repair(volume.image());
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->after.is_consistent());
    EXPECT_THAT(all_of(report->actions), HasSubstr("copied FAT 1 over the other"));
    EXPECT_EQ(contents(volume).by_short_name["ONE     TXT"].size(), volume.clusters(3) - 10);
}

// It ends for any damage, and a second repair finds no further work.
TEST(repair, ends_on_any_bytes_and_leaves_no_problem_with_a_remedy) {
    seeded_random random(12);
    sample_volume volume(fat_type::fat12);
    const std::vector<std::byte> original(volume.image().bytes().begin(), volume.image().bytes().end());
    int repaired_count = 0;
    for (int i = 0; i != 60; ++i) {
        std::memcpy(volume.image().bytes().data(), original.data(), original.size());
        const geometry shape = volume.shape;
        const std::uint64_t starts[] = {shape.fat_offset, shape.root_offset, shape.cluster_offset(12)};
        for (std::uint64_t n = 1 + random.below(12); n != 0; --n)
            volume.at(starts[random.below(3)] + random.below(200)) =
                static_cast<std::byte>(random.below(256));
        const auto report = repair(volume.image());
        ASSERT_TRUE(report);
        repaired_count += report->after.is_consistent();
        const auto again = repair(volume.image());
        ASSERT_TRUE(again);
        EXPECT_TRUE(again->actions.empty()) << all_of(report->actions) << "then\n" << all_of(again->actions);
    }
    EXPECT_GT(repaired_count, 50);
}

TEST(label, is_set_changed_and_removed_in_root_and_boot_sectors) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        const auto label = [&] {
            return label_text(*read_label(volume.image(), read_geometry(volume.image()).value()));
        };
        EXPECT_EQ(label(), "SAMPLE");
        for (const char* text : {"other", "", "again"}) {
            ASSERT_TRUE(set_label(volume.image(), volume.shape, *encode_label(text), 0x5a21, 0));
            const geometry shape = read_geometry(volume.image()).value();
            EXPECT_EQ(label_text(shape.label), label());
            EXPECT_EQ(label(), label_text(*encode_label(text)));
            const auto report = check(volume.image());
            EXPECT_TRUE(report->problems.empty()) << text_of(*report);
            expect_consistent_for_fsck(volume);
        }
    }
}

}  // namespace
}  // namespace sluice::fat
