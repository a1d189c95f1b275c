#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>

#include "sluice/base/random.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "tests/conformance/harness.hpp"

// Random operations on streams and files, compared with models that define the results in a few
// lines:
//   - a stream: the received bytes are those that the writes report as sent, in the order of their
//     start;
//   - a file: blocks; each write reports the number of bytes that it has changed.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class dice {
public:
    explicit dice(std::uint64_t seed) : numbers_(seed) {}
    std::size_t below(std::size_t bound) { return numbers_.below(bound); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    initiation some_initiation() { return static_cast<initiation>(below(3)); }
    deadline some_deadline() {
        if (one_in(8)) return deadline::zero();
        if (one_in(6)) return deadline(std::chrono::microseconds(below(2000)));
        return {};
    }

private:
    seeded_random numbers_;
};

// An operation or item that was started and must end, once.
struct started {
    virtual ~started() = default;
    virtual void cancel() = 0;
    virtual bool poll() = 0;
    signal_record is;
    bool checked = false;
};
template <class Sender>
struct started_operation final : started {
    explicit started_operation(Sender what) : state(std::move(what), recording_receiver{&is}) {}
    void cancel() override { state.cancel(); }
    bool poll() override { return state.poll(); }
    io_operation_connection<Sender, recording_receiver> state;
};
template <class Sender>
std::unique_ptr<started> begin(Sender what, initiation how) {
    auto made = std::make_unique<started_operation<Sender>>(std::move(what));
    made->state.start(how);
    return made;
}

// A list of pieces, some of them empty, in one block of memory.
struct list {
    std::vector<std::byte> bytes;
    std::vector<buffer> pieces;
    std::vector<const_buffer> const_pieces;

