#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/check/repair.hpp"
#include "sluice/io/path/volume_test.hpp"

// Files whose chains cross, are cyclic or end incorrectly keep their content.

namespace sluice::fat {
namespace {

struct sample_file {
    const char* name;
    std::uint64_t slot;
};
std::vector<sample_file> files_of(const sample_volume& volume) {
    return {{"ONE.TXT", volume.root_slot(volume.one)},
            {"A long name.txt", volume.root_slot(volume.named)},
            {"TWO.BIN", volume.slot_of(12, 2)}};
}

// Reads a file along its chain until that ends, breaks or repeats a cluster, up to its size.
std::string readable(sample_volume& volume, std::uint64_t slot) {
    const geometry& shape = volume.shape;
    const auto fat = volume.image().bytes().subspan(shape.fat_offset, shape.fat_bytes);
    const directory_entry entry = volume.entry(slot);
    const bool is_wide = shape.type == fat_type::fat32;
    std::uint32_t at = first_cluster(entry, is_wide ? cluster_width::four_bytes : cluster_width::two_bytes);
    std::set<std::uint32_t> seen;
    std::string text;
    while (text.size() < entry.size_bytes.value() and shape.is_cluster(at) and seen.insert(at).second) {
        const std::uint32_t value = *read_entry(shape.type, fat, at);
        const entry_kind kind = shape.classify(value).kind;
        if (kind == entry_kind::free or kind == entry_kind::bad) break;
        const auto bytes = volume.image().bytes().subspan(shape.cluster_offset(at), shape.cluster_bytes);
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        at = value;
    }
    return text.substr(0, entry.size_bytes.value());
}

std::string brief(const std::string& text) {
    std::string said = std::to_string(text.size()) + " bytes:";
    for (std::size_t at = 0; at < text.size(); at += 512)
        said += ' ' + std::to_string(static_cast<unsigned char>(text[at]));
    return said;
}

std::string lines(const std::vector<std::string>& of) {
    std::string text;
    for (const std::string& each : of)
        text += each + '\n';
    return text;
}

// Repairs the volume, and compares each file with its readable content before the repair.
void expect_kept(sample_volume& volume, bool asks_fsck) {
    std::vector<std::string> before;
    for (const sample_file& each : files_of(volume))
        before.push_back(readable(volume, each.slot));
    // With much damage, the evidence is against the boot sector.
    const auto report = repair(volume.image(), {.boot = boot_source::first});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->after.is_consistent()) << text_of(report->after) << lines(report->actions);
    std::size_t i = 0;
    for (const sample_file& each : files_of(volume))
        EXPECT_EQ(brief(readable(volume, each.slot)), brief(before[i++]))
            << each.name << '\n'
            << text_of(report->before) << lines(report->actions);
    if (not asks_fsck or not has_tool("fsck.fat")) return;
    const io::test_directory directory("/dev/shm");
    volume.save(directory.path_of("image"));
    std::string said;
    EXPECT_EQ(status_of("fsck.fat -n " + directory.path_of("image"), said), 0) << said;
}

// Chains that lead to themselves, to each other, or to free and bad clusters, and that end too
// early or too late.
TEST(repair_chains, keeps_all_readable_content_of_each_file) {
    constexpr std::uint32_t of_files[] = {5, 6, 7, 9, 10, 20, 21, 22};
    seeded_random random(23);
    const int rounds = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 10'000 : 300;
    for (int i = 0; i != rounds; ++i) {
        sample_volume volume(i % 2 == 0 ? fat_type::fat12 : fat_type::fat16);
        SCOPED_TRACE(i);
        const auto somewhere = [&]() -> std::uint32_t {
            const std::uint32_t special[] = {40, bad_entry(volume.shape.type), end_entry(volume.shape.type),
                                             1};
            return random.below(4) == 0 ? special[random.below(4)] : of_files[random.below(8)];
        };
        for (std::uint64_t n = 1 + random.below(4); n != 0; --n)
            volume.fat(of_files[random.below(8)], somewhere());
        for (const sample_file& each : files_of(volume))
            volume.change(each.slot, [&](directory_entry& entry) {
                if (random.below(4) == 0) volume.set_first(entry, of_files[random.below(8)]);
                if (random.below(3) == 0)
                    entry.size_bytes = le32(static_cast<std::uint32_t>(random.below(volume.clusters(9))));
            });
        ASSERT_NO_FATAL_FAILURE(expect_kept(volume, i % 10 == 0));
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace sluice::fat
