#include "sluice/io/file/file_handle.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using file_handle_on = on_each_volume;

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::string read_all(file_handle& file, extent_type offset = 0) {
    std::array<std::byte, 1024> storage{};
    const auto got = file.read(io_request<bytes_type>{storage, offset});
    if (not got) return got.error().message();
    return {reinterpret_cast<const char*>(got->data()), got->size()};
}

file_handle create(const path_handle& base, path_view name, std::string_view content = {}) {
    auto file = file_handle::open(base, name, mode::write, creation::only_if_not_exist).value();
    EXPECT_EQ(file.write(io_request<const_bytes_type>{bytes(content), 0}).bytes_transferred(),
              content.size());
    return file;
}

TEST_P(file_handle_on, written_bytes_are_read_back_at_any_offset) {
    auto file = create(directory.anchor(), "file", "hello, file");
    EXPECT_EQ(read_all(file), "hello, file");
    EXPECT_EQ(read_all(file, 7), "file");
    EXPECT_EQ(file.maximum_extent().value(), 11U);
}

TEST_P(file_handle_on, a_read_that_reaches_the_end_is_short_and_one_past_it_returns_no_bytes) {
    auto file = create(directory.anchor(), "file", "12345");
    EXPECT_EQ(read_all(file, 3), "45");
    EXPECT_EQ(read_all(file, 5), "");
    EXPECT_EQ(read_all(file, 500), "");
}

TEST_P(file_handle_on, a_read_scatters_over_several_buffers_and_shortens_the_last) {
    auto file = create(directory.anchor(), "file", "123456789");
    std::array<std::byte, 4> first{};
    std::array<std::byte, 4> second{};
    std::array<std::byte, 4> third{};
    std::array<buffer, 3> list{buffer(first), buffer(second), buffer(third)};
    const auto got = file.read(io_request<buffers_type>{list, 0});
    ASSERT_TRUE(got);
    EXPECT_EQ(got.bytes_transferred(), 9U);
    ASSERT_EQ(got->size(), 3U);
    EXPECT_EQ((*got)[2].size(), 1U);
    EXPECT_EQ(third[0], std::byte{'9'});
}

TEST_P(file_handle_on, a_write_past_the_end_leaves_a_hole_of_zeros) {
    auto file = create(directory.anchor(), "file", "1");
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{bytes("2"), 3}));
    EXPECT_EQ(read_all(file), std::string("1\0\0"
                                          "2",
                                          4));
}

