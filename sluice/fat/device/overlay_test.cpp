#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sluice/base/random.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/fat/device/recording_device.hpp"
#include "sluice/fat/device/sparse_device.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::array<std::byte, 16> some_id{std::byte{1}, std::byte{2}};

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t count) {
    std::vector<std::byte> made(count);
    seeded_random(seed).fill(made);
    return made;
}

std::vector<std::byte> everything_in(device& of) {
    std::vector<std::byte> all(static_cast<std::size_t>(of.size_bytes()));
    EXPECT_TRUE(of.read_at(0, all));
    return all;
}

// An image in memory, and an overlay of it in memory.
struct overlaid {
    explicit overlaid(std::size_t image_bytes) : image(random_bytes(1, image_bytes)), store(store_size()) {
        EXPECT_TRUE(overlay_device::format(image, store, 42, some_id));
        reopen();
    }
    void reopen() {
        auto opened = overlay_device::open(image, store, store.size_bytes());
        ASSERT_TRUE(opened) << opened.error();
        overlay = *std::move(opened);
    }
    [[nodiscard]] std::size_t store_size() {
        return static_cast<std::size_t>(overlay_layout::for_image(image.size_bytes()).store_bytes());
    }
    [[nodiscard]] std::string refusal() {
        const auto opened = overlay_device::open(image, store, store.size_bytes());
        return opened ? "" : opened.error();
    }

    memory_device image;
    memory_device store;
    std::unique_ptr<overlay_device> overlay;
};

// Applies a write, a hole or a barrier of random size and position to both.
void do_something(seeded_random& random, device& overlay, std::vector<std::byte>& model) {
    const std::uint64_t offset = random.below(model.size());
    std::uint64_t length = random.below(std::min<std::uint64_t>(model.size() - offset, 5 * block_bytes)) + 1;
    switch (random.below(8)) {
        case 0:
            ASSERT_TRUE(overlay.barrier());
            return;
        case 1:
            ASSERT_TRUE(overlay.punch_hole({offset, length}));
            std::ranges::fill_n(model.begin() + static_cast<std::ptrdiff_t>(offset),
                                static_cast<std::ptrdiff_t>(length), std::byte{});
            return;
        default:
            break;
    }
    length = std::max<std::uint64_t>(length, 2);
    if (offset + length > model.size()) return;
    std::vector<std::byte> bytes = random_bytes(random.next_u64(), static_cast<std::size_t>(length));
    const auto cut = static_cast<std::size_t>(random.below(length));
    io::const_buffer pieces[] = {std::span<const std::byte>(bytes).first(cut),
                                 std::span<const std::byte>(bytes).subspan(cut)};
    ASSERT_TRUE(overlay.write_at(offset, io::const_buffers_type(pieces)));
    std::ranges::copy(bytes, model.begin() + static_cast<std::ptrdiff_t>(offset));
}

TEST(overlay, stores_all_writes_and_leaves_the_image_unchanged) {
    for (const std::size_t size : {40 * block_bytes, 40 * block_bytes + 700, 700 * block_bytes}) {
        overlaid made(size);
        const std::vector<std::byte> before(made.image.bytes().begin(), made.image.bytes().end());
        std::vector<std::byte> model = before;
        seeded_random random(size);
        for (int i = 0; i < 300; ++i) {
            do_something(random, *made.overlay, model);
            if (i % 50 != 49) continue;
            ASSERT_EQ(everything_in(*made.overlay), model);
            ASSERT_TRUE(made.overlay->barrier());
            made.reopen();
            ASSERT_EQ(everything_in(*made.overlay), model);
        }
        EXPECT_TRUE(std::ranges::equal(made.image.bytes(), before));
        std::uint64_t progress = 0;
        ASSERT_TRUE(made.overlay->copy_to(made.image, [&](std::uint64_t bytes) { progress += bytes; }));
        EXPECT_TRUE(std::ranges::equal(made.image.bytes(), model));
        EXPECT_LE(progress, size);
    }
}

