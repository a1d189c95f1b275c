#include "sluice/io/file/mapped_file_handle.hpp"

#include <array>
#include <cstring>
#include <string>

#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

class mapped_file_handle_on : public on_each_volume {
protected:
    static constexpr extent_type mib = 1 << 20;

    mapped_file_handle create(std::string_view content = {}, extent_type reserve_bytes = 16 * mib) {
        directory.write("file", std::string(content));
        auto mapped = mapped_file_handle::open(directory.anchor(), "file", reserve_bytes, mode::write);
        EXPECT_TRUE(mapped) << mapped.error().message();
        return std::move(*mapped);
    }
    static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
    static std::string read(mapped_file_handle& file, extent_type offset, std::size_t bytes_max) {
        std::string storage(bytes_max, '?');
        const auto got =
            file.read(io_request<bytes_type>{std::as_writable_bytes(std::span(storage)), offset});
        if (not got) return got.error().message();
        return {reinterpret_cast<const char*>(got->data()), got->size()};
    }
};

TEST_P(mapped_file_handle_on, a_read_returns_the_files_own_pages) {
    auto file = create("0123456789");
    std::array<std::byte, 4> storage{};
    const auto got = file.read(io_request<bytes_type>{storage, 3});
    ASSERT_TRUE(got);
    EXPECT_EQ(got->data(), file.address() + 3);
    EXPECT_EQ(read(file, 3, 4), "3456");
    EXPECT_EQ(read(file, 8, 4), "89");
    EXPECT_EQ(read(file, 10, 4), "");
    EXPECT_EQ(read(file, 1000 * mib, 4), "");
}

TEST_P(mapped_file_handle_on, a_list_of_buffers_is_turned_into_pieces_of_the_map) {
    auto file = create("0123456789");
    std::array<std::byte, 6> one{};
    std::array<std::byte, 6> two{};
    std::array<std::byte, 6> three{};
    std::array<buffer, 3> list{buffer(one), buffer(two), buffer(three)};
    const auto got = file.read(io_request<buffers_type>{list, 1});
    ASSERT_TRUE(got);
    EXPECT_EQ(got.bytes_transferred(), 9U);
    ASSERT_EQ(got->size(), 2U);
    EXPECT_EQ((*got)[0].data(), file.address() + 1);
    EXPECT_EQ((*got)[1].data(), file.address() + 7);
    EXPECT_EQ((*got)[1].size(), 3U);
}

TEST_P(mapped_file_handle_on, a_write_is_visible_to_readers_of_the_file) {
    auto file = create("0123456789");
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes("abc"), 2}).bytes_transferred(), 3U);
    EXPECT_EQ(directory.content("file"), "01abc56789");
    std::array<const_buffer, 2> list{const_buffer(bytes("x")), const_buffer(bytes("yz"))};
    EXPECT_EQ(file.write(io_request<const_buffers_type>{list, 0}).bytes_transferred(), 3U);
    EXPECT_EQ(directory.content("file"), "xyzbc56789");
}

TEST_P(mapped_file_handle_on, it_grows_without_moving) {
    auto file = create();
    std::byte* const before = file.address();
    ASSERT_NE(before, nullptr);
    EXPECT_GE(file.reserved_bytes(), 16 * mib);
    ASSERT_TRUE(file.truncate(8 * mib));
    EXPECT_EQ(file.address(), before);
    file.address()[8 * mib - 1] = std::byte{'z'};
    EXPECT_EQ(read(file, 8 * mib - 1, 9), "z");
    EXPECT_EQ(directory.content("file").back(), 'z');
    ASSERT_TRUE(file.truncate(1));
    EXPECT_EQ(read(file, 0, 9).size(), 1U);
    EXPECT_EQ(file.truncate(17 * mib).error(), std::errc::file_too_large);
}

TEST_P(mapped_file_handle_on, a_write_past_the_end_lengthens_the_file_and_ends_at_the_reservation) {
    auto file = create("01", 1);
    const extent_type end = file.reserved_bytes();
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes("abcd"), 1}).bytes_transferred(), 4U);
    EXPECT_EQ(directory.content("file"), "0abcd");
    EXPECT_EQ(file.mapped_length(), 5U);
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes("wxyz"), end - 3}).bytes_transferred(), 3U);
    EXPECT_EQ(read(file, end - 3, 9), "wxy");
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes("w"), end}).error(), std::errc::file_too_large);
}

