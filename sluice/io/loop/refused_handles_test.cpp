#include "sluice/io/loop/refused_handles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/sender/sender.hpp"

// Operations on handles that no multiplexer accepts. Runs under AddressSanitizer and
// ThreadSanitizer.

namespace sluice::io {
namespace {

// An operation on a handle whose attachment has failed.
class refused_sender {
public:
    using result_type = result<void>;

    explicit refused_sender(const error& why) noexcept : target_(&detail::refused_handle(why)) {}
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *target_->multiplexer; }
    void configure(operation& configured) const noexcept {
        detail::operation_record& op = detail::record_of(configured);
        op.target = target_;
        op.kind = operation_kind::read;
    }
    [[nodiscard]] result_type collect(const operation& completed) const noexcept {
        if (detail::record_of(completed).error_code != target_->refusal->code())
            return failure({EPROTO, "end with another error"});
        return failure(*target_->refusal);
    }

private:
    registration* target_;
};

struct outcome {
    std::string message;
    int dones = 0;
};
struct receiver {
    outcome* to;
    void set_value(result<void>&& came) const noexcept { to->message = came.error().message(); }
    void set_value(io_result<bytes_type>&& came) const noexcept { to->message = came.error().message(); }
    void set_done() const noexcept { ++to->dones; }
};

const error too_many{EMFILE, "attach to multiplexer"};
const error no_memory{ENOMEM, "attach to multiplexer"};
const error no_ring{ENOMEM, "make a ring"};

TEST(refused_handles, an_operation_created_by_a_thread_that_has_ended_fails_on_another) {
    outcome came;
    std::optional<io_operation_connection<refused_sender, receiver>> state;
    std::optional<io_operation_connection<transfer_sender<bytes_type>, receiver>> without_handle;
    std::thread([&] {
        state.emplace(refused_sender(too_many), receiver{&came});
        without_handle.emplace(transfer_sender<bytes_type>(), receiver{&came});
    }).join();
    state->start();
    EXPECT_EQ(came.dones, 1);
    EXPECT_EQ(came.message, too_many.message());
    without_handle->start();
    EXPECT_EQ(came.dones, 2);
    EXPECT_EQ(came.message, "start an operation that was made without a handle: Bad file descriptor");
}

TEST(refused_handles, threads_that_start_operations_with_different_errors_get_their_own) {
    std::vector<std::jthread> threads;
    std::atomic<int> wrong = 0;
    for (const error* const each : {&too_many, &no_memory, &no_ring, &too_many}) {
        threads.emplace_back([each, &wrong] {
            for (int i = 0; i < 1000; ++i) {
                outcome came;
                auto state = connect(refused_sender(*each), receiver{&came});
                state.start();
                auto shared = connect(atomic(refused_sender(*each)), receiver{&came});
                shared.start();
                if (came.dones != 2 or came.message != each->message()) ++wrong;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(refused_handles, a_later_error_does_not_change_an_earlier_one) {
    outcome came;
    auto state = connect(refused_sender(no_memory), receiver{&came});
    (void)detail::refused_handle(no_ring);
    state.start();
    EXPECT_EQ(came.message, no_memory.message());
}

TEST(refused_handles, more_errors_than_are_kept_still_have_their_cause) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 2 * limits::refusals_max; ++i)
        names.push_back("operation " + std::to_string(i));
    const auto have_their_cause = [&] {
        return std::ranges::all_of(names, [](const std::string& name) {
            return detail::refused_handle({EMFILE, name.c_str()}).refusal->code() == EMFILE;
        });
    };
    // In a separate process, so that the other tests have slots for their errors.
    EXPECT_EXIT(std::_Exit(have_their_cause() ? 0 : 1), testing::ExitedWithCode(0), "");
}

// Two states whose done signals start the other one.
struct chain {
    struct next {
        chain* in;
        void set_value(result<void>&&) const noexcept { in->nested += in->is_signalling ? 1 : 0; }
        void set_done() const noexcept {
            in->is_signalling = true;
            if (++in->count < 100'000) (in->count % 2 == 0 ? in->first : in->second)->start();
            in->is_signalling = false;
        }
    };
    using connection = io_operation_connection<refused_sender, next>;

    int count = 0;
    int nested = 0;
    bool is_signalling = false;
    std::optional<connection> first, second;
};

TEST(refused_handles, receivers_that_start_the_next_one_do_not_nest) {
    chain all;
    all.first.emplace(refused_sender(too_many), chain::next{&all});
    all.second.emplace(refused_sender(too_many), chain::next{&all});
    all.first->start();
    EXPECT_EQ(all.count, 100'000);
    EXPECT_EQ(all.nested, 0);
}

// A state whose value signal starts `next`, and then waits until the test sets a flag.
struct waiting {
    struct signals {
        waiting* of;
        void set_value(result<void>&&) const noexcept {
            if (of->next != nullptr) of->next->start();
            of->is_inside = true;
            while (not of->goes_on.load())
                std::this_thread::yield();
            of->is_inside = false;
        }
        void set_done() const noexcept { ++of->dones; }
    };

    io_operation_connection<refused_sender, signals> state{refused_sender(too_many), signals{this}};
    io_operation_connection<refused_sender, receiver>* next = nullptr;
    std::atomic<bool> is_inside = false;
    std::atomic<bool> goes_on = false;
    std::atomic<int> dones = 0;

    void begin_on_this_thread() { state.start(); }
    void await_signal() const {
        while (not is_inside.load())
            std::this_thread::yield();
    }
};

TEST(refused_handles, an_operation_that_waits_for_its_turn_is_abandoned_by_another_thread) {
    outcome came;
    waiting first;
    auto second = connect(refused_sender(too_many), receiver{&came});
    first.next = &second;
    std::jthread starter([&] { first.begin_on_this_thread(); });
    first.await_signal();
    second.abandon();
    EXPECT_FALSE(second.started());
    first.goes_on = true;
    starter.join();
    EXPECT_EQ(first.dones.load(), 1);
    EXPECT_EQ(came.dones, 0);
    second.start();  // it may be used again
    EXPECT_EQ(came.dones, 1);
}

TEST(refused_handles, abandoning_waits_for_a_signal_that_another_thread_gives) {
    waiting first;
    std::jthread starter([&] { first.begin_on_this_thread(); });
    first.await_signal();
    std::jthread helper([&] {
        for (int i = 0; i < 1000; ++i)
            std::this_thread::yield();  // while abandon() is called, if it is to show
        first.goes_on = true;
    });
    first.state.abandon();
    EXPECT_FALSE(first.is_inside.load());
    EXPECT_EQ(first.dones.load(), 1);
}

}  // namespace
}  // namespace sluice::io
