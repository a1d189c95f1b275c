#include <gtest/gtest.h>

#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/device/partition_device.hpp"
#include "sluice/fat/device/recording_device.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fat {
namespace {

std::span<const std::byte> bytes_from(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::string read_text(device& from, std::uint64_t offset, std::size_t length) {
    std::string text(length, '?');
    const auto done = from.read_at(offset, std::as_writable_bytes(std::span(text)));
    return done ? text : done.error().message();
}

io::file_handle open_image(const io::test_directory& directory, io::mode mode) {
    return io::file_handle::open({}, directory.path_of("image"), mode).value();
}

// The same expectations for every implementation: a file, memory, a part, a recorder.
void expect_device_of_ten_bytes(device& under_test) {
    ASSERT_EQ(under_test.size_bytes(), 10U);
    ASSERT_TRUE(under_test.write_at(0, bytes_from("0123456789")));
    EXPECT_EQ(read_text(under_test, 3, 4), "3456");

    std::string a(2, ' ');
    std::string b(3, ' ');
    io::buffer into[] = {std::as_writable_bytes(std::span(a)), std::as_writable_bytes(std::span(b))};
    ASSERT_TRUE(under_test.read_at(5, io::buffers_type(into)));
    EXPECT_EQ(a + "|" + b, "56|789");

    io::const_buffer from[] = {bytes_from("ab"), bytes_from("c")};
    ASSERT_TRUE(under_test.write_at(7, io::const_buffers_type(from)));
    EXPECT_EQ(read_text(under_test, 6, 4), "6abc");

    ASSERT_TRUE(under_test.punch_hole({.offset = 1, .length = 2}));
    EXPECT_EQ(read_text(under_test, 0, 4), std::string("0\0\0"
                                                       "3",
                                                       4));

    std::string room(6, ' ');
    EXPECT_EQ(under_test.read_at(5, std::as_writable_bytes(std::span(room))).error(), std::errc::io_error);
    EXPECT_EQ(under_test.write_at(8, bytes_from("xyz")).error(), std::errc::io_error);
    EXPECT_EQ(under_test.write_at(~0ULL, bytes_from("x")).error(), std::errc::io_error);
    EXPECT_FALSE(under_test.punch_hole({.offset = 2, .length = ~0ULL}));
    EXPECT_EQ(read_text(under_test, 8, 2), "bc");
    EXPECT_TRUE(under_test.barrier());
}

TEST(device, in_memory_transfers_whole_ranges_and_nothing_outside) {
    memory_device memory(10);
    expect_device_of_ten_bytes(memory);
}

TEST(device, over_a_file_transfers_whole_ranges_and_nothing_outside) {
    const io::test_directory directory("/dev/shm");
    directory.write("image", std::string(10, '\0'));
    file_device file = file_device::over(open_image(directory, io::mode::write)).value();
    expect_device_of_ten_bytes(file);
    EXPECT_EQ(directory.content("image").size(), 10U);
    ASSERT_TRUE(file.location_of(4));
    EXPECT_EQ(file.location_of(4)->offset, 4U);
}

TEST(device, over_a_file_opened_for_reading_refuses_to_write) {
    const io::test_directory directory("/dev/shm");
    directory.write("image", "0123");
    file_device file = file_device::over(open_image(directory, io::mode::read)).value();
    device& image = file;
    EXPECT_FALSE(image.is_writable());
    EXPECT_EQ(image.write_at(0, bytes_from("x")).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(directory.content("image"), "0123");
}

TEST(device, over_a_truncated_file_reports_an_error_for_the_missing_bytes) {
    const io::test_directory directory("/dev/shm");
    directory.write("image", "0123456789");
    file_device file = file_device::over(open_image(directory, io::mode::read)).value();
    directory.write("image", "0123");
    EXPECT_EQ(read_text(file, 0, 4), "0123");
    std::string room(6, ' ');
    EXPECT_EQ(file.read_at(2, std::as_writable_bytes(std::span(room))).error(), std::errc::io_error);
}

TEST(device, over_a_part_of_another_cannot_access_bytes_outside_the_part) {
    memory_device memory(30);
    ASSERT_TRUE(memory.write_at(0, bytes_from(std::string(30, '.'))));
    partition_device part = partition_device::of(memory, {.offset = 10, .length = 10}).value();
    expect_device_of_ten_bytes(part);
    EXPECT_EQ(read_text(memory, 0, 10), "..........");
    EXPECT_EQ(read_text(memory, 20, 10), "..........");
    EXPECT_FALSE(partition_device::of(memory, {.offset = 25, .length = 6}));
    EXPECT_FALSE(partition_device::of(memory, {.offset = 31, .length = ~0ULL}));
}

TEST(device, that_records_can_rebuild_the_image_as_of_every_event) {
    memory_device memory(10);
    recording_device recorder(memory);
    expect_device_of_ten_bytes(recorder);
    ASSERT_EQ(recorder.log().size(), 4U);  // rejected writes have changed nothing
    EXPECT_EQ(recorder.log()[3].kind, recording_device::event_kind::barrier);

    memory_device rebuilt(10);
    for (const auto& each : recorder.log())
        ASSERT_TRUE(recording_device::replay(each, rebuilt));
    EXPECT_TRUE(std::ranges::equal(rebuilt.bytes(), memory.bytes()));
}

}  // namespace
}  // namespace sluice::fat
