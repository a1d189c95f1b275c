#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/socket_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

class named_pipe : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(pipe_handle::create(directory.anchor(), "fifo", 0600).has_value()); }

    test_directory directory{::testing::TempDir()};
    std::string path = directory.path_of("fifo");
};

bool is_nonblocking(int descriptor) {
    return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0;
}

TEST_F(named_pipe, is_created_once_and_only_where_confinement_allows) {
    struct stat made{};
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_TRUE(S_ISFIFO(made.st_mode));
    EXPECT_EQ(pipe_handle::create(path).error(), std::errc::file_exists);
    EXPECT_FALSE(pipe_handle::create(directory.confined(), "../outside").has_value());
}

TEST_F(named_pipe, opened_at_both_ends_carries_bytes) {
    auto reader = pipe_handle::open(directory.anchor(), "fifo", mode::read).value();
    auto writer = pipe_handle::open(path, mode::write).value();
    EXPECT_TRUE(reader.native().nonblocking and writer.native().nonblocking);
    ASSERT_TRUE(writer.write({.buffers = text("hello")}).has_value());
    std::array<std::byte, 16> into{};
    EXPECT_EQ(string_of(reader.read(io_request<bytes_type>{into}, 5s).value()), "hello");
    EXPECT_EQ(reader.try_read(io_request<bytes_type>{into}).error(), std::errc::timed_out);
    ASSERT_TRUE(writer.close().has_value());
    EXPECT_EQ(reader.read(io_request<bytes_type>{into}, 5s).value().size(), 0U);
}

TEST_F(named_pipe, opened_to_write_without_a_reader_is_refused_or_waits_until_its_deadline) {
    const signal_storm storm;
    EXPECT_EQ(pipe_handle::open(path, mode::write).error(), std::errc::no_such_device_or_address);
    const auto begun = std::chrono::steady_clock::now();
    const auto late = pipe_handle::open(path, mode::append, 20ms);
    EXPECT_EQ(late.error(), std::errc::timed_out);
    EXPECT_NE(late.error().message().find(path), std::string::npos);
    EXPECT_EQ(pipe_handle::open(path, mode::read, 20ms).error(), std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 40ms);
}

TEST_F(named_pipe, a_signal_does_not_count_as_a_writer) {
    EXPECT_EQ(sandbox_test::ask_in_child([this] {
                  sandbox_test::deny(SYS_tee, EINTR);  // as if a signal always came first
                  const auto opened = pipe_handle::open(path, mode::read, 20ms);
                  return opened ? std::string("opened") : std::to_string(opened.error().code());
              }),
              std::to_string(ETIMEDOUT));
}

TEST_F(named_pipe, ends_opened_with_a_deadline_wait_for_each_other) {
    const signal_storm storm;
    for (const deadline within : {deadline(), deadline(10s)}) {
        for (const bool reader_first : {false, true}) {
            const auto open_end = [&](bool reads) {
                return pipe_handle::open(path, reads ? mode::read : mode::write, within).value();
            };
            pipe_handle other;
            std::thread later([&] {
                std::this_thread::sleep_for(20ms);
                other = open_end(not reader_first);
            });
            auto mine = open_end(reader_first);
            later.join();
            pipe_handle& reader = reader_first ? mine : other;
            pipe_handle& writer = reader_first ? other : mine;
            EXPECT_TRUE(is_nonblocking(reader.descriptor()) and is_nonblocking(writer.descriptor()));
            ASSERT_TRUE(writer.write({.buffers = text("x")}).has_value());
            std::array<std::byte, 16> into{};
            EXPECT_EQ(reader.read(io_request<bytes_type>{into}, 5s).value().size(), 1U);
        }
    }
}

TEST_F(named_pipe, a_file_that_is_not_a_fifo_is_refused) {
    directory.write("file", "content");
    EXPECT_EQ(pipe_handle::open(directory.anchor(), "file", mode::read).error(), std::errc::invalid_argument);
    EXPECT_EQ(pipe_handle::open(path, mode::none).error(), std::errc::invalid_argument);
    EXPECT_EQ(pipe_handle::open(directory.anchor(), "absent", mode::read).error(),
              std::errc::no_such_file_or_directory);
}

