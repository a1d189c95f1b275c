#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/stream/receive_pool.hpp"
#include "tests/conformance/harness.hpp"

// Several threads use one multiplexer that is made for them. Runs under ThreadSanitizer.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

std::vector<back_end> back_ends_for_threads() {
    std::vector<back_end> shared;
    for (const back_end& each : back_ends()) {
        if (each.name.ends_with("_for_threads")) shared.push_back(each);
    }
    return shared;
}

class shared : public testing::TestWithParam<std::tuple<back_end, int>>, protected with_multiplexer {
protected:
    shared() : with_multiplexer(std::get<0>(GetParam())) {}
    void TearDown() override { explain_failure(); }

    [[nodiscard]] static int threads() { return std::get<1>(GetParam()); }
    [[nodiscard]] stream_ends attached_stream(medium kind = medium::unix_pair) const {
        stream_ends ends = open_stream(kind);
        attach(ends.reader);
        attach(ends.writer);
        return ends;
    }
    // Runs the multiplexer on `threads()` threads until no work is left, after `each(i)` on each of
    // them.
    template <class Each>
    void run_by_all(Each&& each) const {
        std::atomic<int> here = 0;
        std::vector<std::jthread> running;  // joined before the counter is destroyed
        for (int i = 0; i < threads(); ++i) {
            running.emplace_back([&, i, promise = io_multiplexer::work_guard(multiplexer())]() mutable {
                each(i);
                ++here;
                while (here.load() < threads())
                    std::this_thread::yield();
                { const auto kept = std::move(promise); }
                while (multiplexer().run().value_or(0) > 0) {}
            });
        }
    }
    void run_by_all() const {
        run_by_all([](int) {});
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, shared,
                         testing::Combine(testing::ValuesIn(back_ends_for_threads()),
                                          testing::Values(2, 4, 8)),
                         [](const testing::TestParamInfo<std::tuple<back_end, int>>& info) {
                             return std::get<0>(info.param).name + "_" +
                                    std::to_string(std::get<1>(info.param));
                         });

// An external wait whose poll() blocks until another thread has run the loop past the deadline.
class slow_to_poll final : public external_work {
public:
    explicit slow_to_poll(std::atomic<bool>& lets_go) : lets_go_(lets_go) {}

    std::atomic<bool> is_polled = false;

private:
    std::optional<int> begin(bool) noexcept override { return std::nullopt; }
    void end() noexcept override { complete(ECANCELED); }
    void poll() noexcept override {
        is_polled = true;
        while (not lets_go_.load())
            std::this_thread::yield();
    }

    std::atomic<bool>& lets_go_;
};
class slow_sender {
public:
    using result_type = result<void>;

    slow_sender(io_multiplexer& on, slow_to_poll& work) noexcept : on_(&on), work_(&work) {}
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *on_; }
    void configure(operation& op) noexcept { configure_external(op, *on_, *work_, 1ms); }
    [[nodiscard]] result_type collect(const operation& op) noexcept {
        return code_of(op) == 0 ? result_type() : failure({code_of(op), "wait"});
    }

private:
    io_multiplexer* on_;
    slow_to_poll* work_;
};

TEST_P(shared, a_deadline_passes_while_a_thread_is_inside_the_poll_of_an_external_wait) {
    std::atomic<bool> lets_go = false;
    slow_to_poll work(lets_go);
    tracked waiting(slow_sender(multiplexer(), work));
    waiting.state.start();
    std::jthread polls([&] { (void)waiting.state.poll(); });
    while (not work.is_polled.load())
        std::this_thread::yield();
    std::jthread runs([&] {
        while (multiplexer().run().value_or(0) > 0) {}
    });
    std::this_thread::sleep_for(20ms);  // until the deadline has passed, so that an error can
                                        // appear
    lets_go = true;
    polls.join();  // it cannot return if the other thread keeps the lock
    runs.join();
    EXPECT_EQ(waiting.is.dones, 1);
    EXPECT_TRUE(failed(waiting.is, ETIMEDOUT));
}

TEST_P(shared, receive_pools_are_refused) {
    const auto refused = receive_pool::make(multiplexer(), {.count = 1, .bytes_each = 1});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), std::errc::operation_not_supported);
    EXPECT_EQ(refused.error().message(),
              "make a receive pool on a multiplexer for several threads; read into buffers that you "
              "allocate, or make a "
              "multiplexer for one thread: Operation not supported");
}

