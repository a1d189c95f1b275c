#include "sluice/io/path/volume_status.hpp"

#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

using volume_status_on = on_each_volume;

TEST_P(volume_status_on, distinguishes_memory_from_disk_and_returns_the_free_space) {
    const auto volume = volume_of(directory.anchor());
    ASSERT_TRUE(volume) << volume.error().message();
    if (std::string(GetParam()) == "memory") {
        EXPECT_EQ(volume->type_name, "tmpfs");
        EXPECT_TRUE(volume->in_memory);
        EXPECT_EQ(volume->reach, volume_reach::this_host);
    }
    EXPECT_FALSE(volume->read_only);
    EXPECT_GT(volume->total_bytes, 0U);
    EXPECT_LE(volume->free_bytes, volume->total_bytes);
    EXPECT_LE(volume->available_bytes, volume->free_bytes);
    EXPECT_EQ(volume->name_bytes_max, 255U);
}

TEST(volume_status, is_an_error_for_an_invalid_handle) {
    EXPECT_EQ(volume_of(handle()).error(), std::errc::bad_file_descriptor);
}

TEST(volume_status, knows_the_kernels_own_file_systems) {
    EXPECT_EQ(volume_of(path_handle::open("/proc").value()).value().type_name, "proc");
}

SLUICE_ON_EACH_VOLUME(volume_status_on);

}  // namespace
}  // namespace sluice::io
