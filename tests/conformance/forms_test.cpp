#include <sys/socket.h>

#include <concepts>
#include <cstring>
#include <optional>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/file/mapped_sender.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "tests/conformance/harness.hpp"

// Every operation has the same parameters and the same meaning in every form: blocking, with a
// deadline, as a sender, as an awaitable, and as a sender that threads share.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

// --- checked by the compiler

constexpr auto soon = 1s;
constexpr auto later = std::chrono::steady_clock::time_point::max();

template <class Handle, class Buffers>
concept reads_in_every_form = requires(Handle& h, io_request<Buffers> r, deadline d) {
    { h.read(r, d) } -> std::same_as<io_result<Buffers>>;
    { h.try_read(r) } -> std::same_as<io_result<Buffers>>;
    { h.try_read_for(r, soon) } -> std::same_as<io_result<Buffers>>;
    { h.try_read_until(r, later) } -> std::same_as<io_result<Buffers>>;
    { async_read(h, r, d) } -> sender;
    { co_read(h, r, d) } -> sender;
    atomic_async_read(h, r, d);
    requires std::same_as<typename decltype(async_read(h, r, d))::result_type, io_result<Buffers>>;
    requires std::same_as<decltype(async_read(h, r, d)), decltype(co_read(h, r, d))>;
    requires std::same_as<decltype(atomic(async_read(h, r, d))), decltype(atomic_async_read(h, r, d))>;
};
template <class Handle, class Buffers>
concept writes_in_every_form = requires(Handle& h, io_request<Buffers> r, deadline d) {
    { h.write(r, d) } -> std::same_as<io_result<Buffers>>;
    { h.try_write(r) } -> std::same_as<io_result<Buffers>>;
    { h.try_write_for(r, soon) } -> std::same_as<io_result<Buffers>>;
    { h.try_write_until(r, later) } -> std::same_as<io_result<Buffers>>;
    requires std::same_as<typename decltype(async_write(h, r, d))::result_type, io_result<Buffers>>;
    requires std::same_as<decltype(async_write(h, r, d)), decltype(co_write(h, r, d))>;
    requires std::same_as<decltype(atomic(async_write(h, r, d))), decltype(atomic_async_write(h, r, d))>;
};
template <class Handle, class Buffers>
concept writes_some_in_every_form = requires(Handle& h, io_request<Buffers> r, deadline d) {
    { h.write_some(r, d) } -> std::same_as<io_result<Buffers>>;
    { h.try_write_some(r) } -> std::same_as<io_result<Buffers>>;
    { h.try_write_some_for(r, soon) } -> std::same_as<io_result<Buffers>>;
    { h.try_write_some_until(r, later) } -> std::same_as<io_result<Buffers>>;
    requires std::same_as<typename decltype(async_write_some(h, r, d))::result_type, io_result<Buffers>>;
    requires std::same_as<decltype(async_write_some(h, r, d)), decltype(co_write_some(h, r, d))>;
    requires std::same_as<decltype(atomic(async_write_some(h, r, d))),
                          decltype(atomic_async_write_some(h, r, d))>;
};
template <class Handle>
concept has_barriers_in_every_form =
    requires(Handle& h, barrier_kind kind, io_request<const_buffers_type> range, deadline d) {
        { h.barrier(kind, range, d) } -> std::same_as<io_result<const_buffers_type>>;
        { h.try_barrier(kind, range) } -> std::same_as<io_result<const_buffers_type>>;
        { h.try_barrier_for(kind, range, soon) } -> std::same_as<io_result<const_buffers_type>>;
        { h.try_barrier_until(kind, range, later) } -> std::same_as<io_result<const_buffers_type>>;
        { async_barrier(h, kind, range, d) } -> sender;
        { co_barrier(h, kind, range, d) } -> sender;
        atomic_async_barrier(h, kind, range, d);
    };