// One end of a connection: sends a byte back for each received one, this number of times.
struct echo {
    struct on_read {
        echo* self;
        void set_value(io_result<bytes_type>&& got) noexcept { self->has_read(got.has_value()); }
        void set_done() noexcept { self->write_next(); }
    };
    struct on_write {
        echo* self;
        void set_value(io_result<const_bytes_type>&& sent) noexcept { self->failed |= not sent.has_value(); }
        void set_done() noexcept { self->read_next(); }
    };

    echo(io_handle& on, int rounds)
        : left(rounds),
          read(connect(async_read(on, io_request<bytes_type>{byte}), on_read{this})),
          write(connect(async_write(on, io_request<const_bytes_type>{byte}), on_write{this})) {}

    void has_read(bool well) noexcept {
        failed |= not well;
        // Two receivers of one connection at the same time would be detected here, and by
        // ThreadSanitizer.
        if (std::exchange(is_inside, true)) std::abort();
        ++reads;
        is_inside = false;
    }
    void write_next() noexcept {
        if (not failed) write.start();
    }
    void read_next() noexcept {
        if (--left > 0 and not failed) read.start();
    }

    int left;
    int reads = 0;
    bool failed = false;
    bool is_inside = false;
    std::array<std::byte, 1> byte{};
    io_operation_connection<transfer_sender<bytes_type>, on_read> read;
    io_operation_connection<transfer_sender<const_bytes_type>, on_write> write;
};

