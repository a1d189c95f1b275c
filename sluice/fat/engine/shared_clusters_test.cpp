#include <gtest/gtest.h>

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/image_testing.hpp"

// Volumes on which files claim free clusters, or clusters of another file.

namespace sluice::fat {
namespace {

void set_entry(mounted_image& in, std::uint32_t cluster, std::uint32_t value) {
    for (std::uint32_t copy = 0; copy != in.shape.fat_count; ++copy) {
        const auto table = in.image.bytes().subspan(in.shape.fat_copy_offset(copy), in.shape.fat_bytes);
        ASSERT_TRUE(write_entry(in.shape.type, {.bytes = table}, cluster, value));
    }
}

// Creates two files of three clusters that share the last one.
void share_a_cluster(mounted_image& made) {
    const std::string three(std::size_t{3} * made.shape.cluster_bytes, 'x');
    put(*made.system, "a", three);
    put(*made.system, "b", three);
    std::vector<std::uint32_t> clusters;
    for (const char* const path : {"a", "b"}) {
        const auto file = made.system->find(path).value();
        EXPECT_EQ(code(made.system->for_each_extent(
                      *file, {.offset = 0, .length = three.size()},
                      [&](const auto& piece) {
                          clusters.push_back(static_cast<std::uint32_t>(
                              (*piece.place - made.shape.data_offset) / made.shape.cluster_bytes + 2));
                          return true;
                      })),
                  0);
    }
    ASSERT_EQ(clusters.size(), 2U) << "each file is contiguous";
    ASSERT_EQ(code(made.system->unmount()), 0);
    set_entry(made, clusters[1] + 1, clusters[0] + 2);
    made.mount();
}

// Found by damaged_images in its long form.
TEST(damaged_images, a_shared_cluster_is_free_after_one_file_is_removed) {
    for (const bool grows : {false, true}) {
        mounted_image made(formatted(2200, "-F 16 -s 1"));
        ASSERT_NO_FATAL_FAILURE(share_a_cluster(made));
        file_system& fs = *made.system;
        const std::uint64_t bytes = std::uint64_t{3} * made.shape.cluster_bytes;
        auto b = fs.find("b").value();
        run_list::hint hint;
        const std::string more(600, 'm');
        const auto write_at = [&](std::uint64_t offset) {
            return code(fs.write(*b, hint, std::as_bytes(std::span(more)), offset));
        };
        // Then its chain is known to the end.
        ASSERT_EQ(grows ? code(fs.truncate(*b, bytes - 1)) : write_at(bytes), 0);
        ASSERT_EQ(code(fs.remove(*fs.find("a").value())), 0);
        ASSERT_EQ(code(fs.commit()), 0);
        if (grows) {
            EXPECT_EQ(write_at(bytes), EIO);
        } else {
            EXPECT_EQ(code(fs.truncate(*b, bytes)), 0);
            EXPECT_EQ(code(fs.commit()), 0);
        }
        ASSERT_EQ(code(fs.remove(*b)), 0);
        b = {};
        EXPECT_EQ(code(fs.commit()), 0);
        EXPECT_EQ(code(fs.unmount()), 0);
    }
}

// The entry of "claims" leads to a free cluster, so the next file gets that cluster, and loses it
// in the table when "claims" is truncated. The next file would grow by the following cluster or, if
// that is bad, by the one that it has lost.
TEST(shared_clusters, a_file_whose_last_cluster_another_has_freed_does_not_grow) {
    for (const bool is_next_bad : {false, true}) {
        mounted_image made(formatted(2200, "-F 16 -s 1"));
        put(*made.system, "claims", std::string(made.shape.cluster_bytes, 'c'));
        ASSERT_EQ(code(made.system->unmount()), 0);
        set_entry(made, geometry::first_cluster, free_entry);
        for (std::uint32_t each = 3; is_next_bad and each <= made.shape.last_cluster(); ++each)
            set_entry(made, each, bad_entry(made.shape.type));
        made.mount();
        file_system& fs = *made.system;
        const std::uint32_t free = fs.free_clusters().value();
        auto grows = fs.create("grows", false, attributes::none).value();
        run_list::hint hint;
        const std::string cluster(made.shape.cluster_bytes, 'g');
        const auto write_at = [&](std::uint64_t offset) {
            return code(fs.write(*grows, hint, std::as_bytes(std::span(cluster)), offset));
        };
        ASSERT_EQ(write_at(0), 0);
        ASSERT_EQ(code(fs.truncate(*fs.find("claims").value(), 0)), 0);
        ASSERT_EQ(code(fs.commit()), 0);
        ASSERT_EQ(fs.free_clusters().value(), free) << "they had the same cluster";
        EXPECT_EQ(write_at(cluster.size()), EIO);
        EXPECT_EQ(code(fs.truncate(*grows, 0)), 0);
        EXPECT_EQ(code(fs.commit()), 0);
        grows = {};
        EXPECT_EQ(code(fs.unmount()), 0);
        EXPECT_TRUE(check(made.image)->is_consistent()) << text_of(*check(made.image));
    }
}

}  // namespace
}  // namespace sluice::fat