TEST_P(mapped_file_handle_on, growth_by_other_handles_is_detected) {
    auto file = create("0");
    auto other = file_handle::open(directory.anchor(), "file", mode::append).value();
    ASSERT_TRUE(other.write(io_request<const_bytes_type>{bytes("123"), 0}));
    EXPECT_EQ(read(file, 0, 9), "0123");
    ASSERT_TRUE(other.truncate(2));
    EXPECT_EQ(file.update_length().value(), 2U);
    EXPECT_EQ(read(file, 0, 9), "01");
}

TEST_P(mapped_file_handle_on, copy_out_of_a_truncated_file_is_short_and_raises_no_signal) {
    auto file = create(std::string(3 * 4096, 'x'));
    std::filesystem::resize_file(directory.path_of("file"), 10);
    std::array<std::byte, 100> storage{};
    EXPECT_EQ(file.copy_out(io_request<bytes_type>{storage, 8192}).bytes_transferred(), 0U);
    EXPECT_EQ(file.copy_out(io_request<bytes_type>{storage, 0}).bytes_transferred(), 10U);
}

TEST_P(mapped_file_handle_on, barriers_of_every_kind_and_of_a_range_succeed) {
    auto file = create(std::string(20'000, 'x'));
    for (const auto kind : {barrier_kind::nowait_data_only, barrier_kind::wait_data_only,
                            barrier_kind::nowait_all, barrier_kind::wait_all})
        EXPECT_TRUE(file.barrier(kind));
    std::array<const_buffer, 1> range{const_buffer(file.address() + 5000, 3000)};
    EXPECT_TRUE(file.barrier(barrier_kind::wait_data_only, {.buffers = range, .offset = 5000}));
    EXPECT_TRUE(file.barrier(barrier_kind::wait_data_only, {.buffers = range}));
}

TEST_P(mapped_file_handle_on, read_only_it_cannot_be_written) {
    (void)create("abc");
    auto file = mapped_file_handle::open(directory.anchor(), "file").value();
    EXPECT_EQ(read(file, 0, 9), "abc");
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes("x")}).error(), std::errc::bad_file_descriptor);
}

TEST_P(mapped_file_handle_on, files_that_cannot_be_mapped_are_refused) {
    const auto open = [&](mode wanted, caching cached) {
        return mapped_file_handle::open(directory.anchor(), "file", 0, wanted, creation::if_needed, cached);
    };
    EXPECT_EQ(open(mode::append, caching::all).error(), std::errc::invalid_argument);
    EXPECT_EQ(open(mode::write, caching::none).error(), std::errc::invalid_argument);
    EXPECT_FALSE(directory.exists("file"));
    EXPECT_EQ(mapped_file_handle::open(directory.anchor(), "file", std::numeric_limits<extent_type>::max(),
                                       mode::write, creation::if_needed)
                  .error(),
              std::errc::not_enough_memory);
}

TEST_P(mapped_file_handle_on, moved_it_keeps_its_address_and_closed_it_is_unmapped) {
    auto file = create("abc");
    std::byte* const at = file.address();
    mapped_file_handle moved = std::move(file);
    EXPECT_EQ(moved.address(), at);
    EXPECT_EQ(file.address(), nullptr);  // NOLINT: moved from
    mapped_file_handle assigned;
    assigned = std::move(moved);
    EXPECT_EQ(read(assigned, 0, 9), "abc");
    EXPECT_TRUE(assigned.close());
    EXPECT_EQ(assigned.address(), nullptr);
    EXPECT_EQ(read(assigned, 0, 9), "read: Bad file descriptor");
}

TEST_P(mapped_file_handle_on, a_file_without_a_name_can_be_mapped) {
    auto file = mapped_file_handle::map(file_handle::temp_inode(directory.anchor()).value(), mib);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->write(io_request<const_bytes_type>{bytes("abc"), 0}).bytes_transferred(), 3U);
    EXPECT_EQ(read(*file, 0, 9), "abc");
    EXPECT_EQ(directory.entry_count(), 0U);
}

SLUICE_ON_EACH_VOLUME(mapped_file_handle_on);

}  // namespace
}  // namespace sluice::io
