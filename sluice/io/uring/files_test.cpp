#include "sluice/io/uring/uring_testing.hpp"

#include "sluice/io/loop/registered_buffer.hpp"

namespace sluice::io {
namespace {

using namespace uring_test;

TEST(uring_files, more_reads_than_either_queue_has_entries_all_complete) {
    const auto multiplexer = make({.submission_entries = 4, .completion_entries = 8});
    auto file = scratch_file();
    std::string all;
    for (int i = 0; i < 2000; ++i)
        all += std::to_string(1000 + i);
    ASSERT_TRUE(file.write({.buffers = text(all), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    std::vector<std::unique_ptr<one_read>> reads;
    for (std::size_t i = 0; i < 2000; ++i) {
        reads.push_back(std::make_unique<one_read>(file, 4, i * 4));
        reads.back()->state.start(initiation::batched);
    }
    while (multiplexer->run().value_or(0) > 0) {}
    std::string read_back;
    for (const auto& read : reads) {
        EXPECT_EQ(read->result.dones, 1);
        read_back += read->text();
    }
    EXPECT_EQ(read_back, all);
}

TEST(uring_files, a_read_is_filled_unless_the_file_ends) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("0123456789"), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    one_read whole(file, 10), beyond(file, 64, 4), nothing(file, 8, 10);
    whole.state.start(initiation::batched);
    beyond.state.start(initiation::batched);
    nothing.state.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(whole.text(), "0123456789");
    EXPECT_EQ(beyond.text(), "456789");
    EXPECT_EQ(nothing.text(), "");
    EXPECT_EQ(nothing.result.code, 0);
}

TEST(uring_files, scattered_requests_of_any_number_of_pieces_are_filled) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    std::string source(3000, '\0');
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<char>('a' + i % 26);
    std::vector<const_buffer> from;
    for (const char& byte : source)
        from.emplace_back(reinterpret_cast<const std::byte*>(&byte), 1U);
    outcome written;
    auto writing =
        connect(async_write(file, io_request<const_buffers_type>{std::span(from), 0}), recorder{&written});
    writing.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(written.bytes, source.size());

    std::string target(4000, '\0');
    std::vector<buffer> into;
    for (char& byte : target)
        into.emplace_back(reinterpret_cast<std::byte*>(&byte), 1U);
    outcome read;
    auto reading = connect(async_read(file, io_request<buffers_type>{std::span(into), 0}), recorder{&read});
    reading.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(read.bytes, source.size());
    EXPECT_EQ(target.substr(0, source.size()), source);
}

TEST(uring_files, registered_memory_is_read_into_and_written_from) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    auto memory = multiplexer->allocate_registered_buffer(8192).value();
    ASSERT_TRUE(memory.is_registered());
    const auto out = memory.bytes().subspan(100, 3000);
    const auto in = memory.bytes().subspan(4096, 3000);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::byte>(i * 7);
    outcome written, read;
    auto writing = connect(async_write(file, io_request<const_bytes_type>{const_bytes_type(out), 50}),
                           recorder{&written});
    writing.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    auto reading = connect(async_read(file, io_request<bytes_type>{in, 50}), recorder{&read});
    reading.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(written.bytes, out.size());
    EXPECT_EQ(read.bytes, in.size());
    EXPECT_TRUE(std::ranges::equal(out, in));
}

TEST(uring_files, writes_on_the_loop_itself_have_the_same_outcome) {
    const auto multiplexer = make({.inline_file_writes = true});
    auto file = scratch_file();
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    one_write write(file, "inline", 3);
    write.state.start();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(write.result.bytes, 6U);
    one_read read(file, 16, 3);
    read.state.start();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(read.text(), "inline");
}

TEST(uring_files, every_kind_of_barrier_completes) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("durable"), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    for (const auto kind : {barrier_kind::nowait_data_only, barrier_kind::wait_data_only,
                            barrier_kind::nowait_all, barrier_kind::wait_all}) {
        outcome result;
        auto state = connect(async_barrier(file, kind), recorder{&result});
        state.start();
        while (multiplexer->run().value_or(0) > 0) {}
        EXPECT_EQ(result.dones, 1);
        EXPECT_EQ(result.code, 0);
    }
}

TEST(uring_files, an_error_of_the_kernel_is_the_outcome) {
    const auto multiplexer = make();
    const int descriptor = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    io_handle directory(native_handle{.descriptor = descriptor, .kind = handle_kind::file, .readable = true});
    ASSERT_TRUE(directory.set_multiplexer(multiplexer.get()).has_value());
    one_read read(directory, 8);
    read.state.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(read.result.code, EISDIR);
}

TEST(uring_files, an_operation_cancelled_before_its_submission_ends_at_once) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    one_read early(file, 8), late(file, 8);
    early.state.start(initiation::batched);
    late.state.start(initiation::batched);
    early.state.cancel();
    EXPECT_EQ(multiplexer->run(), 1);
    EXPECT_EQ(early.result.code, ECANCELED);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(late.result.code, 0);
    EXPECT_EQ(late.result.dones, 1);
}

TEST(uring_files, an_operation_taken_back_before_its_submission_leaves_others_intact) {
    const auto multiplexer = make({.submission_entries = 8, .completion_entries = 16});
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("abcdefghijkl"), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    std::vector<std::unique_ptr<one_read>> reads;  // more than the queue holds
    for (std::size_t i = 0; i < 12; ++i) {
        reads.push_back(std::make_unique<one_read>(file, 1, i));
        reads.back()->state.start(initiation::batched);
    }
    for (std::size_t i = 0; i < 12; i += 3)
        reads[i]->state.cancel();
    while (multiplexer->run().value_or(0) > 0) {}
    for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_EQ(reads[i]->result.values, 1);
        EXPECT_EQ(reads[i]->result.dones, 1);
        EXPECT_EQ(reads[i]->result.code, i % 3 == 0 ? ECANCELED : 0);
        EXPECT_EQ(reads[i]->text(), i % 3 == 0 ? "" : std::string(1, static_cast<char>('a' + i)));
    }
}

TEST(uring_files, an_operation_taken_back_can_be_started_again_before_the_next_submission) {
    const auto multiplexer = make();
    auto file = scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("again"), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    one_read read(file, 5);
    for (int times = 1; times <= 3; ++times) {
        read.state.start(initiation::batched);
        read.state.cancel();
        EXPECT_TRUE(read.state.poll());
        EXPECT_EQ(read.result.dones, times);
        EXPECT_EQ(read.result.code, ECANCELED);
    }
    read.state.start(initiation::batched);
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(read.result.dones, 4);
    EXPECT_EQ(read.result.code, 0);
    EXPECT_EQ(read.text(), "again");
}

}  // namespace
}  // namespace sluice::io
