#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "tests/conformance/harness.hpp"

// The actions that other threads may take: post, end a work_guard, hold the other end of a stream;
// and those of a back end's own threads. Runs under ThreadSanitizer.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

std::vector<back_end> back_ends_that_sleep() {
    std::vector<back_end> sleeping;
    for (const back_end& each : back_ends()) {
        if (not each.is_simulated) sleeping.push_back(each);
    }
    return sleeping;
}

class threads : public on_every_back_end {};
INSTANTIATE_TEST_SUITE_P(conformance, threads, testing::ValuesIn(back_ends_that_sleep()), name_of_back_end);

struct counted_item final : posted_item {
    void invoke() noexcept override { ++*invoked; }
    int* invoked = nullptr;
};

TEST_P(threads, post_at_once_and_every_item_is_invoked) {
    constexpr int posters = 4;
    const int each = rounds(20'000);
    int invoked = 0;
    std::deque<std::deque<counted_item>> items(posters);
    {
        std::vector<std::jthread> running;
        for (auto& own : items) {
            own.resize(static_cast<std::size_t>(each));
            for (auto& item : own)
                item.invoked = &invoked;
        }
        auto& m = multiplexer();
        for (auto& own : items) {
            running.emplace_back([&m, &own, promise = io_multiplexer::work_guard(m)] {
                for (auto& item : own)
                    m.post(item);
            });
        }
        while (invoked < posters * each and m.run().value_or(0) > 0) {}
    }
    EXPECT_EQ(invoked, posters * each);
}

TEST_P(threads, post_callables_that_are_invoked_on_the_multiplexers_thread) {
    const auto here = std::this_thread::get_id();
    int invoked = 0;
    bool elsewhere = false;
    auto& m = multiplexer();
    std::jthread poster([&, promise = io_multiplexer::work_guard(m)] {
        for (int i = 0; i < 1000; ++i) {
            const auto posted = m.post([&]() noexcept {
                ++invoked;
                elsewhere = elsewhere or std::this_thread::get_id() != here;
            });
            if (not posted) std::abort();
        }
    });
    while (invoked < 1000 and m.run().value_or(0) > 0) {}
    EXPECT_EQ(invoked, 1000);
    EXPECT_FALSE(elsewhere);
}

TEST_P(threads, wake_a_loop_that_sleeps) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    int invoked = 0;
    auto& m = multiplexer();
    for (int i = 0; i < 5; ++i) {
        counted_item item;
        item.invoked = &invoked;
        {
            std::jthread poster([&] {
                std::this_thread::sleep_for(5ms);
                m.post(item);
            });
            const auto before = m.now();
            EXPECT_EQ(i % 2 == 0 ? m.run() : m.try_run_for(20s), 1);
            EXPECT_LT(m.now() - before, 10s);
        }
        EXPECT_EQ(invoked, i + 1);
    }
}

TEST_P(threads, wake_a_loop_that_waits_only_for_posted_items) {
    int invoked = 0;
    counted_item item;
    item.invoked = &invoked;
    auto& m = multiplexer();
    (void)m.complete_io();
    std::jthread poster([&] {
        std::this_thread::sleep_for(5ms);
        m.post(item);
    });
    const io_multiplexer::work_guard more_to_come(m);
    EXPECT_EQ(m.run(), 1);
    EXPECT_EQ(invoked, 1);
}

TEST_P(threads, end_a_loop_by_ending_their_work_guard) {
    for (int i = 0; i < 20; ++i) {
        auto& m = multiplexer();
        std::jthread promising([promise = io_multiplexer::work_guard(m), i]() mutable {
            if (i % 2 == 0) std::this_thread::sleep_for(2ms);
            const auto taken = std::move(promise);
        });
        while (m.run().value_or(0) > 0) {}
    }
    EXPECT_EQ(multiplexer().run(), io_multiplexer::nothing_pending);
}

TEST_P(threads, echo_bytes_between_separate_multiplexers) {
    for (const medium kind : {medium::unix_pair, medium::tcp_pair}) {
        auto ends = open_stream(kind);
        const int times = rounds(5000);
        std::jthread other([&, far = std::move(ends.writer)]() mutable {
            auto own = which().make(2).value();
            if (not far.set_multiplexer(own.get())) std::abort();
            std::byte one{};
            tracked_read read(reading(far, {&one, 1}));
            tracked_write write(writing(far, {&one, 1}));
            read.is.on_done = [&] {
                if (read.is.bytes == 1) write.state.start();
            };
            write.is.on_done = [&] { read.state.start(); };
            read.state.start();
            while (own->run().value_or(0) > 0) {}
            (void)far.close();
        });
        attach(ends.reader);
        std::byte sent{}, got{};
        int wrong = 0;
        tracked_write write(writing(ends.reader, {&sent, 1}));
        tracked_read read(reading(ends.reader, {&got, 1}));
        write.is.on_done = [&] { read.state.start(); };
        read.is.on_done = [&] {
            wrong += got != sent ? 1 : 0;
            sent = static_cast<std::byte>(read.is.dones & 0xff);
            if (read.is.dones < times) write.state.start();
        };
        write.state.start();
        EXPECT_TRUE(run_until([&] { return read.is.dones == times; }));
        EXPECT_EQ(wrong, 0);
        EXPECT_TRUE(ends.reader.close().has_value());  // the other thread ends
    }
}

TEST_P(threads, stop_their_work_in_the_back_end_on_request) {
    auto file = open_file(place::device);
    attach(file);
    const auto content = pattern(1 << 18);
    std::vector<std::vector<std::byte>> into(16, std::vector<std::byte>(content.size()));
    tracked_write write(writing(file, content));
    write.state.start();
    ASSERT_TRUE(run_until_done(write.is));
    for (int i = 0; i < rounds(100); ++i) {
        std::deque<std::unique_ptr<tracked_read>> reads;
        for (auto& each : into) {
            // Some are ended by cancel(), others by a deadline.
            const auto within = reads.size() % 3 == 0 ? deadline(50us) : deadline();
            reads.push_back(std::make_unique<tracked_read>(reading(file, each, 0, within)));
            reads.back()->state.start(initiation::batched);
        }
        (void)multiplexer().try_run();
        for (auto& each : reads)
            each->state.cancel();
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
        for (auto& each : reads) {
            EXPECT_TRUE(succeeded(each->is, content.size()) or failed(each->is, ECANCELED) or
                        failed(each->is, ETIMEDOUT));
        }
    }
}

}  // namespace
}  // namespace sluice::io::conformance
