#include "sluice/io/file/clone.hpp"

#include <array>
#include <string>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

constexpr extent_type mib = 1 << 20;
constexpr std::array all_methods{clone_method::reflink, clone_method::kernel_copy, clone_method::user_copy};

class clone_on : public on_each_volume {
protected:
    file_handle open(const char* name) {
        return file_handle::open(directory.anchor(), name, mode::write, creation::always_new).value();
    }
    static void write(file_handle& file, extent_type at, const std::string& text) {
        ASSERT_EQ(
            file.write(io_request<const_bytes_type>{std::as_bytes(std::span(text)), at}).bytes_transferred(),
            text.size());
    }
    file_handle source = open("source");
    file_handle destination = open("destination");
};

TEST_P(clone_on, every_method_copies_the_same_bytes_and_is_reported) {
    std::string content;
    for (unsigned i = 0; i < 300'000; ++i)
        content += static_cast<char>('a' + i * i % 26);
    write(source, 0, content);
    for (const clone_method method : all_methods) {
        destination = open("destination");
        const auto done = source.clone_extents_to(destination, {}, {.strongest = method});
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_EQ(done->cloned_bytes, content.size());
        EXPECT_EQ(done->data_bytes, content.size());
        EXPECT_GE(done->method, method);
        EXPECT_FALSE(done->stopped);
        EXPECT_EQ(directory.content("destination"), content);
    }
}

TEST_P(clone_on, holes_stay_holes_and_the_last_one_counts_for_the_length) {
    write(source, mib, std::string(5000, 'x'));
    write(source, 3 * mib, std::string(5000, 'y'));
    ASSERT_TRUE(source.truncate(6 * mib));
    for (const clone_method method : all_methods) {
        destination = open("destination");
        const auto done = source.clone_extents_to(destination, {}, {.strongest = method});
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_EQ(done->cloned_bytes, 6 * mib);
        EXPECT_EQ(destination.maximum_extent().value(), 6 * mib);
        EXPECT_LT(status_of(destination).value().allocated_bytes, 1 * mib);
        EXPECT_EQ(directory.content("destination"), directory.content("source"));
    }
}

TEST_P(clone_on, a_hole_overwrites_bytes_of_the_destination) {
    ASSERT_TRUE(source.truncate(10'000));
    for (const clone_method method : all_methods) {
        destination = open("destination");
        write(destination, 0, std::string(20'000, 'd'));
        ASSERT_TRUE(source.clone_extents_to(destination, {}, {.strongest = method}));
        EXPECT_EQ(directory.content("destination"), std::string(10'000, '\0') + std::string(10'000, 'd'));
    }
}

TEST_P(clone_on, a_range_is_copied_to_an_offset_and_ends_at_the_end_of_the_source) {
    write(source, 0, "0123456789");
    for (const clone_method method : all_methods) {
        destination = open("destination");
        write(destination, 0, "abcdefghij");
        const auto part = source.clone_extents_to(
            destination, {.source = {.offset = 2, .length = 3}, .destination_offset = 4},
            {.strongest = method});
        ASSERT_TRUE(part) << part.error().message();
        EXPECT_EQ(directory.content("destination"), "abcd234hij");
        const auto cut = source.clone_extents_to(
            destination, {.source = {.offset = 8}, .destination_offset = 9}, {.strongest = method});
        EXPECT_EQ(cut.value().cloned_bytes, 2U);
        EXPECT_EQ(directory.content("destination"), "abcd234hi89");
        EXPECT_EQ(source.clone_extents_to(destination, {.source = {.offset = 80}}, {.strongest = method})
                      .value()
                      .cloned_bytes,
                  0U);
    }
}

TEST_P(clone_on, within_one_file_ranges_may_be_adjacent_but_not_overlap) {
    write(source, 0, "0123456789");
    auto& same = source;
    ASSERT_TRUE(
        source.clone_extents_to(same, {.source = {.offset = 0, .length = 5}, .destination_offset = 5}));
    EXPECT_EQ(directory.content("source"), "0123401234");
    EXPECT_EQ(source.clone_extents_to(same, {.source = {.offset = 0, .length = 5}, .destination_offset = 4})
                  .error(),
              std::errc::invalid_argument);
}

TEST_P(clone_on, the_observer_is_called_with_the_progress_and_can_stop_the_copy) {
    write(source, 0, std::string(10 * 4096, 'x'));
    std::vector<std::byte> buffer(4096);
    std::vector<extent_type> heard;
    auto stop_after_three_pages = [&](const clone_progress& progress) {
        EXPECT_EQ(progress.total_bytes, 10U * 4096);
        heard.push_back(progress.done_bytes);
        return progress.done_bytes < 3 * 4096;
    };
    const auto done = source.clone_extents_to(
        destination, {},
        {.strongest = clone_method::user_copy, .buffer = buffer, .observer = stop_after_three_pages});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_TRUE(done->stopped);
    EXPECT_EQ(done->cloned_bytes, 3U * 4096);
    EXPECT_EQ(destination.maximum_extent().value(), 3U * 4096);
    EXPECT_EQ(heard, (std::vector<extent_type>{0, 4096, 2 * 4096, 3 * 4096}));
}

TEST_P(clone_on, a_copy_that_the_modes_of_the_handles_do_not_allow_is_refused) {
    write(source, 0, "x");
    auto reader = file_handle::open(directory.anchor(), "source").value();
    EXPECT_EQ(source.clone_extents_to(reader).error(), std::errc::bad_file_descriptor);
    auto appender = file_handle::open(directory.anchor(), "destination", mode::append).value();
    EXPECT_EQ(source.clone_extents_to(appender).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(appender.clone_extents_to(source).error(), std::errc::bad_file_descriptor);
}

TEST_P(clone_on, between_file_systems_it_copies) {
    write(source, 0, "across");
    const test_directory other(std::string(GetParam()) == "memory" ? std::filesystem::current_path().string()
                                                                   : "/dev/shm");
    auto there = file_handle::open(other.anchor(), "copy", mode::write, creation::always_new).value();
    const auto done = source.clone_extents_to(there);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_GE(done->method, clone_method::kernel_copy);
    EXPECT_EQ(other.content("copy"), "across");
}

SLUICE_ON_EACH_VOLUME(clone_on);

}  // namespace
}  // namespace sluice::io