    list(dice& d, std::vector<std::byte> content) : bytes(std::move(content)) {
        for (std::size_t at = 0; at < bytes.size() or pieces.empty();) {
            const std::size_t size = std::min(bytes.size() - at, d.below(d.one_in(2) ? 10'000 : 200));
            pieces.emplace_back(bytes.data() + at, size);
            at += size;
        }
        const_pieces.assign(pieces.begin(), pieces.end());
    }
};

// The writer has closed, so there is an end; but TCP may still be delivering earlier data.
std::vector<std::byte> read_to_the_end(io_handle& reader) {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> some;
    for (;;) {
        const auto got = reader.read(io_request<bytes_type>{some}, 10s);
        EXPECT_TRUE(got.has_value()) << got.error().message();
        if (got.bytes_transferred() == 0) return all;
        all.insert(all.end(), got->begin(), got->end());
    }
}

class modelled_stream {
public:
    modelled_stream(medium kind, io_multiplexer& m) : ends_(open_stream(kind)) {
        attach(ends_.reader, m);
        attach(ends_.writer, m);
    }

    void start_something(dice& d) {
        const bool is_write = d.one_in(2);
        if (is_write ? not ends_.writer.is_valid() : not ends_.reader.is_valid()) return;
        const std::size_t size = d.one_in(10) ? 0 : 1 + d.below(d.one_in(5) ? 60'000 : 3'000);
        auto& transfers = is_write ? writes_ : reads_;
        if (transfers.size() - first_open(transfers) > 20) return;
        transfers.emplace_back(d, is_write ? pattern(size, next_) : std::vector<std::byte>(size));
        transfer& fresh = transfers.back();
        if (is_write) {
            next_ += size;
            fresh.op =
                begin(async_write(ends_.writer, io_request<const_buffers_type>{fresh.memory.const_pieces},
                                  d.some_deadline()),
                      d.some_initiation());
        } else {
            fresh.op = begin(
                async_read(ends_.reader, io_request<buffers_type>{fresh.memory.pieces}, d.some_deadline()),
                d.some_initiation());
        }
    }
    void disturb(dice& d) {
        auto& transfers = d.one_in(2) ? reads_ : writes_;
        if (transfers.empty()) return;
        started& chosen = *transfers[d.below(transfers.size())].op;
        d.one_in(2) ? chosen.cancel() : (void)chosen.poll();
    }
    void cancel_writes() {
        for (auto& each : writes_)
            each.op->cancel();
    }
    void close_writer() { ASSERT_TRUE(ends_.writer.close().has_value()); }
    void cancel_reads() {
        for (auto& each : reads_)
            each.op->cancel();
    }
    [[nodiscard]] bool writes_are_done() const { return first_open(writes_) == writes_.size(); }

    /// Checks, at the end, that all operations are done, and drains the stream.
    void check(bool lossy) {
        std::vector<std::byte> sent, received;
        for (const auto& each : writes_) {
            ASSERT_EQ(each.op->is.values, 1);
            ASSERT_EQ(each.op->is.dones, 1);
            ASSERT_TRUE(each.op->is.in_order);
            const std::size_t gone = each.op->is.code == 0 ? each.op->is.bytes : 0;
            sent.insert(sent.end(), each.memory.bytes.begin(),
                        each.memory.bytes.begin() + static_cast<std::ptrdiff_t>(gone));
        }
        for (const auto& each : reads_) {
            ASSERT_EQ(each.op->is.values, 1);
            ASSERT_EQ(each.op->is.dones, 1);
            ASSERT_TRUE(each.op->is.in_order);
            const std::size_t come = each.op->is.code == 0 ? each.op->is.bytes : 0;
            received.insert(received.end(), each.memory.bytes.begin(),
                            each.memory.bytes.begin() + static_cast<std::ptrdiff_t>(come));
        }
        const auto rest = read_to_the_end(ends_.reader);
        received.insert(received.end(), rest.begin(), rest.end());
        if (lossy) {
            ASSERT_LE(received.size(), sent.size());
            sent.resize(received.size());
        }
        const auto parted = std::ranges::mismatch(sent, received).in1 - sent.begin();
        ASSERT_EQ(received.size(), sent.size()) << "they part at byte " << parted << story(rest.size());
        ASSERT_TRUE(received == sent) << "they part at byte " << parted << story(rest.size());
    }

private:
    struct transfer {
        transfer(dice& d, std::vector<std::byte> content) : memory(d, std::move(content)) {}
        list memory;
        std::unique_ptr<started> op{};
    };
    static void attach(multiplexable_handle& h, io_multiplexer& m) {
        ASSERT_TRUE(h.set_multiplexer(&m).has_value());
    }
    static std::size_t first_open(const std::deque<transfer>& all) {
        return static_cast<std::size_t>(
            std::ranges::count_if(all, [](const transfer& each) { return each.op->is.dones == 1; }));
    }

    // Returns the results of all transfers, for a failure that cannot be reproduced.
    [[nodiscard]] std::string story(std::size_t drained) const {
        std::string text = "; bytes and code of each write, then of each read:";
        for (const auto* all : {&writes_, &reads_}) {
            text += "\n ";
            for (const auto& each : *all) {
                text +=
                    ' ' + std::to_string(each.op->is.bytes) + '/' + std::to_string(each.memory.bytes.size());
                if (each.op->is.code != 0) text += '!' + std::to_string(each.op->is.code);
            }
        }
        return text + "\n  and then drained " + std::to_string(drained);
    }

    stream_ends ends_;
    std::size_t next_ = 0;
    std::deque<transfer> reads_, writes_;
};

class modelled_file {
public:
    static constexpr std::size_t block = 5000;
    static constexpr std::size_t blocks = 12;

    modelled_file(place where, io_multiplexer& m) : file_(open_file(where)), content_(block * blocks) {
        EXPECT_TRUE(file_.set_multiplexer(&m).has_value());
        EXPECT_TRUE(file_.write(io_request<const_bytes_type>{content_, 0}).has_value());
    }

    // At most one request per block is in flight, so that the expected content is known.
    void start_something(dice& d) {
        const std::size_t which = d.below(blocks);
        if (slots_[which] != nullptr and slots_[which]->op->is.dones == 0) return;
        check(which);
        const std::size_t size = 1 + d.below(block);
        const bool is_write = d.one_in(2);
        std::vector<std::byte> bytes = is_write ? pattern(size, salt_ += 997) : std::vector<std::byte>(size);
        auto fresh = std::make_unique<slot>(d, std::move(bytes), is_write);
        const std::size_t at = which * block;
        fresh->op =
            is_write
                ? begin(async_write(file_, io_request<const_buffers_type>{fresh->memory.const_pieces, at},
                                    d.some_deadline()),
                        d.some_initiation())
                : begin(async_read(file_, io_request<buffers_type>{fresh->memory.pieces, at},
                                   d.some_deadline()),
                        d.some_initiation());
        slots_[which] = std::move(fresh);
    }
    void disturb(dice& d) {
        const auto& chosen = slots_[d.below(blocks)];
        if (chosen != nullptr) d.one_in(2) ? chosen->op->cancel() : (void)chosen->op->poll();
    }
    void check_all() {
        for (std::size_t i = 0; i < blocks; ++i)
            check(i);
        std::vector<std::byte> now(content_.size());
        EXPECT_EQ(file_.read(io_request<bytes_type>{now, 0}).bytes_transferred(), now.size());
        EXPECT_TRUE(now == content_);
    }

private:
    struct slot {
        slot(dice& d, std::vector<std::byte> content, bool writes)
            : memory(d, std::move(content)), is_write(writes) {}
        list memory;
        bool is_write;
        std::unique_ptr<started> op{};
    };

    void check(std::size_t which) {
        if (slots_[which] == nullptr) return;
        const slot& done = *slots_[which];
        EXPECT_EQ(done.op->is.values, 1);
        EXPECT_EQ(done.op->is.dones, 1);
        EXPECT_TRUE(done.op->is.in_order);
        const std::size_t bytes = done.op->is.code == 0 ? done.op->is.bytes : 0;
        const auto here = content_.begin() + static_cast<std::ptrdiff_t>(which * block);
        const auto end = done.memory.bytes.begin() + static_cast<std::ptrdiff_t>(bytes);
        if (done.is_write) {
            std::copy(done.memory.bytes.begin(), end, here);
        } else {
            EXPECT_TRUE(std::equal(done.memory.bytes.begin(), end, here)) << "block " << which;
        }
        slots_[which].reset();
    }

    io_handle file_;
    std::vector<std::byte> content_;
    std::size_t salt_ = 0;
    std::array<std::unique_ptr<slot>, blocks> slots_;
};

void run_one_world(io_multiplexer& m, std::uint64_t seed, bool lossy) {
    dice d(seed);
    const bool is_simulated = m.name() == "simulated";
    std::deque<modelled_stream> streams;
    std::deque<modelled_file> files;
    for (std::size_t i = 0; i < 3; ++i)
        streams.emplace_back(i == 0                   ? medium::unix_pair
                             : i == 1 or is_simulated ? medium::pipe
                                                      : medium::tcp_pair,
                             m);
    files.emplace_back(place::memory, m);
    files.emplace_back(place::device, m);
    for (int step = 0; step < 400; ++step) {
        switch (d.below(8)) {
            case 0:
            case 1:
            case 2:
                streams[d.below(streams.size())].start_something(d);
                break;
            case 3:
                files[d.below(files.size())].start_something(d);
                break;
            case 4:
                if (d.one_in(3)) streams[d.below(streams.size())].disturb(d);
                if (d.one_in(3)) files[d.below(files.size())].disturb(d);
                break;
            case 5:
                (void)m.complete_io(1 + static_cast<int>(d.below(5)));
                break;
            case 6:
                (void)m.try_run(1 + static_cast<int>(d.below(20)));
                break;
            default:
                (void)m.try_run_for(std::chrono::microseconds(d.below(50)));
                break;
        }
    }
    // Writes complete as far as reads take their data; the rest is cancelled.
    while (m.try_run_for(2ms).value_or(0) > 0) {}
    const auto run_all = [&] {
        while (m.pending() != 0 and m.try_run_for(5s).value_or(0) > 0) {}
    };
    for (auto& each : streams)
        each.cancel_writes();
    while (not std::ranges::all_of(streams, &modelled_stream::writes_are_done) and
           m.try_run_for(5s).value_or(0) > 0) {}
    for (auto& each : streams) {
        ASSERT_TRUE(each.writes_are_done());
        each.close_writer();
    }
    run_all();
    ASSERT_EQ(m.pending(), 0U) << "reads must end with the stream";
    for (std::size_t i = 0; i < streams.size(); ++i) {
        SCOPED_TRACE("stream " + std::to_string(i));
        streams[i].check(lossy);
    }
    for (auto& each : files)
        each.check_all();
}

class model : public on_every_back_end {};
INSTANTIATE_TEST_SUITE_P(conformance, model, every_back_end(), name_of_back_end);

TEST_P(model, matches_the_results_of_random_operations) {
    const auto begun = std::chrono::steady_clock::now();
    for (const std::uint64_t seed : seeds(1000)) {
        const testing_by_simulation::replayable here(seed);
        auto m = which().make(seed).value();
        run_one_world(*m, seed, false);
        if (HasFailure()) break;
        if (std::chrono::steady_clock::now() - begun > 400ms) break;
    }
}

TEST(hostile_model, matches_the_results_of_random_operations_with_injected_errors) {
    const auto begun = std::chrono::steady_clock::now();
    for (const std::uint64_t seed : seeds(1000)) {
        const testing_by_simulation::replayable here(seed);
        auto m = make_simulated_multiplexer(simulation_options::hostile(seed)).value();
        run_one_world(*m, seed, true);
        if (testing::Test::HasFailure()) break;
        if (std::chrono::steady_clock::now() - begun > 1s) break;
    }
}

TEST(hostile_model, repeats_its_results_with_the_same_seed) {
    for (const std::uint64_t seed : seeds(5)) {
        const testing_by_simulation::replayable here(seed);
        auto first = make_simulated_multiplexer(simulation_options::hostile(seed)).value();
        auto second = make_simulated_multiplexer(simulation_options::hostile(seed)).value();
        run_one_world(*first, seed, true);
        run_one_world(*second, seed, true);
        EXPECT_EQ(first->digest(), second->digest());
        EXPECT_GT(first->events(), 100U);
    }
}

}  // namespace
}  // namespace sluice::io::conformance