template <class Handle>
concept has_one_meaning_in_every_form =
    reads_in_every_form<Handle, buffers_type> and reads_in_every_form<Handle, bytes_type> and
    writes_in_every_form<Handle, const_buffers_type> and writes_in_every_form<Handle, const_bytes_type> and
    writes_some_in_every_form<Handle, const_buffers_type> and
    writes_some_in_every_form<Handle, const_bytes_type> and has_barriers_in_every_form<Handle>;

static_assert(has_one_meaning_in_every_form<io_handle>);
static_assert(has_one_meaning_in_every_form<file_handle>);
static_assert(has_one_meaning_in_every_form<pipe_handle>);
static_assert(has_one_meaning_in_every_form<socket_handle>);
static_assert(has_one_meaning_in_every_form<mapped_file_handle>);

template <class Handle>
concept transfers = requires(Handle& h, io_request<bytes_type> r) { h.read(r); } or
                    requires(Handle& h, io_request<bytes_type> r) { h.try_read(r); } or
                    requires(Handle& h, io_request<bytes_type> r) { async_read(h, r); } or
                    requires(Handle& h, io_request<const_bytes_type> r) { h.write(r); } or
                    requires(Handle& h, io_request<const_bytes_type> r) { h.try_write_some(r); } or
                    requires(Handle& h, io_request<const_bytes_type> r) { async_write(h, r); } or
                    requires(Handle& h) { h.barrier(); };
static_assert(not transfers<listening_socket_handle> and transfers<pipe_handle>);

// --- write_some

class write_some : public on_every_stream {
protected:
    /// Writes all of `what` by write_some, reading at the other end whenever the stream is full.
    /// Returns how many operations wrote only a part.
    int write_in_parts(stream_ends& ends, std::span<const std::byte> what, std::vector<std::byte>& got) {
        int parts = 0;
        while (not what.empty()) {
            tracked operation(async_write_some(ends.writer, io_request<const_bytes_type>{what, no_offset}));
            operation.state.start();
            EXPECT_TRUE(run_until([&] {
                const auto drained = drain(ends.reader);
                got.insert(got.end(), drained.begin(), drained.end());
                return operation.is.dones != 0;
            }));
            EXPECT_TRUE(succeeded(operation.is));
            if (operation.is.bytes == 0 or operation.is.bytes > what.size()) return -1;
            if (operation.is.bytes < what.size()) ++parts;
            what = what.subspan(operation.is.bytes);
        }
        return parts;
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, write_some, every_stream(), name_of_stream);

TEST_P(write_some, ends_when_a_part_is_written) {
    auto ends = attached_stream();
    const auto sent = pattern(1 << 20);  // more than any of these streams holds
    std::vector<std::byte> got;
    EXPECT_GT(write_in_parts(ends, sent, got), 0);
    const auto rest = drain(ends.reader);
    got.insert(got.end(), rest.begin(), rest.end());
    EXPECT_TRUE(got == sent);
}

TEST_P(write_some, waits_while_no_byte_fits) {
    auto ends = attached_stream();
    const std::size_t before = fill_up(ends.writer);
    tracked operation(async_write_some(ends.writer, io_request<const_bytes_type>{text("more"), no_offset}));
    operation.state.start();
    run_briefly();
    EXPECT_EQ(operation.is.values, 0);
    const std::size_t first = drain(ends.reader).size();  // a ring may already have written to it
    ASSERT_TRUE(run_until_done(operation.is));
    EXPECT_TRUE(succeeded(operation.is));
    EXPECT_EQ(first + drain(ends.reader).size(), before + operation.is.bytes);
}

TEST_P(write_some, keeps_its_place_among_writes) {
    auto ends = attached_stream();
    const std::size_t before = fill_up(ends.writer);
    tracked first(async_write_some(ends.writer, io_request<const_bytes_type>{text("one"), no_offset}));
    tracked_write second(writing(ends.writer, text("two")));
    tracked third(async_write_some(ends.writer, io_request<const_bytes_type>{text("three"), no_offset}));
    first.state.start(initiation::batched);
    second.state.start(initiation::batched);
    third.state.start(initiation::batched);
    std::vector<std::byte> got;
    ASSERT_TRUE(run_until([&] {
        const auto drained = drain(ends.reader);
        got.insert(got.end(), drained.begin(), drained.end());
        return first.is.dones + second.is.dones + third.is.dones == 3;
    }));
    const auto rest = drain(ends.reader);
    got.insert(got.end(), rest.begin(), rest.end());
    std::vector<std::byte> expected;
    for (const auto& [piece, bytes] :
         {std::pair(text("one"), first.is.bytes), std::pair(text("two"), second.is.bytes),
          std::pair(text("three"), third.is.bytes)}) {
        EXPECT_GT(bytes, 0U);
        expected.insert(expected.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bytes));
    }
    EXPECT_EQ(second.is.bytes, 3U);
    got.erase(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(before));
    EXPECT_TRUE(got == expected);
}

