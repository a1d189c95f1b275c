#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sluice/io/sender/sender.hpp"
#include "tests/simulation.hpp"

// The common part of the conformance tests: the multiplexers under test, handles of every kind with
// both ends in this process, and a receiver that records its signals.

namespace sluice::io::conformance {

/// The share of a long loop that a sanitizer build runs: it finds its errors in the first rounds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
[[nodiscard]] constexpr int rounds(int in_release) noexcept {
    return is_sanitized ? in_release / 10 : in_release;
}

/// A multiplexer under test.
struct back_end {
    std::string name{};
    std::function<result<std::unique_ptr<io_multiplexer>>(std::uint64_t seed)> make{};
    bool is_exact = true;       // ready operations are complete after the next complete_io
    bool is_simulated = false;  // time is virtual, no thread sleeps
    std::uint64_t seed = 0;     // for simulations
};

/// Returns the multiplexers that this build and this machine support. With `SLUICE_SEED` in the
/// environment, simulations run only with that seed, to replay a failure.
[[nodiscard]] const std::vector<back_end>& back_ends();

using testing_by_simulation::how_to_replay;
using testing_by_simulation::seeds;

/// Streams: bytes without boundaries, two ends.
enum class medium : std::uint8_t { pipe, unix_pair, tcp_pair };
[[nodiscard]] std::string_view name_of(medium kind) noexcept;

/// `reader` receives the data written to `writer`. Buffers are small, so that writes soon have to
/// wait.
struct stream_ends {
    io_handle reader;
    io_handle writer;
};
[[nodiscard]] stream_ends open_stream(medium kind);

/// Files: on a device, and in memory.
enum class place : std::uint8_t { device, memory };
[[nodiscard]] std::string_view name_of(place where) noexcept;
/// Returns a new empty file without a name.
[[nodiscard]] io_handle open_file(place where, bool append_only = false);

/// Returns bytes that depend on their position, so that lost, duplicated or swapped bytes are
/// detected.
[[nodiscard]] std::vector<std::byte> pattern(std::size_t size, std::size_t from = 0);
[[nodiscard]] std::span<const std::byte> text(std::string_view s) noexcept;

/// Reads everything from a stream that is available without waiting, with system calls: the actual
/// data.
[[nodiscard]] std::vector<std::byte> drain(io_handle& reader);
/// Writes until the stream accepts no further byte. Returns the number of bytes written.
std::size_t fill_up(io_handle& writer);

/// The signals that the receiver of one operation has received.
struct signal_record {
    int values = 0;
    int dones = 0;
    bool in_order = true;   // value, done, value, done…
    int code = 0;           // the last outcome: an errno value, 0 for success…
    std::size_t bytes = 0;  // …and the bytes transferred
    std::function<void()> on_value;
    std::function<void()> on_done;
};

/// A receiver that records its signals. Its last action is on_done(), which may destroy the whole
/// record.
struct recording_receiver {
    signal_record* to;

    template <class Outcome>
    void set_value(Outcome&& outcome) noexcept {
        to->in_order = to->in_order and to->values == to->dones;
        ++to->values;
        to->code = outcome.has_value() ? 0 : outcome.error().code();
        if constexpr (requires { outcome.bytes_transferred(); }) to->bytes = outcome.bytes_transferred();
        if (to->on_value) to->on_value();
    }
    void set_done() noexcept {
        to->in_order = to->in_order and to->dones + 1 == to->values;
        ++to->dones;
        if (to->on_done) to->on_done();
    }
};

/// Returns whether exactly one pair of signals arrived, in order, with this outcome.
[[nodiscard]] testing::AssertionResult succeeded(const signal_record& t, std::size_t bytes);
[[nodiscard]] testing::AssertionResult succeeded(const signal_record& t);
[[nodiscard]] testing::AssertionResult failed(const signal_record& t, int code);

/// An operation and its record, for tests that have many.
template <class Sender>
struct tracked {
    signal_record is;
    io_operation_connection<Sender, recording_receiver> state;

