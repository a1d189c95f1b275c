#include "sluice/io/stream/splice.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

file_handle file_of(std::span<const std::byte> content) {
    auto made = file_handle::temp_inode(path_handle::temporary_files().value()).value();
    EXPECT_EQ(made.write({.buffers = content, .offset = 0}).bytes_transferred(), content.size());
    return made;
}

std::vector<std::byte> content_of(file_handle& file) {
    std::vector<std::byte> all(file.maximum_extent().value());
    EXPECT_EQ(file.read(io_request<bytes_type>{all, 0}).bytes_transferred(), all.size());
    return all;
}

std::vector<std::byte> part_of(const std::vector<std::byte>& whole, std::size_t offset, std::size_t length) {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

std::vector<std::byte> joined(std::initializer_list<std::span<const std::byte>> parts) {
    std::vector<std::byte> all;
    for (const auto part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

// Both ends of a stream of any kind.
struct stream_ends {
    std::unique_ptr<io_handle> writer;
    std::unique_ptr<io_handle> reader;
};

constexpr socket_options tiny{.send_buffer_bytes = 1, .receive_buffer_bytes = 1};

std::vector<std::pair<std::string, std::function<stream_ends(const socket_options&)>>> every_stream() {
    std::vector<std::pair<std::string, std::function<stream_ends(const socket_options&)>>> all;
    for (const auto& kind : stream_kinds()) {
        all.emplace_back(kind.name, [kind](const socket_options& options) {
            auto both = connect_streams(kind, options);
            return stream_ends{std::make_unique<socket_handle>(std::move(both.client)),
                               std::make_unique<socket_handle>(std::move(both.server))};
        });
    }
    all.emplace_back("pipe", [](const socket_options&) {
        auto both = pipe_handle::anonymous(4096).value();
        return stream_ends{std::make_unique<pipe_handle>(std::move(both.writer)),
                           std::make_unique<pipe_handle>(std::move(both.reader))};
    });
    return all;
}

std::vector<std::byte> read_to_end(io_handle& from, std::size_t piece = 5000,
                                   std::chrono::milliseconds pause = 0ms) {
    std::vector<std::byte> all;
    std::vector<std::byte> into(piece);
    for (;;) {
        const auto got = from.read(io_request<bytes_type>{into}, 5s);
        if (not got or got->empty()) return all;
        all.insert(all.end(), got->begin(), got->end());
        std::this_thread::sleep_for(pause);
    }
}

std::future<std::vector<std::byte>> reading_to_end(io_handle& from, std::size_t piece = 5000,
                                                   std::chrono::milliseconds pause = 0ms) {
    return std::async(std::launch::async, [&from, piece, pause] { return read_to_end(from, piece, pause); });
}

TEST(splice, a_header_and_a_part_of_a_file_arrive_whole_over_every_stream) {
    const signal_storm storm;
    const auto content = pattern(300'000);
    auto file = file_of(content);
    auto through = splice_pipe::create().value();
    const auto header = text("header");
    const send_file_request request{.header = header, .offset = 12'345, .length = 100'000};
    for (const auto& [name, make] : every_stream()) {
        for (const bool by_pipe : {false, true}) {
            SCOPED_TRACE(name + (by_pipe ? " through a pipe" : ""));
            auto ends = make(tiny);
            auto got = reading_to_end(*ends.reader);
            const auto sent = by_pipe ? send_file_to(file, *ends.writer, request, through, 20s)
                                      : send_file_to(file, *ends.writer, request, 20s);
            EXPECT_EQ(sent.value_or(0), 100'006U);
            ends.writer.reset();
            EXPECT_EQ(got.get(), joined({header, part_of(content, 12'345, 100'000)}));
            EXPECT_EQ(through.pending(), 0U);
        }
    }
}

TEST(splice, a_file_that_ends_early_is_reported_or_filled_with_zeros) {
    const auto content = pattern(1000);
    auto file = file_of(content);
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = make({});
        auto got = reading_to_end(*ends.reader);
        EXPECT_EQ(send_file_to(file, *ends.writer, {}).value_or(0), 1000U);
        EXPECT_EQ(send_file_to(file, *ends.writer, {.offset = 400, .length = 5000}).value_or(0), 600U);
        EXPECT_EQ(send_file_to(file, *ends.writer, {.offset = 4000, .length = 5}).value_or(1), 0U);
        const send_file_request filling{
            .offset = 900, .length = 50'000, .when_short = short_file::filled_with_zeros};
        EXPECT_EQ(send_file_to(file, *ends.writer, filling, 5s).value_or(0), 50'000U);
        ends.writer.reset();
        EXPECT_EQ(got.get(), joined({content, part_of(content, 400, 600), part_of(content, 900, 100),
                                     std::vector<std::byte>(49'900)}));
    }
}

TEST(splice, a_file_the_kernel_cannot_splice_is_copied) {
    auto special = file_handle::open({}, "/proc/self/limits").value();
    std::vector<std::byte> expected(8000);
    expected.resize(special.read(io_request<bytes_type>{expected, 0}).bytes_transferred());
    ASSERT_FALSE(expected.empty());
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = make({});
        EXPECT_EQ(send_file_to(special, *ends.writer, {}, 5s).value_or(0), expected.size());
        ends.writer.reset();
        EXPECT_EQ(read_to_end(*ends.reader), expected);
    }
}

TEST(splice, sending_to_a_peer_that_reads_nothing_ends_with_the_deadline) {
    const auto content = pattern(8'000'000);
    auto file = file_of(content);
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = make({});
        const auto begun = std::chrono::steady_clock::now();
        const auto first = try_send_file_to(file, *ends.writer, {});
        ASSERT_TRUE(first.has_value());
        EXPECT_GT(*first, 0U);
        // The kernel may move some bytes by itself and free a little space; soon there is none.
        auto none = try_send_file_to(file, *ends.writer, {});
        for (int i = 0; i < 50 and none.has_value(); ++i)
            none = try_send_file_to(file, *ends.writer, {});
        ASSERT_FALSE(none.has_value());
        EXPECT_EQ(none.error(), std::errc::timed_out);
        EXPECT_EQ(send_file_to(file, *ends.writer, {}, through, 10ms).value_or(0), 0U);
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
    }
}

TEST(splice, a_closed_peer_is_an_error_and_raises_no_signal) {
    auto file = file_of(pattern(100'000));
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        for (const bool by_pipe : {false, true}) {
            SCOPED_TRACE(name);
            auto ends = make({});
            ends.reader.reset();
            result<std::uint64_t> sent = 0;
            for (int i = 0; i < 1000 and sent.has_value(); ++i) {
                std::this_thread::sleep_for(1ms);
                sent = by_pipe ? send_file_to(file, *ends.writer, {}, through, 5s)
                               : send_file_to(file, *ends.writer, {}, 5s);
            }
            ASSERT_FALSE(sent.has_value());
            EXPECT_TRUE(sent.error() == std::errc::broken_pipe or
                        sent.error() == std::errc::connection_reset);
        }
    }
    sigset_t pending;
    ASSERT_EQ(::sigpending(&pending), 0);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST(splice, a_broken_pipe_signal_that_was_pending_before_stays_pending) {
    sigset_t broken_pipe;
    sigset_t before;
    ::sigemptyset(&broken_pipe);
    ::sigaddset(&broken_pipe, SIGPIPE);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before), 0);
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGPIPE), 0);
    auto file = file_of(pattern(100));
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.close().has_value());
    EXPECT_EQ(send_file_to(file, pipe.writer, {}).error(), std::errc::broken_pipe);
    sigset_t pending;
    ASSERT_EQ(::sigpending(&pending), 0);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 1);
    const timespec at_once{};
    EXPECT_EQ(::sigtimedwait(&broken_pipe, nullptr, &at_once), SIGPIPE);
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

TEST(splice, bytes_of_a_stream_are_written_to_a_file_at_the_offset) {
    const signal_storm storm;
    const auto content = pattern(150'000);
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        for (const bool by_pipe : {false, true}) {
            SCOPED_TRACE(name + (by_pipe ? " through a pipe" : ""));
            auto ends = make(tiny);
            auto file = file_of({});
            std::thread writer([&] {
                EXPECT_EQ(ends.writer->write({.buffers = std::span(content)}, 20s).bytes_transferred(),
                          content.size());
                ends.writer.reset();
            });
            const receive_file_request first{.offset = 50'000, .length = 100'000};
            const receive_file_request rest{.offset = 0};
            const auto receive = [&](const receive_file_request& request) {
                return by_pipe ? receive_file_from(*ends.reader, file, request, through, 20s)
                               : receive_file_from(*ends.reader, file, request, 20s);
            };
            EXPECT_EQ(receive(first).value_or(0), 100'000U);
            EXPECT_EQ(receive(rest).value_or(0), 50'000U);
            writer.join();
            EXPECT_EQ(content_of(file),
                      joined({part_of(content, 100'000, 50'000), part_of(content, 0, 100'000)}));
        }
    }
}

TEST(splice, an_append_only_file_is_received_into_by_copying) {
    const auto content = pattern(50'000);
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = make({});
        auto file = file_handle::temp_file(path_handle::temporary_files().value(), caching::all).value();
        auto appending = file_handle::open({}, file.current_path().value(), mode::append).value();
        std::thread writer([&] {
            EXPECT_TRUE(ends.writer->write({.buffers = std::span(content)}, 20s).has_value());
            ends.writer.reset();
        });
        EXPECT_EQ(receive_file_from(*ends.reader, appending, {}, through, 20s).value_or(0), content.size());
        writer.join();
        EXPECT_EQ(content_of(file), content);
    }
}

TEST(splice, a_file_that_refuses_to_be_written_is_an_error) {
    auto pair = socket_handle::pair().value();
    ASSERT_TRUE(pair.first.write({.buffers = text("lost")}).has_value());
    auto read_only = file_handle::open({}, "/proc/self/exe").value();
    auto through = splice_pipe::create().value();
    EXPECT_EQ(receive_file_from(pair.second, read_only, {.length = 4}, through).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(through.pending(), 4U);
    through.discard();
    EXPECT_EQ(through.pending(), 0U);
}

TEST(splice, streams_of_which_one_is_a_pipe_are_spliced_until_the_end) {
    const signal_storm storm;
    const auto content = pattern(100'000);
    for (const auto& [name, make] : every_stream()) {
        for (const bool from_pipe : {false, true}) {
            SCOPED_TRACE(name + (from_pipe ? " from a pipe" : " to a pipe"));
            auto ends = make(tiny);
            auto pipe = pipe_handle::anonymous().value();
            auto source = from_pipe ? std::make_unique<pipe_handle>(std::move(pipe.reader)) : nullptr;
            auto target = from_pipe ? nullptr : std::make_unique<pipe_handle>(std::move(pipe.writer));
            io_handle& first = from_pipe ? static_cast<io_handle&>(pipe.writer) : *ends.writer;
            io_handle& last = from_pipe ? *ends.reader : static_cast<io_handle&>(pipe.reader);
            std::thread writer([&] {
                EXPECT_TRUE(first.write({.buffers = std::span(content)}, 20s).has_value());
                EXPECT_TRUE(first.close().has_value());
            });
            auto got = reading_to_end(last);
            io_handle& from = from_pipe ? *source : *ends.reader;
            io_handle& to = from_pipe ? *ends.writer : *target;
            EXPECT_EQ(splice_to(from, to, to_the_end, 20s).value_or(0), content.size());
            EXPECT_TRUE(to.close().has_value());
            writer.join();
            EXPECT_EQ(got.get(), content);
        }
    }
    auto pair = socket_handle::pair().value();
    ASSERT_TRUE(pair.first.write({.buffers = text("x")}).has_value());
    EXPECT_EQ(splice_to(pair.second, pair.first).error(), std::errc::invalid_argument);
}

TEST(splice, tee_copies_the_content_of_a_pipe_and_leaves_it_there) {
    auto from = pipe_handle::anonymous().value();
    auto to = pipe_handle::anonymous().value();
    EXPECT_EQ(try_tee_to(from.reader, to.writer).error(), std::errc::timed_out);
    ASSERT_TRUE(from.writer.write({.buffers = text("twice")}).has_value());
    EXPECT_EQ(tee_to(from.reader, to.writer).value_or(0), 5U);
    std::array<std::byte, 16> into{};
    EXPECT_EQ(string_of(to.reader.read(io_request<bytes_type>{into}).value()), "twice");
    EXPECT_EQ(string_of(from.reader.read(io_request<bytes_type>{into}).value()), "twice");
}

TEST(splice, a_socket_used_for_splicing_still_waits_in_blocking_calls) {
    auto file = file_of(text("x"));
    for (const auto& kind : stream_kinds()) {
        SCOPED_TRACE(kind.name);
        auto both = connect_streams(kind);
        ASSERT_EQ(send_file_to(file, both.client, {}, 20s).value_or(0), 1U);
        EXPECT_NE(::fcntl(both.client.descriptor(), F_GETFL) & O_NONBLOCK, 0);
        std::thread later([&] {
            std::this_thread::sleep_for(20ms);
            EXPECT_TRUE(both.server.write({.buffers = text("late")}).has_value());
        });
        std::array<std::byte, 16> into{};
        EXPECT_EQ(string_of(both.client.read(io_request<bytes_type>{into}).value()), "late");
        later.join();
    }
}

class async_splice_test : public with_multiplexer {
protected:
    stream_ends attached(const std::function<stream_ends(const socket_options&)>& make,
                         const socket_options& options) {
        auto ends = make(options);
        EXPECT_TRUE(ends.writer->set_multiplexer(multiplexer.get()).has_value());
        EXPECT_TRUE(ends.reader->set_multiplexer(multiplexer.get()).has_value());
        return ends;
    }
};

TEST_P(async_splice_test, writes_and_files_never_mix_whether_the_reader_is_fast_or_slow) {
    const auto content = pattern(400'000);
    auto file = file_of(content);
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        for (const bool slow : {false, true}) {
            SCOPED_TRACE(name + (slow ? " slow" : " fast"));
            auto ends = attached(make, slow ? tiny : socket_options{});
            auto got = slow ? reading_to_end(*ends.reader, 4000, 1ms) : reading_to_end(*ends.reader, 100'000);

            recorded first(async_write(*ends.writer, {.buffers = text("first header ")}));
            recorded second(async_send_file(file, *ends.writer, {.offset = 1, .length = 50'000}));
            recorded third(async_write(*ends.writer, {.buffers = text("third header ")}));
            recorded fourth(async_send_file(file, *ends.writer,
                                            {.header = text("fourth "), .offset = 200'000, .length = 60'000},
                                            through));
            recorded fifth(async_write(*ends.writer, {.buffers = text("fifth ")}));
            recorded sixth(async_write(*ends.writer, {.buffers = text("sixth ")}));
            recorded seventh(async_send_file(file, *ends.writer, {.offset = 399'000}));
            first.start();
            second.start();
            third.start(initiation::batched);
            fourth.start();
            fifth.start();
            sixth.start();
            seventh.start();
            ASSERT_TRUE(run_until([&] { return seventh.done(); }));
            EXPECT_TRUE(first.done() and second.done() and third.done() and fourth.done() and fifth.done() and
                        sixth.done());
            EXPECT_EQ(second.value().value_or(0), 50'000U);
            ASSERT_TRUE(fourth.value().has_value()) << fourth.value().error().message();
            EXPECT_EQ(fourth.value().value_or(0), 60'007U);
            EXPECT_EQ(seventh.value().value_or(0), 1000U);
            ends.writer.reset();
            const auto expected = joined(
                {text("first header "), part_of(content, 1, 50'000), text("third header "), text("fourth "),
                 part_of(content, 200'000, 60'000), text("fifth sixth "), part_of(content, 399'000, 1000)});
            EXPECT_TRUE(got.get() == expected);
        }
    }
}

// Otherwise each transfer repeats a system call that has no effect.
TEST_P(async_splice_test, a_socket_is_known_to_be_non_blocking_after_the_first_transfer) {
    auto file = file_of(text("x"));
    auto both = connect_streams(stream_kinds().front());
    ASSERT_TRUE(both.client.set_multiplexer(multiplexer.get()).has_value());
    const registration& known = *detail::handle_access::registered(both.client);
    ASSERT_FALSE(known.native.nonblocking);
    recorded sent(async_send_file(file, both.client, {}));
    sent.start();
    ASSERT_TRUE(run_until([&] { return sent.done(); }));
    EXPECT_TRUE(known.native.nonblocking);
}

TEST_P(async_splice_test, the_loop_never_waits_for_a_stream_that_is_full) {
    auto file = file_of(pattern(8'000'000));
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = attached(make, {});
        recorded sending(async_send_file(file, *ends.writer, {}, 50ms));
        const auto begun = std::chrono::steady_clock::now();
        sending.start();
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
        EXPECT_FALSE(sending.done());
        int passes = 0;
        while (not sending.done() and passes < 10'000) {
            (void)multiplexer->try_run_for(5ms);
            ++passes;
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
        EXPECT_LT(passes, 1000);  // it sleeps while it waits
        ASSERT_TRUE(sending.done());
        EXPECT_GT(sending.value().value_or(0), 0U);
        EXPECT_LT(sending.value().value_or(0), 8'000'000U);
    }
}

TEST_P(async_splice_test, a_cancelled_send_ends_the_operations_after_it) {
    const auto content = pattern(8'000'000);
    auto file = file_of(content);
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = attached(make, {});
        recorded sending(async_send_file(file, *ends.writer, {}));
        recorded behind(async_write(*ends.writer, {.buffers = text("never")}));
        recorded underlying_file(async_send_file(file, *ends.writer, {}));
        sending.start();
        behind.start();
        underlying_file.start();
        (void)multiplexer->complete_io();
        sending.cancel();
        ASSERT_TRUE(run_until([&] { return sending.done() and behind.done() and underlying_file.done(); }));
        EXPECT_EQ(behind.value().error(), std::errc::operation_canceled);
        EXPECT_EQ(underlying_file.value().error(), std::errc::operation_canceled);
        ends.writer.reset();
        const std::uint64_t sent = sending.value().value_or(0);
        EXPECT_GT(sent, 0U);
        EXPECT_EQ(read_to_end(*ends.reader, 100'000), part_of(content, 0, sent));
    }
}

TEST_P(async_splice_test, one_that_is_cancelled_before_its_first_byte_ends_no_other) {
    auto file = file_of(pattern(8'000'000));
    auto both = socket_handle::pair().value();
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    recorded filling(async_send_file(file, both.first, {}));
    recorded waiting(async_send_file(file, both.first, {.length = 10}));
    recorded behind(async_write(both.first, {.buffers = text("end")}));
    filling.start();
    waiting.start();
    behind.start();
    waiting.cancel();
    ASSERT_TRUE(run_until([&] { return waiting.done(); }));
    EXPECT_EQ(waiting.value().error(), std::errc::operation_canceled);
    auto got = reading_to_end(both.second, 100'000);
    ASSERT_TRUE(run_until([&] { return behind.done(); }));
    EXPECT_EQ(filling.value().value_or(0), 8'000'000U);
    EXPECT_TRUE(behind.value().has_value());
    ASSERT_TRUE(both.first.close().has_value());
    EXPECT_EQ(got.get().size(), 8'000'003U);
}

TEST_P(async_splice_test, a_broken_stream_is_reported_to_its_operations) {
    auto file = file_of(pattern(8'000'000));
    for (const auto& [name, make] : every_stream()) {
        SCOPED_TRACE(name);
        auto ends = attached(make, {});
        recorded sending(async_send_file(file, *ends.writer, {}));
        recorded behind(async_send_file(file, *ends.writer, {}));
        sending.start();
        behind.start();
        ends.reader.reset();
        ASSERT_TRUE(run_until([&] { return sending.done() and behind.done(); }));
        EXPECT_LT(sending.value().value_or(0), 8'000'000U);
        EXPECT_FALSE(behind.value().has_value());
    }
}

TEST_P(async_splice_test, a_received_file_takes_its_place_among_the_reads) {
    const auto content = pattern(200'000);
    auto through = splice_pipe::create().value();
    for (const auto& [name, make] : every_stream()) {
        for (const bool by_pipe : {false, true}) {
            SCOPED_TRACE(name);
            auto ends = attached(make, tiny);
            auto file = file_of({});
            std::array<std::byte, 100> header{};
            std::array<std::byte, 50> trailer{};
            recorded first(async_read(*ends.reader, io_request<bytes_type>{header}));
            const receive_file_request request{.offset = 7, .length = 150'000};
            recorded middle(by_pipe ? async_receive_file(*ends.reader, file, request, through)
                                    : async_receive_file(*ends.reader, file, request));
            recorded last(async_read(*ends.reader, io_request<bytes_type>{trailer}));
            first.start();
            middle.start();
            last.start();
            std::thread writer([&, out = ends.writer->native()] {
                for (std::size_t at = 0; at < content.size();) {
                    // As much as fits; the reader closes before it has read all.
                    const ssize_t n = ::write(out.descriptor, content.data() + at,
                                              std::min<std::size_t>(content.size() - at, 100));
                    if (n < 0 and errno != EAGAIN) break;
                    if (n < 0) std::this_thread::sleep_for(100us);
                    if (n > 0) at += static_cast<std::size_t>(n);
                    if (at >= 150'150) break;
                }
            });
            const bool finished = run_until([&] { return last.done(); });
            writer.join();
            ASSERT_TRUE(finished);
            EXPECT_EQ(string_of(first.value().value()), string_of(part_of(content, 0, 100)));
            EXPECT_EQ(middle.value().value_or(0), 150'000U);
            const auto stored = content_of(file);
            EXPECT_EQ(part_of(stored, 7, stored.size() - 7), part_of(content, 100, 150'000));
            EXPECT_EQ(string_of(last.value().value()),
                      string_of(part_of(content, 150'100, last.value()->size())));
        }
    }
}

TEST_P(async_splice_test, between_streams_it_moves_the_available_bytes_and_reports_a_full_target) {
    auto from = pipe_handle::anonymous().value();
    auto both = socket_handle::pair().value();
    ASSERT_TRUE(from.reader.set_multiplexer(multiplexer.get()).has_value());
    recorded moving(async_splice(from.reader, both.first));
    moving.start();
    EXPECT_FALSE(moving.done());
    ASSERT_TRUE(from.writer.write({.buffers = text("some")}).has_value());
    ASSERT_TRUE(run_until([&] { return moving.done(); }));
    EXPECT_EQ(moving.value().value_or(0), 4U);

    const auto content = pattern(10'000'000);
    std::thread writer([&] {
        EXPECT_TRUE(from.writer.write({.buffers = std::span(content)}, 20s).has_value());
        EXPECT_TRUE(from.writer.close().has_value());
    });
    const auto move_until_it_fails_or_ends = [&] {
        do {
            moving.start();
            if (not run_until([&] { return moving.done(); })) return;
        } while (moving.value().value_or(0) != 0);
    };
    move_until_it_fails_or_ends();
    EXPECT_EQ(moving.value().error(), std::errc::resource_unavailable_try_again);

    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    auto got = reading_to_end(both.second, 100'000);
    while (not moving.value().has_value()) {
        recorded room(async_ready(both.first, direction::out));
        room.start();
        ASSERT_TRUE(run_until([&] { return room.done(); }));
        move_until_it_fails_or_ends();
    }
    writer.join();
    ASSERT_TRUE(both.first.close().has_value());
    EXPECT_TRUE(got.get() == joined({text("some"), content}));
}

TEST_P(async_splice_test, a_long_file_gives_others_a_turn) {
    auto file = file_of({});
    ASSERT_TRUE(file.truncate(200'000'000).has_value());
    auto both = socket_handle::pair().value();
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    ASSERT_TRUE(pipe.reader.set_multiplexer(multiplexer.get()).has_value());
    auto got = std::async(std::launch::async, [&] { return read_to_end(both.second, 1'000'000).size(); });
    std::array<std::byte, 1> into{};
    recorded sending(async_send_file(file, both.first, {}));
    recorded other(async_read(pipe.reader, io_request<bytes_type>{into}));
    other.start();
    sending.start();
    ASSERT_TRUE(pipe.writer.write({.buffers = text("x")}).has_value());
    ASSERT_TRUE(run_until([&] { return other.done(); }));
    EXPECT_FALSE(sending.done());
    sending.cancel();
    ASSERT_TRUE(run_until([&] { return sending.done(); }));
    ASSERT_TRUE(both.first.close().has_value());
    EXPECT_EQ(got.get(), sending.value().value_or(0));
}

TEST_P(async_splice_test, a_coroutine_awaits_a_file_being_sent) {
    const auto content = pattern(100'000);
    auto file = file_of(content);
    auto both = socket_handle::pair(socket_type::stream, tiny).value();
    ASSERT_TRUE(both.first.set_multiplexer(multiplexer.get()).has_value());
    auto got = reading_to_end(both.second);
    struct server {
        static task<std::uint64_t> send(file_handle& file, socket_handle& to) {
            const send_file_request request{.header = text("coroutine ")};
            const auto sent = co_await co_send_file(file, to, request, 10s);
            co_return sent.value_or(0);
        }
    };
    EXPECT_EQ(sync_wait(*multiplexer, server::send(file, both.first)), 100'010U);
    ASSERT_TRUE(both.first.close().has_value());
    EXPECT_EQ(got.get(), joined({text("coroutine "), content}));
}

INSTANTIATE_TEST_SUITE_P(over, async_splice_test, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io