TEST_P(write_some, takes_lists_and_empty_pieces) {
    auto ends = attached_stream();
    std::array<const_buffer, 3> list{const_buffer(text("a")), const_buffer(), const_buffer(text("bc"))};
    tracked operation(async_write_some(ends.writer, io_request<const_buffers_type>{list, no_offset}));
    operation.state.start();
    ASSERT_TRUE(run_until_done(operation.is));
    ASSERT_TRUE(succeeded(operation.is));
    EXPECT_EQ(drain(ends.reader).size(), operation.is.bytes);
}

TEST_P(write_some, ends_with_its_deadline_and_when_cancelled) {
    auto ends = attached_stream();
    (void)fill_up(ends.writer);
    const io_request<const_bytes_type> request{text("more"), no_offset};
    tracked late(async_write_some(ends.writer, request, 1ms));
    tracked unwanted(async_write_some(ends.writer, request));
    tracked never(async_write_some(ends.writer, request, deadline::zero()));
    late.state.start();
    unwanted.state.start();
    never.state.start();
    ASSERT_TRUE(run_until([&] { return late.is.dones + never.is.dones == 2; }));
    EXPECT_TRUE(failed(late.is, ETIMEDOUT));
    EXPECT_TRUE(failed(never.is, ETIMEDOUT));
    unwanted.state.cancel();
    ASSERT_TRUE(run_until_done(unwanted.is));
    EXPECT_TRUE(failed(unwanted.is, ECANCELED));
}

TEST_P(write_some, blocks_only_until_a_part_is_written) {
    auto ends = open_stream(kind());
    const auto sent = pattern(1 << 20);
    const auto written = ends.writer.write_some(io_request<const_bytes_type>{sent, no_offset});
    ASSERT_TRUE(written.has_value());
    EXPECT_GT(written->size(), 0U);
    EXPECT_LT(written->size(), sent.size());
    (void)fill_up(ends.writer);
    EXPECT_EQ(ends.writer.try_write_some(io_request<const_bytes_type>{sent, no_offset}).error().code(),
              ETIMEDOUT);
}

// --- barriers

class barriers : public on_every_file {};
INSTANTIATE_TEST_SUITE_P(conformance, barriers, every_file(), name_of_file);

constexpr std::array every_kind{barrier_kind::nowait_data_only, barrier_kind::wait_data_only,
                                barrier_kind::nowait_all, barrier_kind::wait_all};
constexpr bool waits(barrier_kind kind) {
    return kind == barrier_kind::wait_data_only or kind == barrier_kind::wait_all;
}