    explicit tracked(Sender what) noexcept : state(std::move(what), recording_receiver{&is}) {}
    tracked(const tracked&) = delete;
    tracked& operator=(const tracked&) = delete;
    /// A failed test leaves operations pending; the other tests must still run.
    ~tracked() {
        if (not state.started()) return;
        is.on_value = is.on_done = {};
        state.cancel();
        while (state.started() and
               state.get_sender().multiplexer().try_run_for(std::chrono::seconds(1)).value_or(0) > 0) {}
    }
};
using tracked_read = tracked<transfer_sender<bytes_type>>;
using tracked_write = tracked<transfer_sender<const_bytes_type>>;

[[nodiscard]] inline transfer_sender<bytes_type> reading(io_handle& from, std::span<std::byte> into,
                                                         extent_type at = 0, deadline within = {}) noexcept {
    return async_read(from, io_request<bytes_type>{into, at}, within);
}
[[nodiscard]] inline transfer_sender<const_bytes_type> writing(io_handle& to, std::span<const std::byte> what,
                                                               extent_type at = 0,
                                                               deadline within = {}) noexcept {
    return async_write(to, io_request<const_bytes_type>{what, at}, within);
}

/// A read of one byte on a separate stream.
struct stream_read {
    stream_ends ends{};
    std::array<std::byte, 1> into{};
    std::unique_ptr<tracked_read> read{};
};

/// One multiplexer of the back end under test; every test ends without pending operations.
class with_multiplexer {
public:
    explicit with_multiplexer(const back_end& which);

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }
    [[nodiscard]] const back_end& which() const noexcept { return which_; }
    void attach(multiplexable_handle& h) const;

    /// Starts reads of empty streams. The operations are queued, not tried.
    [[nodiscard]] std::deque<stream_read> start_reads(std::size_t count, medium kind) const;

    /// Runs until `met()` returns true, or nothing has happened for longer than any test needs.
    /// Returns `met()`.
    bool run_until(const std::function<bool()>& met) const;
    bool run_until_done(const signal_record& t) const {
        return run_until([&] { return t.dones != 0; });
    }
    /// Runs everything that can complete without waiting.
    void run_briefly() const;

    /// Returns whether a read of a larger size got all available bytes, or, if reads may be short,
    /// a part of them.
    [[nodiscard]] testing::AssertionResult has_read(const signal_record& t, std::size_t there) const;

    void explain_failure() const;

private:
    back_end which_;
    std::unique_ptr<io_multiplexer> multiplexer_;
};

/// The fixtures: every back end, alone or with every kind of stream or file.
class on_every_back_end : public testing::TestWithParam<back_end>, protected with_multiplexer {
protected:
    on_every_back_end() : with_multiplexer(GetParam()) {}
    void TearDown() override { explain_failure(); }
};
class on_every_stream : public testing::TestWithParam<std::tuple<back_end, medium>>,
                        protected with_multiplexer {
protected:
    on_every_stream() : with_multiplexer(std::get<0>(GetParam())) {}
    void TearDown() override { explain_failure(); }

    [[nodiscard]] static medium kind() { return std::get<1>(GetParam()); }
    /// Returns a stream with both ends attached.
    [[nodiscard]] stream_ends attached_stream() const {
        stream_ends ends = open_stream(kind());
        attach(ends.reader);
        attach(ends.writer);
        return ends;
    }
};
class on_every_file : public testing::TestWithParam<std::tuple<back_end, place>>, protected with_multiplexer {
protected:
    on_every_file() : with_multiplexer(std::get<0>(GetParam())) {}
    void TearDown() override { explain_failure(); }

    [[nodiscard]] static place where() { return std::get<1>(GetParam()); }
    [[nodiscard]] io_handle attached_file(bool append_only = false) const {
        io_handle file = open_file(where(), append_only);
        attach(file);
        return file;
    }
};

[[nodiscard]] std::string name_of_back_end(const testing::TestParamInfo<back_end>& info);
[[nodiscard]] std::string name_of_stream(const testing::TestParamInfo<std::tuple<back_end, medium>>& info);
[[nodiscard]] std::string name_of_file(const testing::TestParamInfo<std::tuple<back_end, place>>& info);

inline auto every_back_end() {
    return testing::ValuesIn(back_ends());
}
inline auto every_stream() {
    return testing::Combine(testing::ValuesIn(back_ends()),
                            testing::Values(medium::pipe, medium::unix_pair, medium::tcp_pair));
}
inline auto every_file() {
    return testing::Combine(testing::ValuesIn(back_ends()), testing::Values(place::device, place::memory));
}

void PrintTo(const back_end& which, std::ostream* out);

}  // namespace sluice::io::conformance
