#include "sluice/fat/partition/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/fat/codec/boot_sector_testing.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/partition/partition_formats.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

// An image under construction, in sectors of 512 bytes.
class disk {
public:
    explicit disk(std::size_t sectors) : image_(sectors * 512) {}

    void slot(std::size_t sector, unsigned index, std::uint8_t type, std::uint32_t first,
              std::uint32_t count) {
        auto record = get<mbr_sector>(sector);
        record.signature = le16(0xaa55);
        record.slots[index].type = le8(type);
        record.slots[index].first_sector = le32(first);
        record.slots[index].sectors = le32(count);
        put(sector, record);
    }
    void volume(std::size_t sector) { put(sector, floppy_boot_sector()); }

    template <class T>
    T get(std::size_t sector) {
        return *bytes_view(image_.bytes()).take_at<T>(sector * 512);
    }
    template <class T>
    void put(std::size_t sector, const T& what) {
        std::memcpy(image_.bytes().data() + sector * 512, &what, sizeof(what));
    }
    template <class T>
    void put_at(std::size_t offset, const T& what) {
        std::memcpy(image_.bytes().data() + offset, &what, sizeof(what));
    }

    // Both copies of a GPT with 4 slots, the second in use: sectors 10 to 19.
    void gpt() {
        slot(0, 0, mbr_type_gpt, 1, 0xffff'ffff);
        const std::size_t last = image_.bytes().size() / 512 - 1;
        header(1, last, 2);
        header(last, 1, last - 1);
    }
    void header(std::uint64_t own, std::uint64_t other, std::uint64_t array) {
        put_at(array * 512 + 128, std::array<std::byte, 16>{std::byte{1}});
        put_at(array * 512 + 128 + 32, le64(10));
        put_at(array * 512 + 128 + 40, le64(19));
        put_at(array * 512 + 128 + 56, std::array<le16, 2>{le16('h'), le16('i')});
        const std::size_t at = own * 512;
        put_at(at, std::array<char, 8>{'E', 'F', 'I', ' ', 'P', 'A', 'R', 'T'});
        put_at(at + 12, le32(92));
        put_at(at + 24, le64(own));
        put_at(at + 32, le64(other));
        put_at(at + 72, le64(array));
        put_at(at + 80, le32(4));
        put_at(at + 84, le32(128));
        put_at(at + 88, le32(crc32(*bytes_view(image_.bytes()).slice({array * 512, 512}))));
        put_at(at + 16, le32(0));
        put_at(at + 16, le32(crc32(*bytes_view(image_.bytes()).slice({at, 92}))));
    }

    memory_device& image() { return image_; }

private:
    memory_device image_;
};

TEST(partitions, on_an_mbr_have_the_numbers_of_linux) {
    disk one(100);
    one.slot(0, 1, 0x0c, 10, 20);
    one.slot(0, 3, 0x05, 40, 50);
    one.slot(40, 0, 0x06, 1, 5);    // relative to its own record
    one.slot(40, 1, 0x05, 10, 20);  // relative to the extended partition
    one.slot(50, 0, 0x01, 2, 7);
    const auto table = read_partitions(one.image());
    ASSERT_TRUE(table);
    ASSERT_EQ(table->scheme, partition_scheme::mbr);
    ASSERT_EQ(table->partitions.size(), 3U);
    EXPECT_EQ(table->find(2)->range.offset, 10U * 512);
    EXPECT_EQ(table->find(2)->range.length, 20U * 512);
    EXPECT_EQ(table->find(5)->range.offset, 41U * 512);
    EXPECT_EQ(table->find(6)->range.offset, 52U * 512);
    EXPECT_EQ(table->find(6)->range.length, 7U * 512);
    EXPECT_EQ(table->find(1), nullptr);
}

TEST(partitions, are_truncated_at_the_end_of_the_image_or_omitted_after_it) {
    disk one(100);
    one.slot(0, 0, 0x0c, 90, 20);
    one.slot(0, 1, 0x0c, 100, 20);
    one.slot(0, 2, 0x0c, 0xffff'ffff, 0xffff'ffff);
    const auto table = read_partitions(one.image());
    ASSERT_TRUE(table);
    ASSERT_EQ(table->partitions.size(), 1U);
    EXPECT_TRUE(table->partitions[0].is_cut);
    EXPECT_EQ(table->partitions[0].range.length, 10U * 512);
}

TEST(partitions, on_a_cyclic_chain_are_finite) {
    disk one(100);
    one.slot(0, 0, 0x05, 40, 50);
    one.slot(40, 0, 0x06, 1, 5);
    one.slot(40, 1, 0x05, 10, 20);
    one.slot(50, 0, 0x06, 1, 5);
    one.slot(50, 1, 0x05, 0, 20);  // back to the first record
    const auto table = read_partitions(one.image());
    ASSERT_TRUE(table);
    EXPECT_EQ(table->partitions.size(), limits::partitions_max);
    EXPECT_EQ(table->partitions.back().number, 4 + table->partitions.size());
}

TEST(partitions, on_a_gpt_are_numbered_by_their_slot) {
    disk one(100);
    one.gpt();
    const auto table = read_partitions(one.image());
    ASSERT_TRUE(table);
    ASSERT_EQ(table->scheme, partition_scheme::gpt);
    EXPECT_FALSE(table->is_backup);
    ASSERT_EQ(table->partitions.size(), 1U);
    EXPECT_EQ(table->partitions[0].number, 2U);
    EXPECT_EQ(table->partitions[0].range.offset, 10U * 512);
    EXPECT_EQ(table->partitions[0].range.length, 10U * 512);
    EXPECT_EQ(table->partitions[0].name, u"hi");
}

TEST(partitions, on_a_gpt_with_a_damaged_header_or_array_come_from_its_backup) {
    for (const std::size_t damaged : {512 + 40, 512 + 16, 1024 + 3}) {
        disk one(100);
        one.gpt();
        one.image().bytes()[damaged] ^= std::byte{0x10};
        const auto table = read_partitions(one.image());
        ASSERT_TRUE(table);
        EXPECT_EQ(table->scheme, partition_scheme::gpt);
        EXPECT_TRUE(table->is_backup) << damaged;
        one.image().bytes()[99 * 512 + 40] ^= std::byte{1};
        EXPECT_EQ(read_partitions(one.image())->scheme, partition_scheme::mbr);
    }
}

TEST(volume, is_found_without_a_table_or_as_the_only_fat_partition) {
    disk bare(2880);
    bare.volume(0);
    EXPECT_EQ(find_volume(bare.image(), {})->length, floppy_bytes);
    EXPECT_THAT(find_volume(bare.image(), 1).error().message, HasSubstr("no partition table"));

    disk one(3000);
    one.slot(0, 0, 0x83, 1, 9);
    one.slot(0, 1, 0x01, 10, 2880);
    one.volume(10);
    EXPECT_EQ(find_volume(one.image(), {})->offset, 10U * 512);
    EXPECT_EQ(find_volume(one.image(), 2)->offset, 10U * 512);
    EXPECT_EQ(find_volume(one.image(), 1)->offset, 512U);
    EXPECT_EQ(find_volume(one.image(), 0)->length, 3000U * 512);
    EXPECT_THAT(find_volume(one.image(), 3).error().message, HasSubstr("no partition @3, only: @1 (Linux"));
    one.volume(1);
    EXPECT_THAT(find_volume(one.image(), {}).error().message, HasSubstr("several FAT partitions"));
}

TEST(partitions, are_inside_the_image_for_any_bytes) {
    seeded_random random(5);
    for (int i = 0; i != 3000; ++i) {
        disk one(100);
        i % 2 == 0 ? one.gpt() : one.slot(0, 0, 0x05, 10, 50);
        if (i % 2 == 1) one.slot(10, 1, 0x05, 3, 4);
        const auto bytes = one.image().bytes();
        for (std::uint64_t n = random.below(6); n != 0; --n) {
            constexpr std::size_t places[] = {446, 10 * 512 + 446, 13 * 512 + 446, 512, 1024, 99 * 512};
            bytes[places[random.below(6)] + random.below(66)] = static_cast<std::byte>(random.below(256));
        }
        const auto table = read_partitions(one.image());
        ASSERT_TRUE(table);
        std::uint32_t before = 0;
        for (const partition& each : table->partitions) {
            ASSERT_LE(each.range.offset + each.range.length, bytes.size());
            ASSERT_GT(each.range.length, 0U);
            ASSERT_GT(each.number, before);
            before = each.number;
        }
    }
}

}  // namespace
}  // namespace sluice::fat