// Splits the recorded events into writes of single sectors; an empty one is a barrier.
std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> sectors_of(const recording_device& recorded) {
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> all;
    for (const auto& event : recorded.log()) {
        if (event.kind == recording_device::event_kind::barrier) all.emplace_back();
        for (std::uint64_t done = 0; done < event.range.length;) {
            const std::uint64_t bytes =
                std::min<std::uint64_t>(512 - (event.range.offset + done) % 512, event.range.length - done);
            std::vector<std::byte> sector(static_cast<std::size_t>(bytes));
            if (event.kind == recording_device::event_kind::write)
                std::copy_n(event.bytes.begin() + static_cast<std::ptrdiff_t>(done), bytes, sector.begin());
            all.emplace_back(event.range.offset + done, std::move(sector));
            done += bytes;
        }
    }
    return all;
}

// Each sector has a number that only grows. A crash may revert changes after the last barrier,
// sector by sector, but nothing else.
TEST(overlay, after_a_crash_has_all_writes_before_the_barrier_and_later_sectors_old_or_new) {
    constexpr std::size_t sectors = 24 * block_bytes / 512;
    overlaid made(sectors * 512);
    const std::vector<std::byte> base = everything_in(made.image);
    const std::vector<std::byte> empty(made.store.bytes().begin(), made.store.bytes().end());
    recording_device recorded(made.store);
    auto overlay = overlay_device::open(made.image, recorded, recorded.size_bytes()).value();

    // history[i]: the content after i operations; barriers[i]: how many of them are durable
    std::vector<std::vector<std::byte>> history{base};
    std::vector<std::pair<std::size_t, std::size_t>> durable;  // events of the log, operations
    seeded_random random(7);
    for (int i = 0; i < 60; ++i) {
        const std::size_t first = random.below(sectors);
        const std::size_t count = 1 + random.below(std::min<std::size_t>(sectors - first, 20));
        std::vector<std::byte> now = history.back();
        const auto bytes = random_bytes(1000 + static_cast<std::uint64_t>(i), count * 512);
        ASSERT_TRUE(overlay->write_at(first * 512, std::span<const std::byte>(bytes)));
        std::ranges::copy(bytes, now.begin() + static_cast<std::ptrdiff_t>(first * 512));
        history.push_back(std::move(now));
        if (random.below(5) != 0) continue;
        ASSERT_TRUE(overlay->barrier());
        durable.emplace_back(sectors_of(recorded).size(), history.size() - 1);
    }
    const auto writes = sectors_of(recorded);

    const auto judge = [&](const std::vector<std::byte>& store, std::size_t at) {
        memory_device crashed(store);
        const auto opened = overlay_device::open(made.image, crashed, crashed.size_bytes());
        ASSERT_TRUE(opened) << opened.error();
        const auto found = everything_in(**opened);
        std::size_t least = 0;
        for (const auto& [event, operations] : durable)
            if (event <= at) least = operations;
        for (std::size_t sector = 0; sector < sectors; ++sector) {
            const auto is = [&](const std::vector<std::byte>& then) {
                return std::equal(found.begin() + static_cast<std::ptrdiff_t>(sector * 512),
                                  found.begin() + static_cast<std::ptrdiff_t>(sector * 512 + 512),
                                  then.begin() + static_cast<std::ptrdiff_t>(sector * 512));
            };
            const bool is_any =
                std::any_of(history.begin() + static_cast<std::ptrdiff_t>(least), history.end(), is);
            ASSERT_TRUE(is_any) << "sector " << sector << " after " << at << " of " << writes.size();
        }
    };
    std::vector<std::byte> store = empty;
    std::size_t last_barrier = 0;
    const auto apply = [](std::vector<std::byte>& to, const auto& write) {
        std::ranges::copy(write.second, to.begin() + static_cast<std::ptrdiff_t>(write.first));
    };
    for (std::size_t i = 0; i <= writes.size(); ++i) {
        if (i != writes.size() and not writes[i].second.empty()) continue;
        for (int round = 0; round < 4; ++round) {
            std::vector<std::byte> torn = store;
            for (std::size_t j = last_barrier; j < i; ++j)
                if (random.below(2) == 0) apply(torn, writes[j]);
            judge(torn, last_barrier);
            if (HasFatalFailure()) return;
        }
        for (std::size_t j = last_barrier; j < i; ++j)
            apply(store, writes[j]);
        last_barrier = i + 1;
        judge(store, std::min(last_barrier, writes.size()));
        if (HasFatalFailure()) return;
    }
}