TEST_P(barriers, take_a_range_and_a_deadline_in_every_form) {
    auto file = attached_file();
    const auto content = pattern(50'000);
    ASSERT_TRUE(file.write(io_request<const_bytes_type>{content, 0}).has_value());
    std::array<const_buffer, 2> pieces{const_buffer(nullptr, 8'192), const_buffer(nullptr, 4'096)};
    const io_request<const_buffers_type> range{pieces, 4'096};
    for (const auto kind : every_kind) {
        const auto blocking = file.barrier(kind, range, 10s);
        ASSERT_TRUE(blocking.has_value());
        EXPECT_EQ(blocking->data(), pieces.data());
        std::optional<io_result<const_buffers_type>> outcome;
        struct keeping {
            std::optional<io_result<const_buffers_type>>* to;
            void set_value(io_result<const_buffers_type>&& got) noexcept { to->emplace(std::move(got)); }
            void set_done() noexcept {}
        };
        auto state = connect(async_barrier(file, kind, range, 10s), keeping{&outcome});
        state.start();
        ASSERT_TRUE(run_until([&] { return not state.started(); }));
        // A simulation may have injected an error.
        if (outcome->has_value()) EXPECT_EQ((**outcome).data(), pieces.data());
        if (not which().is_simulated) EXPECT_TRUE(outcome->has_value());
    }
}

TEST_P(barriers, do_not_begin_without_time_if_they_would_wait) {
    auto file = attached_file();
    const auto over = std::chrono::steady_clock::time_point(1ns);
    const auto over_utc = std::chrono::system_clock::time_point(1ns);
    for (const auto kind : every_kind) {
        for (const deadline within : {deadline::zero(), deadline(over), deadline(over_utc)}) {
            const auto blocking = file.barrier(kind, {}, within);
            EXPECT_EQ(blocking.has_value(), not waits(kind));
            if (waits(kind)) EXPECT_EQ(blocking.error().code(), ETIMEDOUT);
            tracked barrier(async_barrier(file, kind, {}, within));
            barrier.state.start();
            if (waits(kind)) EXPECT_EQ(barrier.is.dones, 1) << "known at once";
            ASSERT_TRUE(run_until_done(barrier.is));
            if (waits(kind)) EXPECT_TRUE(failed(barrier.is, ETIMEDOUT));
            if (within.is_zero() and not waits(kind) and not which().is_simulated)
                EXPECT_TRUE(succeeded(barrier.is));
        }
    }
}

// --- mapped files

class mapped_files : public on_every_back_end {
protected:
    void SetUp() override {
        const auto directory = path_handle::open({}, "/tmp").value();
        auto file = file_handle::temp_inode(directory).value();
        ASSERT_TRUE(file.write(io_request<const_bytes_type>{pattern(10'000), 0}).has_value());
        mapped_ = mapped_file_handle::map(std::move(file), 20'000).value();
        attach(mapped_);
    }

    mapped_file_handle mapped_;
};
INSTANTIATE_TEST_SUITE_P(conformance, mapped_files, every_back_end(), name_of_back_end);

TEST_P(mapped_files, return_their_pages_from_every_form_of_read) {
    std::array<std::byte, 100> unused{};
    const io_request<bytes_type> request{unused, 5'000};
    const auto expected = bytes_type(mapped_.address() + 5'000, 100);
    const auto is_expected = [&](const io_result<bytes_type>& got) {
        return got.has_value() and got->data() == expected.data() and got->size() == expected.size();
    };
    EXPECT_TRUE(is_expected(mapped_.read(request)));
    EXPECT_TRUE(is_expected(mapped_.try_read(request)));
    EXPECT_TRUE(is_expected(mapped_.try_read_for(request, 1s)));

    for (const auto how : {initiation::automatic, initiation::batched, initiation::speculative}) {
        std::optional<io_result<bytes_type>> outcome;
        struct keeping {
            std::optional<io_result<bytes_type>>* to;
            void set_value(io_result<bytes_type>&& got) noexcept { to->emplace(std::move(got)); }
            void set_done() noexcept {}
        };
        auto state = connect(async_read(mapped_, request), keeping{&outcome});
        state.start(how);
        ASSERT_FALSE(state.started());
        EXPECT_TRUE(is_expected(*outcome));
    }
    auto reading = [&]() -> task<bool> { co_return is_expected(co_await co_read(mapped_, request)); };
    EXPECT_TRUE(sync_wait(multiplexer(), reading()));
}

TEST_P(mapped_files, are_written_within_their_reservation_by_every_form) {
    const auto content = pattern(30'000, 7);
    const extent_type reserved = mapped_.reserved_bytes();
    ASSERT_LT(reserved, 30'000U);
    const io_request<const_bytes_type> whole{content, 0};
    tracked write(async_write(mapped_, whole));
    write.state.start();
    ASSERT_TRUE(run_until_done(write.is));
    if (not which().is_simulated) {
        ASSERT_TRUE(succeeded(write.is, reserved));
        EXPECT_EQ(mapped_.mapped_length(), reserved);
        EXPECT_EQ(std::memcmp(mapped_.address(), content.data(), reserved), 0);
    }
    EXPECT_EQ(mapped_.write(whole).value().size(), reserved);
    tracked past(async_write_some(mapped_, io_request<const_bytes_type>{content, reserved}));
    past.state.start();
    ASSERT_TRUE(run_until_done(past.is));
    EXPECT_TRUE(failed(past.is, EFBIG));
    EXPECT_EQ(mapped_.write(io_request<const_bytes_type>{content, reserved}).error().code(), EFBIG);
    tracked nowhere(async_write(mapped_, io_request<const_bytes_type>{content, no_offset}));
    nowhere.state.start();
    ASSERT_TRUE(run_until_done(nowhere.is));
    EXPECT_TRUE(failed(nowhere.is, EINVAL));
}

// --- connected states

using connected_states = on_every_back_end;
INSTANTIATE_TEST_SUITE_P(conformance, connected_states, every_back_end(), name_of_back_end);

TEST_P(connected_states, are_default_constructed_and_assigned_while_idle) {
    stream_ends ends = open_stream(medium::pipe);
    attach(ends.reader);
    struct counting {
        int* dones = nullptr;
        int* code = nullptr;
        void set_value(io_result<bytes_type>&& got) noexcept { *code = got ? 0 : got.error().code(); }
        void set_done() noexcept { ++*dones; }
    };
    std::array<io_operation_connection<transfer_sender<bytes_type>, counting>, 4> states;
    int dones = 0;
    int code = 0;
    std::array<std::byte, 4> into{};
    for (auto& state : states) {
        EXPECT_FALSE(state.started());
        state = connect(async_read(ends.reader, io_request<bytes_type>{into, no_offset}),
                        counting{&dones, &code});
    }
    ASSERT_TRUE(
        ends.writer.write(io_request<const_bytes_type>{text("0123456789abcdef"), no_offset}).has_value());
    for (auto& state : states)
        state.start();
    ASSERT_TRUE(run_until([&] { return dones == 4; }));
    // Started again after done, from another address.
    auto moved = std::move(states.front());
    ASSERT_TRUE(ends.writer.write(io_request<const_bytes_type>{text("0123"), no_offset}).has_value());
    moved.start();
    ASSERT_TRUE(run_until([&] { return dones == 5; }));
}

TEST_P(connected_states, without_a_handle_fail_with_EBADF) {
    struct keeping {
        int* code = nullptr;
        void set_value(io_result<bytes_type>&& got) noexcept {
            if (code != nullptr) *code = got.error().code();
        }
        void set_done() noexcept {}
    };
    io_operation_connection<transfer_sender<bytes_type>, keeping> state;
    int code = 0;
    state.get_receiver().code = &code;
    state.start();
    EXPECT_FALSE(state.started());
    EXPECT_EQ(code, EBADF);
}

}  // namespace
}  // namespace sluice::io::conformance