TEST(pipe_handle, capacity_is_the_requested_one_rounded_up) {
    auto pipe = pipe_handle::anonymous(5000).value();
    EXPECT_EQ(pipe.writer.capacity().value(), 8192U);
    ASSERT_TRUE(pipe.reader.set_capacity(65536).has_value());
    EXPECT_EQ(pipe.writer.capacity().value(), 65536U);
}

TEST(pipe_handle, an_adopted_pipe_gets_a_separate_description) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    auto reader = pipe_handle::adopt(ends[0]).value();
    auto writer = pipe_handle::adopt(ends[1]).value();
    EXPECT_TRUE(reader.native().readable and not reader.native().writable);
    EXPECT_TRUE(writer.native().writable and not writer.native().readable);
    EXPECT_TRUE(is_nonblocking(reader.descriptor()) and is_nonblocking(writer.descriptor()));
    EXPECT_FALSE(is_nonblocking(ends[0]) or is_nonblocking(ends[1]));
    EXPECT_NE(::fcntl(reader.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_TRUE(writer.write({.buffers = text("hi")}).has_value());
    std::array<std::byte, 16> into{};
    EXPECT_EQ(string_of(reader.read(io_request<bytes_type>{into}, 5s).value()), "hi");
    ::close(ends[1]);
    ASSERT_TRUE(writer.close().has_value());
    EXPECT_EQ(reader.read(io_request<bytes_type>{into}, 5s).value().size(), 0U);
    ::close(ends[0]);
}

TEST(pipe_handle, a_description_that_must_be_shared_is_left_in_blocking_mode_and_never_waited_on) {
    test_directory directory(::testing::TempDir());
    const std::string path = directory.path_of("fifo");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::array<int, 2> anonymous{};
    ASSERT_EQ(::pipe(anonymous.data()), 0);
    const int named_reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
    const int named_writer = ::open(path.c_str(), O_WRONLY);
    const std::vector<std::byte> much(1'000'000);
    for (const auto& [reader, writer] :
         {std::pair(anonymous[0], anonymous[1]), {named_reader, named_writer}}) {
        native_handle shared{.descriptor = ::dup(writer),
                             .kind = handle_kind::pipe,
                             .writable = true,
                             .nonblocking = false,
                             .stream = true};
        pipe_handle out(shared);
        const auto written = out.try_write(io_request<const_bytes_type>{much});
        ASSERT_TRUE(written.has_value());
        EXPECT_GE(written.bytes_transferred(), 65'536U - 4096U);
        EXPECT_EQ(out.try_write(io_request<const_bytes_type>{much}).error(), std::errc::timed_out);
        EXPECT_FALSE(is_nonblocking(writer));

        shared.descriptor = ::dup(reader);
        std::swap(shared.readable, shared.writable);
        ::fcntl(reader, F_SETFL, 0);
        pipe_handle in(shared);
        std::vector<std::byte> into(1'000'000);
        std::size_t got = 0;
        for (;;) {
            const auto some = in.try_read(io_request<bytes_type>{into});
            if (not some) {
                EXPECT_EQ(some.error(), std::errc::timed_out);
                break;
            }
            got += some->size();
        }
        EXPECT_EQ(got, written.bytes_transferred());
        ::close(reader);
        ASSERT_TRUE(in.close().has_value());
        // Without a reader the writing end of a FIFO cannot be reopened; that of
        // an anonymous pipe can.
        EXPECT_EQ(pipe_handle::adopt(writer).value().native().nonblocking, reader != named_reader);
        ::close(writer);
    }
}

TEST(pipe_handle, only_pipes_and_terminals_are_adopted) {
    const int file = ::open("/proc/self/exe", O_RDONLY);
    EXPECT_EQ(pipe_handle::adopt(file).error(), std::errc::invalid_argument);
    ::close(file);
    EXPECT_EQ(pipe_handle::adopt(file).error(), std::errc::bad_file_descriptor);
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) GTEST_SKIP() << "no terminals here";
    auto adopted = pipe_handle::adopt(terminal).value();
    EXPECT_TRUE(adopted.native().readable and adopted.native().writable);
    ::close(terminal);
}

}  // namespace
}  // namespace sluice::io
