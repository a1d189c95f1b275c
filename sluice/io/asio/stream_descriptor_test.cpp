#include "sluice/io/asio/stream_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;
using net::posix::stream_descriptor;

class asio_descriptors : public test_kit::with_io_context {
protected:
    void SetUp() override {
        with_io_context::SetUp();
        if (not context.has_value()) return;
        std::array<int, 2> ends{};
        ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);  // in blocking mode
        reader.emplace(*context, ends[0]);
        writer.emplace(*context, ends[1]);
    }
    void TearDown() override {
        reader.reset();
        writer.reset();
        with_io_context::TearDown();
    }

    std::optional<stream_descriptor> reader, writer;
    std::array<char, 8> into{};
};
INSTANTIATE_TEST_SUITE_P(over, asio_descriptors, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_descriptors, a_pipe_is_read_and_written_by_composed_operations) {
    std::string line;
    asio::async_read_until(*reader, asio::dynamic_buffer(line), '\n',
                           [&](asio::error_code why, std::size_t count) {
                               EXPECT_FALSE(why);
                               EXPECT_EQ(count, 6U);
                           });
    context->poll();
    asio::async_write(*writer, std::array{asio::buffer("hel", 3), asio::buffer("lo\n", 3)},
                      [](asio::error_code why, std::size_t count) {
                          EXPECT_FALSE(why);
                          EXPECT_EQ(count, 6U);
                      });
    context->run();
    EXPECT_EQ(line, "hello\n");
    EXPECT_FALSE(reader->native_non_blocking());  // the description is unchanged
}

TEST_P(asio_descriptors, the_end_of_a_pipe_is_an_end_and_a_pipe_without_a_reader_an_error) {
    asio::error_code seen;
    reader->async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t) { seen = why; });
    context->poll();
    writer->close();
    context->run();
    EXPECT_EQ(seen, asio::error::eof);

    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ::close(ends[0]);
    writer->assign(ends[1]);
    // SIGPIPE does not terminate the process.
    EXPECT_EQ(writer->write_some(asio::buffer("x", 1), seen), 0U);
    EXPECT_EQ(seen, asio::error::broken_pipe);
}

TEST_P(asio_descriptors, a_full_pipe_takes_a_part_and_does_not_block_the_loop) {
    const std::string much(1U << 20U, 'x');
    std::size_t first = 0;
    writer->async_write_some(asio::buffer(much), [&](asio::error_code, std::size_t count) { first = count; });
    asio::error_code second;
    context->run();
    EXPECT_GT(first, 0U);
    EXPECT_LT(first, much.size());
    context->restart();
    writer->async_write_some(asio::buffer(much), [&](asio::error_code why, std::size_t) { second = why; });
    context->poll();
    writer->cancel();
    context->run();
    EXPECT_EQ(second, asio::error::operation_aborted);
}

TEST_P(asio_descriptors, the_blocking_forms_the_commands_and_the_waits_work) {
    reader->non_blocking(true);
    asio::error_code why;
    EXPECT_EQ(reader->read_some(asio::buffer(into), why), 0U);
    EXPECT_EQ(why, asio::error::would_block);
    EXPECT_EQ(writer->write_some(asio::buffer("abc", 3)), 3U);
    reader->wait(stream_descriptor::wait_read);
    stream_descriptor::bytes_readable command;
    reader->io_control(command);
    EXPECT_EQ(command.get(), 3U);
    EXPECT_EQ(reader->read_some(asio::buffer(into)), 3U);
    int waits = 0;
    writer->async_wait(stream_descriptor::wait_write, [&](asio::error_code) { ++waits; });
    writer->async_wait(stream_descriptor::wait_error, [&](asio::error_code) { ++waits; });
    context->poll();
    EXPECT_EQ(waits, 1);
    reader->close();
    context->run();
    EXPECT_EQ(waits, 2);
}

TEST_P(asio_descriptors, a_regular_file_is_read_and_written_at_its_own_position) {
    std::string path = ::testing::TempDir() + "sluice_descriptor_XXXXXX";
    const int made = ::mkstemp(path.data());
    ASSERT_GE(made, 0);
    ::unlink(path.c_str());
    stream_descriptor file(*context, made);
    asio::async_write(file, asio::buffer("abcdef", 6), [&](asio::error_code why, std::size_t) {
        EXPECT_FALSE(why);
        EXPECT_EQ(::lseek(file.native_handle(), 2, SEEK_SET), 2);
        asio::async_read(file, asio::buffer(into, 3), [&](asio::error_code, std::size_t count) {
            EXPECT_EQ(std::string(into.data(), count), "cde");
            file.async_wait(stream_descriptor::wait_read,
                            [](asio::error_code waited) { EXPECT_FALSE(waited); });
        });
    });
    context->run();
    EXPECT_EQ(file.read_some(asio::buffer(into)), 1U);
    asio::error_code why;
    EXPECT_EQ(file.read_some(asio::buffer(into), why), 0U);
    EXPECT_EQ(why, asio::error::eof);
    context->restart();
    file.async_wait(stream_descriptor::wait_error, [&](asio::error_code waited) { why = waited; });
    context->run();
    EXPECT_EQ(why.value(), EPERM);  // no multiplexer can wait for it
}

TEST_P(asio_descriptors, a_descriptor_is_adopted_and_released) {
    asio::error_code why;
    writer->assign(0, why);
    EXPECT_EQ(why, asio::error::already_open);
    const int native = writer->release();
    EXPECT_FALSE(writer->is_open());
    EXPECT_EQ(::write(native, "x", 1), 1);
    stream_descriptor again(*context, native);
    stream_descriptor moved(std::move(again));
    EXPECT_EQ(moved.native_handle(), native);
    EXPECT_THROW(stream_descriptor(*context, -1), asio::system_error);
}

}  // namespace
}  // namespace sluice::io