TEST_P(shared, threads_run_receivers_that_start_the_next_operation) {
    const int turns = rounds(2'000);
    constexpr std::size_t conversations = 8;
    std::deque<stream_ends> streams;
    std::deque<echo> all;
    for (std::size_t i = 0; i < conversations; ++i) {
        streams.push_back(attached_stream(i % 2 == 0 ? medium::unix_pair : medium::tcp_pair));
        all.emplace_back(streams.back().reader, turns);
        all.emplace_back(streams.back().writer, turns);
    }
    run_by_all([&](int which) {
        for (std::size_t i = 0; i < conversations; ++i) {
            if (static_cast<int>(i) % threads() != which) continue;
            all[2 * i].read.start();
            all[2 * i + 1].write.start();
        }
    });
    for (const echo& each : all) {
        EXPECT_FALSE(each.failed);
    }
    EXPECT_EQ(multiplexer().pending(), 0U);
    for (std::size_t i = 0; i < conversations; ++i) {
        EXPECT_EQ(all[2 * i].reads, turns);
    }
}

TEST_P(shared, threads_start_writes_on_one_stream_and_none_is_torn) {
    const int each = rounds(300);
    constexpr std::size_t record = 700;  // several do not fit the buffers of the pipe
    auto ends = attached_stream(medium::pipe);
    std::deque<std::vector<std::byte>> texts;
    std::deque<std::deque<tracked_write>> writes(static_cast<std::size_t>(threads()));
    for (int t = 0; t < threads(); ++t) {
        texts.emplace_back(record, static_cast<std::byte>('a' + t));
        for (int i = 0; i < each; ++i)
            writes[static_cast<std::size_t>(t)].emplace_back(writing(ends.writer, texts.back()));
    }
    const std::size_t total = record * static_cast<std::size_t>(each) * static_cast<std::size_t>(threads());
    std::vector<std::byte> got(total);
    std::size_t at = 0;
    std::jthread reader([&] {
        // With system calls, while the threads write.
        while (at < total) {
            const ssize_t moved = ::read(ends.reader.native().descriptor, got.data() + at,
                                         std::min<std::size_t>(total - at, 999));
            if (moved > 0) at += static_cast<std::size_t>(moved);
            if (moved <= 0) std::this_thread::yield();
        }
    });
    run_by_all([&](int t) {
        for (auto& write : writes[static_cast<std::size_t>(t)])
            write.state.start();
    });
    reader.join();
    for (auto& own : writes) {
        for (auto& write : own)
            EXPECT_TRUE(succeeded(write.is, record));
    }
    std::size_t torn = 0;
    for (std::size_t i = 0; i < total; i += record)
        torn += std::any_of(&got[i], &got[i] + record, [&](std::byte b) { return b != got[i]; }) ? 1U : 0U;
    EXPECT_EQ(torn, 0U);
}

TEST_P(shared, one_threads_reads_of_one_stream_are_served_in_the_order_it_started_them) {
    const auto each = static_cast<std::size_t>(rounds(2'000));
    auto ends = attached_stream(medium::unix_pair);
    std::vector<std::array<std::byte, 1>> into(each);
    std::deque<tracked_read> reads;
    for (auto& room : into)
        reads.emplace_back(reading(ends.reader, room));
    const auto sent = pattern(each);
    run_by_all([&](int which) {
        if (which == 0) {
            for (auto& read : reads)
                read.state.start();
        } else if (which == 1) {
            for (const std::byte& one : sent) {
                while (::send(ends.writer.native().descriptor, &one, 1, MSG_DONTWAIT) != 1)
                    (void)multiplexer().try_run();
            }
        } else {
            for (int i = 0; i < 100; ++i)
                (void)multiplexer().try_run();
        }
    });
    for (std::size_t i = 0; i < each; ++i) {
        EXPECT_TRUE(succeeded(reads[i].is, 1));
        if (into[i][0] != sent[i]) FAIL() << "read " << i << " got another's byte";
    }
}

// Signalled on any thread; destroys itself at done.
struct self_destroying {
    struct receiver {
        self_destroying* self;
        void set_value(io_result<bytes_type>&& got) noexcept {
            if (got.has_value()) {
                ++*self->completed;
            } else if (got.error().code() == ECANCELED or got.error().code() == ETIMEDOUT) {
                ++*self->ended;
            }
        }
        void set_done() noexcept { delete self; }
    };
    self_destroying(io_handle& on, std::atomic<int>& completed_of, std::atomic<int>& ended_of,
                    deadline within = {})
        : completed(&completed_of),
          ended(&ended_of),
          state(connect(async_read(on, io_request<bytes_type>{into}, within), receiver{this})) {}

    std::atomic<int>* completed;
    std::atomic<int>* ended;
    std::array<std::byte, 1> into{};
    io_operation_connection<transfer_sender<bytes_type>, receiver> state;
};

TEST_P(shared, states_are_destroyed_in_done_on_any_thread) {
    const int each = rounds(500);
    std::atomic<int> completed = 0;
    std::atomic<int> ended = 0;
    std::deque<stream_ends> streams;
    for (int t = 0; t < threads(); ++t)
        streams.push_back(attached_stream());
    run_by_all([&](int t) {
        auto& ends = streams[static_cast<std::size_t>(t)];
        for (int i = 0; i < each; ++i) {
            (new self_destroying(ends.reader, completed, ended))->state.start();
            const std::byte one{};
            // A full stream accepts no more bytes, and no other thread may be running it.
            while (::send(ends.writer.native().descriptor, &one, 1, MSG_DONTWAIT) != 1) {
                if (errno != EAGAIN) std::abort();
                (void)multiplexer().try_run();
            }
            if (i % 16 == 0) (void)multiplexer().try_run();
        }
    });
    EXPECT_EQ(completed.load(), each * threads());
    EXPECT_EQ(ended.load(), 0);
}

TEST_P(shared, deadlines_pass_whichever_thread_starts_and_whichever_sleeps) {
    constexpr int each = 20;
    std::atomic<int> completed = 0;
    std::atomic<int> ended = 0;
    auto ends = attached_stream();
    // The other threads already sleep, and no event would wake them.
    std::optional<io_multiplexer::work_guard> promise(multiplexer());
    std::vector<std::jthread> sleepers;
    for (int i = 0; i < threads(); ++i) {
        sleepers.emplace_back([&] {
            while (multiplexer().run(1).value_or(0) > 0) {}
        });
    }
    for (int i = 0; i < each; ++i)
        (new self_destroying(ends.reader, completed, ended, 5ms))->state.start();
    while (ended.load() < each)
        std::this_thread::yield();
    EXPECT_EQ(completed.load(), 0);
    promise.reset();
}

TEST_P(shared, cancel_against_completion_gives_each_state_one_pair_of_signals) {
    const int turns = rounds(1'000);
    auto ends = attached_stream();
    std::optional<io_multiplexer::work_guard> promise(multiplexer());
    std::vector<std::jthread> running;
    for (int i = 0; i < threads(); ++i) {
        running.emplace_back([&] {
            while (multiplexer().run().value_or(0) > 0) {}
        });
    }
    int cancelled = 0;
    for (int i = 0; i < turns; ++i) {
        std::array<std::byte, 1> into{};
        std::atomic<int> dones = 0;
        int code = -1;
        struct receiver {
            std::atomic<int>* dones;
            int* code;
            void set_value(io_result<bytes_type>&& got) noexcept {
                *code = got.has_value() ? 0 : got.error().code();
            }
            void set_done() noexcept { dones->fetch_add(1, std::memory_order_release); }
        };
        auto state =
            connect(atomic(async_read(ends.reader, io_request<bytes_type>{into})), receiver{&dones, &code});
        state.start();
        std::atomic<bool> go = false;
        std::jthread canceller([&] {
            while (not go.load()) {}
            state.cancel();
        });
        const std::byte one{};
        go = true;
        if (::write(ends.writer.native().descriptor, &one, 1) != 1) std::abort();
        canceller.join();
        while (dones.load(std::memory_order_acquire) == 0)
            (void)state.poll();
        // The state may be destroyed after done has returned.
        while (state.started()) {}
        EXPECT_EQ(dones.load(), 1);
        EXPECT_TRUE(code == 0 or code == ECANCELED) << code;
        if (code == ECANCELED) {
            ++cancelled;
            (void)drain(ends.reader);
        }
        (void)multiplexer().try_run();
    }
    promise.reset();
    running.clear();
    RecordProperty("cancelled", cancelled);
}

TEST_P(shared, any_thread_may_poll_the_operation_of_another) {
    const int turns = rounds(500);
    auto ends = attached_stream();
    for (int i = 0; i < turns; ++i) {
        std::array<std::byte, 1> into{};
        std::atomic<int> dones = 0;
        struct receiver {
            std::atomic<int>* dones;
            void set_value(io_result<bytes_type>&&) noexcept {}
            void set_done() noexcept { ++*dones; }
        };
        auto state = connect(async_read(ends.reader, io_request<bytes_type>{into}), receiver{&dones});
        state.start();
        const std::byte one{};
        if (::write(ends.writer.native().descriptor, &one, 1) != 1) std::abort();
        std::vector<std::jthread> pollers;
        for (int t = 0; t < 2; ++t) {
            pollers.emplace_back([&] {
                while (not state.poll()) {}
            });
        }
        pollers.clear();
        EXPECT_EQ(dones.load(), 1);
    }
}

TEST_P(shared, items_posted_by_all_threads_are_invoked_once_each) {
    const int each = rounds(5'000);
    std::atomic<int> invoked = 0;
    struct item final : posted_item {
        void invoke() noexcept override { invoked->fetch_add(1, std::memory_order_relaxed); }
        std::atomic<int>* invoked = nullptr;
    };
    std::deque<std::deque<item>> items(static_cast<std::size_t>(threads()));
    for (auto& own : items) {
        own.resize(static_cast<std::size_t>(each));
        for (auto& one : own)
            one.invoked = &invoked;
    }
    run_by_all([&](int t) {
        for (auto& one : items[static_cast<std::size_t>(t)])
            multiplexer().post(one);
    });
    EXPECT_EQ(invoked.load(), each * threads());
}

TEST_P(shared, handles_are_attached_used_and_detached_while_others_run) {
    const int turns = rounds(200);
    run_by_all([&](int) {
        for (int i = 0; i < turns; ++i) {
            stream_ends ends = attached_stream();
            std::array<std::byte, 1> into{};
            std::atomic<bool> is_done = false;
            struct receiver {
                std::atomic<bool>* is_done;
                void set_value(io_result<bytes_type>&& got) noexcept {
                    if (not got.has_value()) std::abort();
                }
                void set_done() noexcept { *is_done = true; }
            };
            auto state = connect(async_read(ends.reader, io_request<bytes_type>{into}), receiver{&is_done});
            state.start();
            const std::byte one{};
            if (::write(ends.writer.native().descriptor, &one, 1) != 1) std::abort();
            while (not is_done.load())
                (void)multiplexer().try_run();
            if (not ends.reader.close().has_value() or not ends.writer.close().has_value()) std::abort();
        }
    });
}

TEST_P(shared, a_receiver_that_does_not_return_blocks_no_other_thread) {
    if (threads() < 2) GTEST_SKIP();
    auto slow = attached_stream();
    auto quick = attached_stream();
    std::atomic<bool> is_slow = false;
    std::atomic<bool> quick_done = false;
    std::array<std::byte, 1> slow_into{};
    std::array<std::byte, 1> quick_into{};
    struct slow_receiver {
        std::atomic<bool>* is_slow;
        std::atomic<bool>* until;
        void set_value(io_result<bytes_type>&&) noexcept {
            *is_slow = true;
            while (not until->load())
                std::this_thread::yield();
        }
        void set_done() noexcept {}
    };
    struct quick_receiver {
        std::atomic<bool>* is_done;
        void set_value(io_result<bytes_type>&&) noexcept {}
        void set_done() noexcept { *is_done = true; }
    };
    auto slow_read = connect(async_read(slow.reader, io_request<bytes_type>{slow_into}),
                             slow_receiver{&is_slow, &quick_done});
    auto quick_read =
        connect(async_read(quick.reader, io_request<bytes_type>{quick_into}), quick_receiver{&quick_done});
    slow_read.start();
    quick_read.start();
    std::jthread peer([&] {
        const std::byte one{};
        if (::write(slow.writer.native().descriptor, &one, 1) != 1) std::abort();
        while (not is_slow.load())
            std::this_thread::yield();
        if (::write(quick.writer.native().descriptor, &one, 1) != 1) std::abort();
    });
    run_by_all();
    EXPECT_TRUE(quick_done.load());
}

TEST_P(shared, operations_outlive_the_thread_that_started_them) {
    constexpr int each = 8;
    std::deque<stream_ends> streams;
    std::deque<std::array<std::byte, 1>> into(each);
    std::deque<tracked_read> reads;
    for (int i = 0; i < each; ++i) {
        streams.push_back(attached_stream(i % 2 == 0 ? medium::unix_pair : medium::pipe));
        reads.emplace_back(reading(streams.back().reader, into[static_cast<std::size_t>(i)]));
    }
    std::optional<io_multiplexer::work_guard> promise(multiplexer());
    std::vector<std::jthread> running;
    for (int i = 0; i < threads(); ++i) {
        running.emplace_back([&] {
            while (multiplexer().run().value_or(0) > 0) {}
        });
    }
    std::jthread([&] {
        for (auto& read : reads)
            read.state.start();
    }).join();
    for (auto& ends : streams) {
        const std::byte one{};
        if (::write(ends.writer.native().descriptor, &one, 1) != 1) std::abort();
    }
    while (multiplexer().pending() != 0)
        std::this_thread::yield();
    promise.reset();
    running.clear();
    for (auto& read : reads)
        EXPECT_TRUE(succeeded(read.is, 1));
}

TEST_P(shared, files_are_read_by_all_threads_at_once) {
    const int each = rounds(1'000);
    auto file = open_file(place::memory);
    attach(file);
    const auto content = pattern(64 * 1024);
    if (::pwrite(file.native().descriptor, content.data(), content.size(), 0) < 0) std::abort();
    std::atomic<int> wrong = 0;
    run_by_all([&](int t) {
        std::array<std::byte, 512> into{};
        for (int i = 0; i < each; ++i) {
            const auto at = static_cast<extent_type>((i * 131 + t * 977) % (64 * 1024 - 512));
            std::atomic<bool> is_done = false;
            struct receiver {
                std::atomic<bool>* is_done;
                void set_value(io_result<bytes_type>&&) noexcept {}
                void set_done() noexcept { *is_done = true; }
            };
            auto state = connect(async_read(file, io_request<bytes_type>{into, at}), receiver{&is_done});
            state.start(i % 3 == 0 ? initiation::batched : initiation::automatic);
            while (not is_done.load())
                (void)multiplexer().try_run();
            if (not std::equal(into.begin(), into.end(), content.begin() + static_cast<std::ptrdiff_t>(at)))
                ++wrong;
        }
    });
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace sluice::io::conformance
