// Operations of a multiplexer for several threads that are cancelled or abandoned. Runs under
// ThreadSanitizer.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {
namespace {

using test_kit::run_threads;

class cancellation_by_threads : public test_kit::several_threads {
protected:
    [[nodiscard]] pipe_handle::pair attached_pipe() const {
        auto pipe = pipe_handle::anonymous().value();
        EXPECT_TRUE(pipe.reader.set_multiplexer(&loop()).has_value());
        return pipe;
    }
    static void write_one(pipe_handle& to) {
        const std::array<std::byte, 1> one{};
        EXPECT_TRUE(to.write(io_request<const_bytes_type>{one}).has_value());
    }
};
SLUICE_FOR_SEVERAL_THREADS(cancellation_by_threads);

TEST_P(cancellation_by_threads, by_a_receiver_that_then_computes_is_signalled_on_another_thread) {
    struct cancelled_receiver {
        std::atomic<int>* code;
        void set_value(io_result<bytes_type>&& got) const noexcept {
            *code = got.has_value() ? 0 : got.error().code();
        }
        void set_done() const noexcept {}
    };
    using read_state = io_operation_connection<transfer_sender<bytes_type>, cancelled_receiver>;
    struct computing_receiver {
        read_state* other;
        std::atomic<int>* code;
        void set_value(io_result<bytes_type>&&) const noexcept {
            other->cancel();
            while (code->load() == -1)
                std::this_thread::yield();
        }
        void set_done() const noexcept {}
    };
    for (int i = 0; i < 20; ++i) {
        auto idle = attached_pipe();
        auto ready = attached_pipe();
        std::atomic<int> code = -1;
        std::array<std::byte, 2> into{};
        auto waits = connect(async_read(idle.reader, io_request<bytes_type>{std::span(into).first(1)}),
                             cancelled_receiver{&code});
        auto cancels = connect(async_read(ready.reader, io_request<bytes_type>{std::span(into).last(1)}),
                               computing_receiver{&waits, &code});
        waits.start();
        cancels.start();
        {
            const run_threads all(loop());
            write_one(ready.writer);
        }
        EXPECT_EQ(code.load(), ECANCELED);
    }
}

// Its functions need the multiplexer's lock, like another thread.
class demanding final : public external_work {
public:
    explicit demanding(io_multiplexer& on) noexcept : on_(on) {}

    [[nodiscard]] int calls() const noexcept { return calls_; }

private:
    void ask_elsewhere() noexcept {
        ++calls_;
        std::jthread([this] { (void)on_.pending(); }).join();
    }
    [[nodiscard]] std::optional<int> begin(bool) noexcept override {
        ask_elsewhere();
        return std::nullopt;
    }
    void end() noexcept override {
        ask_elsewhere();
        complete(ECANCELED);
    }
    void poll() noexcept override { ask_elsewhere(); }
    [[nodiscard]] bool abandon() noexcept override {
        ask_elsewhere();
        return true;
    }

    io_multiplexer& on_;
    int calls_ = 0;
};

TEST_P(cancellation_by_threads, calls_no_function_of_an_external_wait_with_the_lock_held) {
    struct receiver {
        bool* is_done;
        void set_value(result<void>&&) const noexcept {}
        void set_done() const noexcept { *is_done = true; }
    };
    bool is_done = false;
    demanding abandoned(loop());
    auto first = connect(test_kit::external_sender(loop(), abandoned), receiver{&is_done});
    first.start();
    (void)first.poll();
    first.abandon();
    EXPECT_EQ(abandoned.calls(), 3);
    EXPECT_FALSE(is_done);
    demanding cancelled(loop());
    auto second = connect(test_kit::external_sender(loop(), cancelled), receiver{&is_done});
    second.start();
    second.cancel();
    while (not is_done)
        (void)loop().run();
    EXPECT_EQ(cancelled.calls(), 2);
    EXPECT_EQ(loop().pending(), 0U);
}

}  // namespace
}  // namespace sluice::io
