#include <array>
#include <chrono>
#include <optional>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "tests/conformance/harness.hpp"

// "Allocates: attaching a handle, amortised; and post() of a callable. Nothing else, ever."

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class allocations : public on_every_stream {
protected:
    // Avoids std::function, whose cost is not measured here.
    struct silent {
        int* dones;
        void set_value(auto&&) noexcept {}
        void set_done() noexcept { ++*dones; }
    };

    static constexpr int warm_up = 200;
    // Over a million in total; kinds of handles and simulations differ little in this.
    [[nodiscard]] int operations() const {
        return kind() == medium::pipe and not which().is_simulated ? 15'000 : 500;
    }

    void measure(const char* what, const std::function<void()>& once) const {
        for (int i = 0; i < warm_up; ++i)
            once();
        const std::uint64_t before = bench::allocations();
        for (int i = 0; i < operations(); ++i)
            once();
        EXPECT_EQ(bench::allocations() - before, 0U) << what;
    }

    // The short read of a simulation leaves bytes in the stream.
    static void empty(io_handle& reader) {
        std::array<std::byte, 64> rest;
        while (reader.try_read(io_request<bytes_type>{rest}).bytes_transferred() != 0) {}
    }

    // A simulation can be faster than TCP in the kernel: then run() returns because no work is
    // left.
    void run_until_count(const int& dones, int expected) const {
        const auto wait_policy = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (dones < expected and
               (multiplexer().run().value_or(0) > 0 or std::chrono::steady_clock::now() < wait_policy)) {}
        ASSERT_EQ(dones, expected);
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, allocations, every_stream(), name_of_stream);

TEST_P(allocations, are_made_by_no_form_of_an_operation) {
    auto ends = attached_stream();
    std::array<std::byte, 16> block{};
    int dones = 0;
    const silent receiver{&dones};
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        measure("connect, start, run", [&] {
            dones = 0;
            auto write = connect(writing(ends.writer, block), receiver);
            auto read = connect(reading(ends.reader, block), receiver);
            write.start(how);
            read.start(how);
            run_until_count(dones, 2);
            empty(ends.reader);
        });
    }
    measure("connect, start, poll", [&] {
        dones = 0;
        auto write = connect(writing(ends.writer, block), receiver);
        auto read = connect(reading(ends.reader, block), receiver);
        write.start();
        while (not write.poll()) {}
        read.start();
        while (not read.poll()) {}
        run_until_count(dones, 2);
        empty(ends.reader);
    });
    measure("start before it is ready, with a deadline", [&] {
        dones = 0;
        auto read = connect(reading(ends.reader, block, 0, 10s), receiver);
        auto write = connect(writing(ends.writer, block, 0, 10s), receiver);
        read.start();
        write.start();
        run_until_count(dones, 2);
        empty(ends.reader);
    });
}

TEST_P(allocations, are_made_by_no_other_operation_either) {
    auto ends = attached_stream();
    std::array<std::byte, 16> block{};
    int dones = 0;
    const silent receiver{&dones};
    measure("start and cancel", [&] {
        dones = 0;
        auto read = connect(reading(ends.reader, block), receiver);
        auto sleep = connect(async_sleep(multiplexer(), 1h), receiver);
        read.start();
        sleep.start();
        (void)multiplexer().try_run();
        read.cancel();
        sleep.cancel();
        run_until_count(dones, 2);
    });
    measure("atomic senders", [&] {
        dones = 0;
        auto write = connect(atomic(writing(ends.writer, block)), receiver);
        auto read = connect(atomic(reading(ends.reader, block)), receiver);
        write.start();
        read.start();
        run_until_count(dones, 2);
        empty(ends.reader);
    });
    measure("lists, readiness and barriers", [&] {
        dones = 0;
        std::array<const_buffer, 3> out{const_buffer(std::span<const std::byte>(block)), const_buffer(),
                                        const_buffer()};
        std::array<buffer, 2> in{buffer(), buffer(block.data(), block.size())};
        auto write = connect(async_write(ends.writer, io_request<const_buffers_type>{out}), receiver);
        auto ready = connect(async_ready(ends.reader, direction::in), receiver);
        auto read = connect(async_read(ends.reader, io_request<buffers_type>{in}), receiver);
        auto barrier = connect(async_barrier(ends.writer), receiver);
        write.start();
        ready.start();
        read.start();
        barrier.start();
        run_until_count(dones, 4);
        empty(ends.reader);
    });
    struct empty_item final : posted_item {
        void invoke() noexcept override {}
    } item;
    measure("blocking calls and posted items", [&] {
        (void)ends.writer.write(io_request<const_bytes_type>{block});
        (void)ends.reader.try_read_for(io_request<bytes_type>{block}, 1s);
        multiplexer().post(item);
        (void)multiplexer().invoke_posted_items();
    });
}

TEST_P(allocations, are_not_made_by_operations_on_files) {
    if (kind() != medium::pipe) GTEST_SKIP() << "once is enough";
    for (const place where : {place::device, place::memory}) {
        io_handle file = open_file(where);
        attach(file);
        std::array<std::byte, 512> block{};
        int dones = 0;
        const silent receiver{&dones};
        for (const auto how : {initiation::automatic, initiation::batched}) {
            measure("files", [&] {
                dones = 0;
                auto write = connect(writing(file, block), receiver);
                auto read = connect(reading(file, block), receiver);
                write.start(how);
                read.start(how);
                run_until_count(dones, 2);
            });
        }
    }
}

}  // namespace
}  // namespace sluice::io::conformance
