#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/fat/device/journal_device.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/device/overlay_device.hpp"

// Overlays and journals with several concurrent threads; also run with ThreadSanitizer.

namespace sluice::fat {
namespace {

constexpr std::uint64_t piece_bytes = 512;
constexpr std::uint64_t pieces = 512;
constexpr unsigned writers = 3;

// Each thread writes every third piece, so that all threads share the blocks. One more thread ends
// batches and issues barriers, and one reads.
void write_at_once(device& on) {
    std::atomic<unsigned> working = writers;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < writers; ++number)
        threads.emplace_back([&, number] {
            for (std::uint64_t round = 1; round <= 3; ++round)
                for (std::uint64_t piece = number; piece < pieces; piece += writers) {
                    const std::vector<std::byte> bytes(piece_bytes, static_cast<std::byte>(piece * round));
                    EXPECT_TRUE(on.write_at(piece * piece_bytes, std::span<const std::byte>(bytes)));
                }
            --working;
        });
    threads.emplace_back([&] {
        while (working != 0) {
            EXPECT_TRUE(on.barrier());
            EXPECT_TRUE(on.end_batch());
        }
    });
    threads.emplace_back([&] {
        // Concurrently with the writers, from a piece that no thread writes.
        std::vector<std::byte> bytes(piece_bytes);
        while (working != 0)
            EXPECT_TRUE(on.read_at(pieces * piece_bytes, bytes));
    });
    for (std::thread& each : threads)
        each.join();
    EXPECT_TRUE(on.barrier());
    EXPECT_TRUE(on.end_batch());
}

void expect_everything(device& on) {
    std::vector<std::byte> bytes(piece_bytes);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        ASSERT_TRUE(on.read_at(piece * piece_bytes, bytes));
        EXPECT_EQ(bytes, std::vector<std::byte>(piece_bytes, static_cast<std::byte>(piece * 3))) << piece;
    }
}

TEST(overlay_threads, that_share_blocks_lose_no_writes) {
    memory_device image((pieces + 1) * piece_bytes);
    memory_device store(
        static_cast<std::size_t>(overlay_layout::for_image(image.size_bytes()).store_bytes()));
    ASSERT_TRUE(overlay_device::format(image, store, 0, {}));
    {
        const auto overlay = overlay_device::open(image, store, store.size_bytes()).value();
        write_at_once(*overlay);
    }
    const auto again = overlay_device::open(image, store, store.size_bytes()).value();
    expect_everything(*again);
}

// A file lets transfers of the same bytes overlap; memory needs a mutex for that.
class serial_device final : public device {
public:
    explicit serial_device(std::size_t size_bytes) : memory_(size_bytes) {}

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return memory_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type into) noexcept override {
        const std::scoped_lock guard(mutex_);
        return memory_.read_at(offset, into);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset, io::const_buffers_type from) noexcept override {
        const std::scoped_lock guard(mutex_);
        return memory_.write_at(offset, from);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind) noexcept override { return {}; }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        const std::scoped_lock guard(mutex_);
        return memory_.punch_hole(range);
    }

private:
    std::mutex mutex_;
    memory_device memory_;
};

// Each thread writes the same bytes to the same blocks: whole blocks, parts of them, and holes for
// zeros. There are no more slots than blocks.
TEST(overlay_threads, that_write_the_same_blocks_first_give_each_one_slot) {
    constexpr std::uint64_t block_bytes = overlay_layout::block_bytes_min;
    constexpr std::uint32_t blocks = 2 * overlay_layout::slots_per_group;
    const auto byte_of = [](std::uint64_t block) { return static_cast<std::byte>(block % 5); };
    for (int round = 0; round != 20; ++round) {
        memory_device image(blocks * block_bytes);
        serial_device store(
            static_cast<std::size_t>(overlay_layout::for_image(image.size_bytes()).store_bytes()));
        ASSERT_TRUE(overlay_device::format(image, store, 0, {}));
        const auto overlay = overlay_device::open(image, store, store.size_bytes()).value();
        std::atomic<unsigned> ready = 0;
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < writers; ++number)
            threads.emplace_back([&, number] {
                std::vector<std::byte> bytes(3 * block_bytes);
                for (++ready; ready != writers;)
                    std::this_thread::yield();
                for (std::uint64_t block = 0; block < blocks; block += 3) {
                    const std::size_t count = std::min<std::size_t>(3, blocks - block) * block_bytes;
                    for (std::size_t i = 0; i != count; ++i)
                        bytes[i] = byte_of(block + i / block_bytes);
                    const std::span<const std::byte> all(std::span(bytes).first(count));
                    const std::uint64_t offset = block * block_bytes;
                    if (number == 0) {
                        EXPECT_TRUE(overlay->write_at(offset, all));
                    } else {
                        const std::size_t half = block_bytes / 2 + number;
                        EXPECT_TRUE(overlay->write_at(offset, all.first(half)));
                        EXPECT_TRUE(overlay->write_at(offset + half, all.subspan(half)));
                    }
                    if (block % 5 == 0)
                        EXPECT_TRUE(overlay->punch_hole({.offset = offset, .length = block_bytes}));
                }
            });
        for (std::thread& each : threads)
            each.join();
        EXPECT_EQ(overlay->held_blocks(), blocks);
        ASSERT_TRUE(overlay->barrier());
        const auto again = overlay_device::open(image, store, store.size_bytes()).value();
        std::vector<std::byte> bytes(block_bytes);
        for (std::uint64_t block = 0; block < blocks; ++block) {
            ASSERT_TRUE(again->read_at(block * block_bytes, bytes));
            ASSERT_EQ(bytes, std::vector<std::byte>(block_bytes, byte_of(block))) << block;
        }
    }
}

TEST(journal_threads, that_write_concurrently_lose_no_writes) {
    memory_device volume((pieces + 1) * piece_bytes);
    memory_device log(256U << 10);
    const journal_device::place where{.in_image = {.offset = 0, .length = volume.size_bytes()}};
    ASSERT_TRUE(journal_device::format(volume, log, where, true, {}));
    const auto journal = journal_device::open(volume, log, where, false).value();
    write_at_once(*journal);
    ASSERT_TRUE(journal->recover());
    expect_everything(volume);
}

}  // namespace
}  // namespace sluice::fat