TEST(overlay, reuses_the_slots_that_a_crash_reverted) {
    overlaid made(8 * block_bytes);
    const auto bytes = random_bytes(3, block_bytes);
    for (int crash = 0; crash < 5; ++crash) {
        for (std::uint64_t block = 0; block < 7; ++block)
            ASSERT_TRUE(made.overlay->write_at(block * block_bytes, std::span<const std::byte>(bytes)));
        made.reopen();  // no barrier: their entries were never written
        EXPECT_EQ(made.overlay->held_blocks(), 0U);
        ASSERT_TRUE(made.overlay->write_at(7 * block_bytes, std::span<const std::byte>(bytes).first(100)));
    }
    for (std::uint64_t block = 0; block < 8; ++block)
        ASSERT_TRUE(made.overlay->write_at(block * block_bytes, std::span<const std::byte>(bytes)));
    ASSERT_TRUE(made.overlay->barrier());
    made.reopen();
    EXPECT_EQ(made.overlay->held_blocks(), 8U);
    // A hole in a slot with garbage of a crash reads as zeros.
    overlaid fresh(8 * block_bytes);
    ASSERT_TRUE(fresh.overlay->write_at(0, std::span<const std::byte>(bytes)));
    ASSERT_TRUE(fresh.overlay->write_at(block_bytes, std::span<const std::byte>(bytes)));
    fresh.reopen();
    ASSERT_TRUE(fresh.overlay->punch_hole({0, 2 * block_bytes}));
    const auto all = everything_in(*fresh.overlay);
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + 2 * block_bytes,
                            [](std::byte each) { return each == std::byte{}; }));
}

// A device whose writes and barriers fail on request.
class failing_device final : public device {
public:
    explicit failing_device(device& below) : below_(below) {}
    bool is_full = false;
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type into) noexcept override {
        return below_.read_at(offset, into);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset, io::const_buffers_type from) noexcept override {
        if (is_full) return failure({ENOSPC, "write"});
        return below_.write_at(offset, from);
    }
    [[nodiscard]] result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept override {
        if (is_full) return failure({ENOSPC, "barrier"});
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        if (is_full) return failure({ENOSPC, "hole"});
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

private:
    device& below_;
};

TEST(overlay, on_a_full_disk_reports_the_error_and_loses_no_data) {
    overlaid made(16 * block_bytes);
    failing_device full(made.store);
    auto overlay = overlay_device::open(made.image, full, full.size_bytes()).value();
    std::vector<std::byte> model = everything_in(*overlay);
    const auto bytes = random_bytes(5, 3 * block_bytes);
    ASSERT_TRUE(overlay->write_at(100, std::span<const std::byte>(bytes)));
    std::ranges::copy(bytes, model.begin() + 100);
    full.is_full = true;
    EXPECT_EQ(overlay->write_at(5 * block_bytes, std::span<const std::byte>(bytes)).error(),
              std::errc::no_space_on_device);
    EXPECT_EQ(overlay->punch_hole({8 * block_bytes, 2 * block_bytes}).error(), std::errc::no_space_on_device);
    EXPECT_EQ(overlay->barrier().error(), std::errc::no_space_on_device);
    EXPECT_EQ(everything_in(*overlay), model);
    full.is_full = false;
    ASSERT_TRUE(overlay->barrier());  // writes the entries that failed before
    made.reopen();
    EXPECT_EQ(everything_in(*made.overlay), model);
    ASSERT_TRUE(overlay->write_at(5 * block_bytes, std::span<const std::byte>(bytes)));
    EXPECT_EQ(overlay->held_blocks(), 4U + 3U);
}