TEST_P(file_handle_on, creation_decides_what_happens_to_an_existing_file) {
    const auto& base = directory.anchor();
    const auto open = [&](creation create) { return file_handle::open(base, "file", mode::write, create); };
    EXPECT_EQ(open(creation::open_existing).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(open(creation::truncate_existing).error(), std::errc::no_such_file_or_directory);
    (void)create(base, "file", "content");
    EXPECT_EQ(open(creation::only_if_not_exist).error(), std::errc::file_exists);
    EXPECT_EQ(open(creation::if_needed).value().maximum_extent().value(), 7U);
    const auto before = status_at(base, "file").value();
    EXPECT_EQ(open(creation::truncate_existing).value().maximum_extent().value(), 0U);
    EXPECT_TRUE(before.is_same_inode(status_at(base, "file").value()));
}

TEST_P(file_handle_on, always_new_replaces_the_file_and_open_handles_keep_the_old_one) {
    const auto& base = directory.anchor();
    auto old = create(base, "file", "old");
    auto fresh = file_handle::open(base, "file", mode::write, creation::always_new);
    ASSERT_TRUE(fresh) << fresh.error().message();
    EXPECT_EQ(read_all(*fresh), "");
    EXPECT_EQ(read_all(old), "old");
    EXPECT_TRUE(status_of(*fresh)->is_same_inode(status_at(base, "file").value()));
    EXPECT_EQ(directory.entry_count(), 1U);
    fs::create_directories(directory.path_of("directory"));
    EXPECT_EQ(file_handle::open(base, "directory", mode::write, creation::always_new).error(),
              std::errc::is_a_directory);
    EXPECT_EQ(directory.entry_count(), 2U) << "the temporary name was left behind";
}

TEST_P(file_handle_on, senseless_combinations_are_refused) {
    const auto& base = directory.anchor();
    EXPECT_EQ(file_handle::open(base, "x", mode::read, creation::truncate_existing).error(),
              std::errc::invalid_argument);
    EXPECT_EQ(file_handle::open(base, "x", mode::attr_read, creation::if_needed).error(),
              std::errc::invalid_argument);
    EXPECT_FALSE(directory.exists("x"));
}

TEST_P(file_handle_on, permission_bits_are_the_permissions_of_a_new_file) {
    const auto file = file_handle::open(directory.anchor(), "file", mode::write, creation::always_new,
                                        caching::all, open_flag::none, 0600);
    EXPECT_EQ(status_of(*file).value().permission_bits, 0600);
}

TEST_P(file_handle_on, a_handle_reads_and_writes_only_if_its_mode_allows_it) {
    (void)create(directory.anchor(), "file", "content");
    auto reader = file_handle::open(directory.anchor(), "file").value();
    EXPECT_EQ(reader.write(io_request<const_bytes_type>{bytes("x"), 0}).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(reader.zero({}).error(), std::errc::bad_file_descriptor);
    auto attributes = file_handle::open(directory.anchor(), "file", mode::attr_read).value();
    EXPECT_EQ(read_all(attributes), error(EBADF, "read", attributes.descriptor()).message());
    EXPECT_EQ(status_of(attributes).value().size_bytes, 7U);
}

TEST_P(file_handle_on, directories_fifos_and_sockets_are_refused_without_waiting) {
    ASSERT_EQ(::mkfifo(directory.path_of("fifo").c_str(), 0600), 0);
    fs::create_directory(directory.path_of("directory"));
    for (const mode wanted : {mode::read, mode::write, mode::append}) {
        EXPECT_EQ(file_handle::open(directory.anchor(), "fifo", wanted).error(),
                  std::errc::no_such_device_or_address);
        EXPECT_EQ(file_handle::open(directory.anchor(), "directory", wanted).error(),
                  std::errc::is_a_directory);
    }
    EXPECT_EQ(status_of(file_handle::open(directory.anchor(), "fifo", mode::attr_read).value()).value().type,
              file_type::fifo);
}

TEST_P(file_handle_on, open_with_no_wait_does_not_wait_for_a_lease_of_another_process) {
    (void)create(directory.anchor(), "file", "x");
    auto holder = file_handle::open(directory.anchor(), "file").value();
    // The signal that notifies the holder of the break.
    const auto no_signal = std::signal(SIGIO, SIG_IGN);
    ASSERT_EQ(::fcntl(holder.descriptor(), F_SETLEASE, F_RDLCK), 0);
    const auto open = [&] {
        return file_handle::open(directory.anchor(), "file", mode::write, creation::open_existing,
                                 caching::all, open_flag::no_wait);
    };
    EXPECT_EQ(open().error(), std::errc::resource_unavailable_try_again);
    ASSERT_EQ(::fcntl(holder.descriptor(), F_SETLEASE, F_UNLCK), 0);
    EXPECT_TRUE(open());
    std::signal(SIGIO, no_signal);
}

TEST_P(file_handle_on, opened_it_is_not_left_nonblocking) {
    (void)create(directory.anchor(), "file");
    const auto file = file_handle::open(directory.anchor(), "file", mode::append).value();
    EXPECT_FALSE(file.native().nonblocking);
    EXPECT_TRUE(file.native().append_only);
    EXPECT_EQ(file.native().in_memory, std::string(GetParam()) == "memory");
}

TEST_P(file_handle_on, a_link_at_the_path_is_followed_unless_forbidden) {
    (void)create(directory.anchor(), "file", "x");
    fs::create_symlink("file", directory.path_of("link"));
    EXPECT_TRUE(file_handle::open(directory.anchor(), "link"));
    EXPECT_EQ(file_handle::open(directory.anchor(), "link", mode::read, creation::open_existing, caching::all,
                                open_flag::no_follow)
                  .error(),
              std::errc::too_many_symbolic_link_levels);
}

TEST_P(file_handle_on, beneath_a_confined_directory_nothing_outside_is_opened_or_created) {
    fs::create_directories(directory.path_of("share/inner"));
    (void)create(directory.anchor(), "secret", "x");
    fs::create_symlink(directory.path_of("secret"), directory.path_of("share/absolute"));
    fs::create_symlink("../created", directory.path_of("share/dangling"));
    fs::create_symlink("..", directory.path_of("share/out"));
    const auto share = path_handle::open(directory.anchor(), "share", confinement::beneath).value();
    for (const char* path : {"../secret", "absolute", "out/secret", "inner/../../secret", "dangling"})
        for (const creation how :
             {creation::open_existing, creation::if_needed, creation::only_if_not_exist}) {
            const auto opened = file_handle::open(share, path, mode::write, how);
            ASSERT_FALSE(opened) << path;
            // O_EXCL does not follow a link at the path itself: it detects an existing name.
            if (opened.error() != std::errc::file_exists)
                EXPECT_EQ(opened.error(), std::errc::cross_device_link) << path;
        }
    EXPECT_EQ(file_handle::open(share, "out/new", mode::write, creation::always_new).error(),
              std::errc::cross_device_link);
    EXPECT_FALSE(directory.exists("created"));
    EXPECT_TRUE(file_handle::open(share, "inner/../new", mode::write, creation::always_new));
    EXPECT_TRUE(directory.exists("share/new"));
}

TEST_P(file_handle_on, unlink_on_first_close_removes_the_present_name_of_a_renamed_file) {
    const auto open = [&](creation create) {
        return file_handle::open(directory.anchor(), "file", mode::write, create, caching::all,
                                 open_flag::unlink_on_first_close);
    };
    { const auto file = open(creation::if_needed).value(); }
    EXPECT_EQ(directory.entry_count(), 0U);
    auto file = open(creation::always_new).value();
    fs::create_directory(directory.path_of("moved"));
    fs::rename(directory.path_of("file"), directory.path_of("moved/here"));
    (void)create(directory.anchor(), "file");
    EXPECT_TRUE(file.close());
    EXPECT_FALSE(directory.exists("moved/here"));
    EXPECT_TRUE(directory.exists("file")) << "another file took the name and must stay";
}

TEST_P(file_handle_on, unlink_on_first_close_moves_with_the_handle_and_ends_when_the_descriptor_is_released) {
    auto file = file_handle::temp_file(directory.anchor()).value();
    auto taken = std::move(file);
    { const file_handle dropped = std::move(file); }  // NOLINT: moved from
    EXPECT_EQ(directory.entry_count(), 1U);
    taken = file_handle();
    EXPECT_EQ(directory.entry_count(), 0U);
    auto released = file_handle::temp_file(directory.anchor()).value();
    { const file_handle owner(released.release()); }
    EXPECT_EQ(directory.entry_count(), 1U);
}

TEST_P(file_handle_on, close_succeeds_if_the_name_no_longer_exists) {
    auto file = file_handle::temp_file(directory.anchor()).value();
    ASSERT_TRUE(unlink(file));
    EXPECT_TRUE(file.close());
    EXPECT_FALSE(file.is_valid());
}

TEST_P(file_handle_on, a_temporary_inode_has_no_name) {
    for (const auto method :
         {file_handle::temp_inode_method::automatic, file_handle::temp_inode_method::named_first}) {
        auto file = file_handle::temp_inode(directory.anchor(), caching::temporary, method);
        ASSERT_TRUE(file) << file.error().message();
        EXPECT_EQ(directory.entry_count(), 0U);
        EXPECT_EQ(status_of(*file).value().links, 0U);
        ASSERT_TRUE(file->write(io_request<const_bytes_type>{bytes("x"), 0}));
        EXPECT_EQ(read_all(*file), "x");
    }
    EXPECT_TRUE(file_handle::temp_inode(directory.confined()));
}

TEST_P(file_handle_on, truncate_shortens_the_file_or_adds_zeros) {
    auto file = create(directory.anchor(), "file", "123456");
    EXPECT_EQ(file.truncate(3).value(), 3U);
    EXPECT_EQ(file.truncate(5).value(), 5U);
    EXPECT_EQ(read_all(file), std::string("123\0\0", 5));
    EXPECT_EQ(file.truncate(std::numeric_limits<extent_type>::max()).error(), std::errc::file_too_large);
}

TEST_P(file_handle_on, extents_distinguish_data_from_holes) {
    constexpr extent_type mib = 1 << 20;
    auto file = create(directory.anchor(), "file");
    ASSERT_TRUE(file.truncate(8 * mib));
    const std::string page(4096, 'x');
    for (const extent_type at : {1 * mib, 3 * mib, 5 * mib})
        ASSERT_TRUE(file.write(io_request<const_bytes_type>{bytes(page), at}));
    std::array<extent_pair, 10> storage{};
    const auto all = file.extents({}, storage).value();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[1], (extent_pair{.offset = 3 * mib, .length = 4096}));
    EXPECT_EQ(file.extents({.offset = 2 * mib, .length = 2 * mib}, storage).value().size(), 1U);
    const auto cut = file.extents({.offset = mib + 100, .length = 100}, storage).value();
    ASSERT_EQ(cut.size(), 1U);
    EXPECT_EQ(cut[0], (extent_pair{.offset = mib + 100, .length = 100}));
    EXPECT_TRUE(file.extents({.offset = 6 * mib}, storage).value().empty());
    EXPECT_TRUE(file.extents({.offset = 60 * mib}, storage).value().empty());
    // Fills the storage, and continues from there.
    const std::span<extent_pair> two = std::span(storage).first(2);
    ASSERT_EQ(file.extents({}, two).value().size(), 2U);
    const auto rest = file.extents({.offset = two[1].offset + two[1].length}, two).value();
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].offset, 5 * mib);
}

