#include "sluice/fat/engine/allocation_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/recording_device.hpp"

// The order in which changes reach the disk, and the result of the first scan.

namespace sluice::fat {
namespace {

using event_kind = recording_device::event_kind;

struct kind_of_volume {
    const char* name;
    std::size_t kibibytes;
    const char* options;
};

class table : public testing::TestWithParam<kind_of_volume> {
protected:
    table()
        : image_(formatted(GetParam().kibibytes, GetParam().options)),
          shape_(read_geometry(image_).value()),
          recorded_(image_),
          table_(recorded_, shape_) {}

    std::size_t count(event_kind what) const {
        return static_cast<std::size_t>(
            std::ranges::count(recorded_.log(), what, &recording_device::event::kind));
    }
    std::uint32_t end() const { return end_entry(shape_.type); }
    // Reads the entry from the device with a new table.
    table_entry on_disk(std::uint32_t cluster) {
        allocation_table fresh(image_, shape_);
        return fresh.next(cluster).value();
    }

    memory_device image_;
    geometry shape_;
    recording_device recorded_;
    allocation_table table_;
};

TEST_P(table, writes_a_chain_in_one_pass_if_it_grew_before_the_flush) {
    auto made = table_.chain_up({.first = 10, .length = 5}, end());
    for (std::uint32_t at = 15; at != 40; at += 5) {
        const auto before = made;
        made = table_.chain_up({.first = at, .length = 5}, end());
        ASSERT_EQ(code(table_.link(at - 1, at, *before)), 0);
    }
    ASSERT_EQ(code(table_.flush(true)), 0);
    EXPECT_EQ(count(event_kind::barrier), 0U);
    EXPECT_EQ(count(event_kind::write), shape_.fat_count);
    EXPECT_EQ(on_disk(14), (table_entry{.kind = entry_kind::next, .next = 15}));
    EXPECT_EQ(on_disk(39).kind, entry_kind::end);
}

TEST_P(table, links_a_chain_on_the_disk_only_to_clusters_that_are_on_the_disk) {
    const auto made = table_.chain_up({.first = 10, .length = 5}, end());
    ASSERT_EQ(code(table_.flush(true)), 0);
    recorded_.clear_log();
    const std::uint32_t far = shape_.last_cluster() - 3;  // in another sector
    ASSERT_TRUE(table_.chain_up({.first = far, .length = 2}, end()));
    ASSERT_EQ(code(table_.link(14, far, *made)), 0);
    ASSERT_EQ(code(table_.flush(true)), 0);
    ASSERT_EQ(count(event_kind::barrier), 1U);
    // The state at the barrier.
    const auto& log = recorded_.log();
    const auto barrier = std::ranges::find(log, event_kind::barrier, &recording_device::event::kind);
    memory_device there(formatted(GetParam().kibibytes, GetParam().options));
    for (auto each = log.begin(); each != barrier; ++each)
        ASSERT_EQ(code(recording_device::replay(*each, there)), 0);
    allocation_table fresh(there, shape_);
    EXPECT_EQ(fresh.next(far)->kind, entry_kind::next);
    EXPECT_NE(fresh.next(14)->kind, entry_kind::next);
    EXPECT_EQ(on_disk(14), (table_entry{.kind = entry_kind::next, .next = far}));
}

TEST_P(table, does_not_extend_a_chain_after_a_freed_cluster) {
    const auto made = table_.chain_up({.first = 10, .length = 5}, end());
    ASSERT_TRUE(table_.free_up({.first = 14, .length = 1}));
    ASSERT_TRUE(table_.chain_up({.first = 20, .length = 1}, end()));
    EXPECT_EQ(code(table_.link(14, 20, *made)), EIO);
    EXPECT_EQ(code(table_.link(14, 20)), EIO);
    EXPECT_EQ(table_.next(14)->kind, entry_kind::free);
    EXPECT_EQ(code(table_.link(13, 20, *made)), 0) << "the rest of the chain is unchanged";
}

TEST_P(table, finds_clusters_free_that_are_neither_in_use_nor_linked) {
    ASSERT_TRUE(table_.chain_up({.first = 10, .length = 5}, end()));
    ASSERT_TRUE(table_.chain_up({.first = shape_.last_cluster() - 9, .length = 10}, 300));
    ASSERT_TRUE(table_.set({.first = 20, .length = 1}, bad_entry(shape_.type)));
    const std::uint32_t root = shape_.type == fat_type::fat32 ? 1 : 0;
    const auto map = table_.scan();
    ASSERT_TRUE(map);
    EXPECT_EQ(map->free_count(), shape_.cluster_count - 5 - 10 - 1 - 1 - root);
    for (const std::uint32_t cluster : {10U, 14U, 20U, 300U, shape_.last_cluster()})
        EXPECT_FALSE(map->is_free(cluster)) << cluster;
    for (const std::uint32_t cluster : {9U, 15U, 299U, 301U, shape_.last_cluster() - 10})
        EXPECT_TRUE(map->is_free(cluster)) << cluster;
}

INSTANTIATE_TEST_SUITE_P(of, table,
                         testing::Values(kind_of_volume{"fat12", 1440, "-F 12 -s 1"},
                                         kind_of_volume{"fat16", 20'000, "-F 16 -s 1"},
                                         kind_of_volume{"fat32", 40'000, "-F 32 -s 1"}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace sluice::fat