TEST(overlay, that_is_damaged_or_of_another_image_is_rejected_with_the_reason) {
    overlaid made(600 * block_bytes);
    const auto bytes = random_bytes(5, block_bytes);
    ASSERT_TRUE(made.overlay->write_at(0, std::span<const std::byte>(bytes)));
    ASSERT_TRUE(made.overlay->write_at(5 * block_bytes, std::span<const std::byte>(bytes)));
    ASSERT_TRUE(made.overlay->barrier());
    const overlay_layout layout = made.overlay->binding().layout;
    const overlay_binding binding = made.overlay->binding();
    const std::vector<std::byte> original(made.store.bytes().begin(), made.store.bytes().end());
    const auto with_entry = [&](std::uint32_t slot, const overlay_entry& entry) {
        std::ranges::copy(original, made.store.bytes().begin());
        EXPECT_TRUE(made.store.write_at(layout.entry_offset(slot), std::as_bytes(std::span(&entry, 1))));
        return made.refusal();
    };
    EXPECT_EQ(made.refusal(), "");
    EXPECT_EQ(with_entry(2, encode_entry(binding, 2, 7)), "");
    EXPECT_EQ(with_entry(2, encode_entry(binding, 3, 7)),
              "damaged: the entry of slot 2 has a wrong checksum");
    EXPECT_EQ(with_entry(2, encode_entry(binding, 2, 600)),
              "damaged: the entry of slot 2 names a block past the end of the image");
    EXPECT_EQ(with_entry(2, encode_entry(binding, 2, 5)),
              "damaged: the entry of slot 2 names a block that another slot holds");
    std::ranges::copy(original, made.store.bytes().begin());
    EXPECT_EQ(overlay_device::open(made.image, made.store, layout.slot_offset(1) + 10).error(),
              "damaged: the entry of slot 1 is past the end of the file, which was truncated");
    made.store.bytes()[20] ^= std::byte{1};
    EXPECT_EQ(made.refusal(), "damaged: its header has a wrong checksum");
    made.store.bytes()[8] = std::byte{2};
    EXPECT_EQ(made.refusal(), "unsupported version 2; this program supports version 1; use a newer sluice");
    made.store.bytes()[0] = std::byte{'X'};
    EXPECT_EQ(made.refusal(), "not an overlay");
    std::ranges::copy(original, made.store.bytes().begin());
    memory_device other(599 * block_bytes);
    EXPECT_EQ(overlay_device::open(other, made.store, made.store.size_bytes()).error(),
              "belongs to an image of 2457600 bytes, this one has 2453504");
}

TEST(overlay, for_a_huge_image_uses_larger_blocks_rather_than_more_memory) {
    EXPECT_EQ(overlay_layout::for_image(0).block_count(), 0U);
    EXPECT_EQ(overlay_layout::for_image((std::uint64_t{1} << 36) - 1).block_bytes, 4096U);
    EXPECT_EQ(overlay_layout::for_image(std::uint64_t{1} << 36).block_bytes, 8192U);
    const overlay_layout largest = overlay_layout::for_image(std::uint64_t{1} << 41);
    EXPECT_LE(largest.block_count(), overlay_layout::blocks_max);
    EXPECT_LT(largest.store_bytes(), std::uint64_t{1} << 42);
}

TEST(overlay, in_a_file_is_only_as_long_as_the_data_written) {
    const io::test_directory directory("/dev/shm");
    memory_device image(random_bytes(1, 4000 * block_bytes));
    const std::uint64_t most = overlay_layout::for_image(image.size_bytes()).store_bytes();
    std::vector<std::byte> model = everything_in(image);
    seeded_random random(11);
    for (int round = 0; round < 3; ++round) {
        auto file =
            io::file_handle::open({}, directory.path_of("o"), io::mode::write, io::creation::if_needed);
        auto store = sparse_device::over(*std::move(file), most).value();
        if (round == 0) {
            ASSERT_TRUE(overlay_device::format(image, *store, 0, some_id));
        }
        auto overlay = overlay_device::open(image, *store, store->present_bytes()).value();
        EXPECT_EQ(everything_in(*overlay), model);
        for (int i = 0; i < 40; ++i)
            do_something(random, *overlay, model);
        EXPECT_EQ(everything_in(*overlay), model);
        ASSERT_TRUE(overlay->barrier());
    }
    EXPECT_LT(std::filesystem::file_size(directory.path_of("o")), 400 * block_bytes);
}

}  // namespace
}  // namespace sluice::fat
