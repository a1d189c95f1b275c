#include "sluice/fat/edit/set_label.hpp"

#include <gtest/gtest.h>

#include "sluice/fat/check/damaged_image_testing.hpp"

namespace sluice::fat {
namespace {

// Fills the root, which has one cluster, and sets the entry of that cluster in the table.
void fill_root(sample_volume& volume, std::uint32_t entry) {
    for (std::uint64_t i = 0; i != volume.shape.cluster_bytes / slot_bytes; ++i) {
        std::string name = "F       X  ";
        name[1] = static_cast<char>('A' + i);
        volume.put(volume.root_slot(i), name, attributes::archive, 0, 0);
    }
    volume.fat(volume.shape.root_cluster, entry);
}

TEST(set_label, extends_a_full_root_whose_chain_has_an_end_mark) {
    sample_volume volume(fat_type::fat32);
    fill_root(volume, end_entry(fat_type::fat32));
    ASSERT_TRUE(set_label(volume.image(), volume.shape, *encode_label("LABEL"), 0x5a21, 0));
    EXPECT_EQ(label_text(read_label(volume.image(), volume.shape).value()), "LABEL");
}

TEST(set_label, never_extends_a_root_by_a_cluster_of_a_damaged_chain) {
    sample_volume volume(fat_type::fat32);
    fill_root(volume, end_entry(fat_type::fat32));
    volume.fat(7, 3);  // the first free cluster
    ASSERT_TRUE(set_label(volume.image(), volume.shape, *encode_label("LABEL"), 0x5a21, 0));
    const auto fat = volume.image().bytes().subspan(volume.shape.fat_offset, volume.shape.fat_bytes);
    EXPECT_EQ(read_entry(fat_type::fat32, fat, volume.shape.root_cluster), 4U);
    EXPECT_EQ(read_entry(fat_type::fat32, fat, 3), free_entry);
}

TEST(set_label, does_not_extend_a_root_whose_chain_has_no_end_mark) {
    const sample_volume sample(fat_type::fat32);
    const geometry shape = sample.shape;
    for (const std::uint32_t entry : {free_entry, std::uint32_t{1}, bad_entry(shape.type),
                                      shape.last_cluster() + 1, shape.root_cluster}) {
        SCOPED_TRACE(entry);
        sample_volume volume(fat_type::fat32);
        fill_root(volume, entry);
        const auto bytes = volume.image().bytes();
        const std::vector<std::byte> before(bytes.begin(), bytes.end());
        const auto done = set_label(volume.image(), shape, *encode_label("LABEL"), 0x5a21, 0);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code(), ENOSPC);
        EXPECT_TRUE(std::ranges::equal(bytes, before)) << "nothing is written";
    }
}

}  // namespace
}  // namespace sluice::fat
