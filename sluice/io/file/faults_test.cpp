// Files whose file system contradicts itself, or that change during the calls. The results of the
// system calls are changed between the C library and its callers.

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <string>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/file/clone.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/splice.hpp"

namespace {

ssize_t excess = 0;  // added to the results of calls that move bytes
enum class holes { as_they_are, where_asked, before_it, at_no_place } answered = holes::as_they_are;
int hole_questions = 0;

ssize_t claimed(ssize_t moved) {
    return moved > 0 ? moved + excess : moved;
}

}  // namespace

extern "C" {
off_t __real_lseek(int file, off_t offset, int whence);
ssize_t __real_copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes,
                               unsigned flags);
ssize_t __real_pread(int file, void* into, size_t bytes, off_t at);
ssize_t __real_preadv2(int file, const iovec* into, int count, off_t at, int flags);
ssize_t __real_pwrite(int file, const void* from, size_t bytes, off_t at);
ssize_t __real_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags);

off_t __wrap_lseek(int file, off_t offset, int whence) {
    if (whence != SEEK_HOLE) return __real_lseek(file, offset, whence);
    ++hole_questions;
    switch (answered) {
        case holes::as_they_are:
            break;
        case holes::where_asked:
            return offset;
        case holes::before_it:
            return offset / 2;
        case holes::at_no_place:
            errno = ENXIO;
            return -1;
    }
    return __real_lseek(file, offset, whence);
}
ssize_t __wrap_copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes,
                               unsigned flags) {
    return claimed(__real_copy_file_range(in, in_at, out, out_at, bytes, flags));
}
ssize_t __wrap_pread(int file, void* into, size_t bytes, off_t at) {
    return claimed(__real_pread(file, into, bytes, at));
}
ssize_t __wrap_preadv2(int file, const iovec* into, int count, off_t at, int flags) {
    return claimed(__real_preadv2(file, into, count, at, flags));
}
ssize_t __wrap_pwrite(int file, const void* from, size_t bytes, off_t at) {
    return claimed(__real_pwrite(file, from, bytes, at));
}
ssize_t __wrap_splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags) {
    return claimed(__real_splice(in, in_at, out, out_at, bytes, flags));
}
}

namespace sluice::io {
namespace {

class file_faults : public ::testing::Test {
protected:
    void SetUp() override {
        const auto written = source.write({.buffers = std::as_bytes(std::span(content)), .offset = 0});
        ASSERT_TRUE(written.has_value());
    }
    void TearDown() override {
        excess = 0;
        answered = holes::as_they_are;
        hole_questions = 0;
    }
    file_handle open(const char* name) {
        return file_handle::open(directory.anchor(), name, mode::write, creation::always_new).value();
    }
    [[nodiscard]] result<clone_result> copy(clone_method method) {
        return source.clone_extents_to(destination, {}, {.strongest = method, .buffer = buffer});
    }

    const std::string content = std::string(300'000, 'x');
    const test_directory directory{std::filesystem::current_path().string()};
    std::array<std::byte, 4096> memory{};
    const std::span<std::byte> buffer{memory};
    file_handle source = open("source");
    file_handle destination = open("destination");
};

// --- a hole that is not after the data

TEST_F(file_faults, a_copy_ends_whatever_the_file_system_says_about_holes) {
    for (const holes lie : {holes::where_asked, holes::before_it, holes::at_no_place}) {
        answered = lie;
        destination = open("destination");
        const auto done = copy(clone_method::kernel_copy);
        ASSERT_TRUE(done.has_value()) << done.error().message();
        EXPECT_EQ(done->cloned_bytes, content.size());
        EXPECT_EQ(directory.content("destination"), content);
    }
    EXPECT_GT(hole_questions, 0);
}

TEST_F(file_faults, extents_are_complete_whatever_the_file_system_says_about_holes) {
    answered = holes::where_asked;
    std::array<extent_pair, 16> storage{};
    const auto found = source.extents({.offset = 0, .length = content.size()}, storage);
    ASSERT_TRUE(found.has_value());
    extent_type total = 0;
    for (const extent_pair& each : *found)
        total += each.length;
    EXPECT_EQ(total, content.size());
}

// --- more bytes than requested

TEST(checked_byte_count, only_more_than_requested_is_an_error) {
    EXPECT_EQ(checked_outcome(0, 0), 0);
    EXPECT_EQ(checked_outcome(5, 5), 5);
    EXPECT_EQ(checked_outcome(6, 5), -EIO);
    EXPECT_EQ(checked_outcome(-ENOSPC, 5), -ENOSPC);
    errno = ENOSPC;
    EXPECT_EQ(checked_byte_count(-1, 5), -1);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(checked_byte_count(6, 5), -1);
    EXPECT_EQ(errno, EIO);
}

TEST_F(file_faults, a_copy_that_reports_more_than_requested_fails) {
    excess = 20'000'000;
    EXPECT_EQ(copy(clone_method::kernel_copy).error().code(), EIO);
    excess = 1;
    EXPECT_EQ(copy(clone_method::user_copy).error().code(), EIO);
}

TEST_F(file_faults, a_write_of_zeros_that_reports_more_than_requested_fails) {
    excess = 100'000;
    EXPECT_EQ(source.zero({.offset = 0, .length = 10}, file_handle::zero_method::written).error().code(),
              EIO);
}

TEST_F(file_faults, a_transfer_that_reports_more_than_requested_fails) {
    excess = 1;
    const std::array pieces{io::buffer(memory.data(), memory.size())};
    const auto blocking = transfer_blocking(source.native(), direction::in, pieces, 0, {}, amount::all, 0);
    EXPECT_EQ(blocking.error().code(), EIO);
    const auto prompt =
        transfer_blocking(source.native(), direction::in, pieces, 0, deadline::zero(), amount::all, 0);
    EXPECT_EQ(prompt.error().code(), EIO);
}

TEST_F(file_faults, a_splice_that_reports_more_than_requested_fails) {
    auto pipe = pipe_handle::anonymous().value();
    excess = 1;
    EXPECT_EQ(send_file_to(source, pipe.writer, {.length = 100}).error().code(), EIO);
}

}  // namespace
}  // namespace sluice::io