TEST_P(file_handle_on, zeroed_bytes_read_as_zeros_and_the_length_stays) {
    for (const auto method : {file_handle::zero_method::automatic, file_handle::zero_method::written}) {
        const std::string content(200'000, 'x');
        auto file = file_handle::open(directory.anchor(), "file", mode::write, creation::always_new).value();
        ASSERT_TRUE(file.write(io_request<const_bytes_type>{bytes(content), 0}));
        ASSERT_TRUE(file.zero({.offset = 10, .length = 150'000}, method));
        EXPECT_EQ(directory.content("file"),
                  std::string(10, 'x') + std::string(150'000, '\0') + std::string(49'990, 'x'));
        ASSERT_TRUE(file.zero({.offset = 199'999, .length = 5'000}, method));
        ASSERT_TRUE(file.zero({.offset = 300'000}, method));
        ASSERT_TRUE(file.zero({.offset = 5, .length = 0}, method));
        EXPECT_EQ(file.maximum_extent().value(), 200'000U);
        EXPECT_EQ(directory.content("file").back(), '\0');
    }
}

TEST_P(file_handle_on, a_punched_hole_frees_its_blocks) {
    auto file = create(directory.anchor(), "file", std::string(1 << 20, 'x'));
    ASSERT_TRUE(file.zero({}));
    EXPECT_LT(status_of(file).value().allocated_bytes, 64U << 10);
}

TEST_P(file_handle_on, an_append_handle_writes_at_the_end_whatever_the_offset) {
    (void)create(directory.anchor(), "file", "1");
    auto file = file_handle::open(directory.anchor(), "file", mode::append).value();
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{bytes("2"), 0}));
    EXPECT_EQ(directory.content("file"), "12");
    EXPECT_EQ(file.zero({}).error(), std::errc::bad_file_descriptor);
}

TEST_P(file_handle_on, barriers_of_every_kind_succeed) {
    auto file = create(directory.anchor(), "file", "x");
    for (const auto kind : {barrier_kind::nowait_data_only, barrier_kind::wait_data_only,
                            barrier_kind::nowait_all, barrier_kind::wait_all})
        EXPECT_TRUE(file.barrier(kind));
}

TEST_P(file_handle_on, direct_io_accepts_aligned_requests) {
    auto file =
        file_handle::open(directory.anchor(), "file", mode::write, creation::if_needed, caching::none);
    if (not file) {
        ASSERT_EQ(file.error(), std::errc::invalid_argument);
        GTEST_SKIP() << "no direct I/O here";
    }
    EXPECT_TRUE(file->native().direct);
    alignas(4096) std::array<std::byte, 8192> data{};
    data.fill(std::byte{'d'});
    EXPECT_EQ(file->write(io_request<const_bytes_type>{data, 0}).bytes_transferred(), data.size());
    ASSERT_TRUE(file->zero({.offset = 4096, .length = 4096}, file_handle::zero_method::written));
    EXPECT_EQ(directory.content("file"), std::string(4096, 'd') + std::string(4096, '\0'));
}

SLUICE_ON_EACH_VOLUME(file_handle_on);

}  // namespace
}  // namespace sluice::io
