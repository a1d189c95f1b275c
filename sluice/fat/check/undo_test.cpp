#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/check/repair.hpp"
#include "sluice/fat/check/undo_log.hpp"
#include "sluice/fat/check/undo_recorder.hpp"
#include "sluice/fat/device/partition_device.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

constexpr std::size_t log_bytes = 8 << 20;
constexpr std::uint64_t volume_start = 8192;

// Counts down the writes of all devices together until the power fails.
struct power {
    std::uint64_t writes_left = ~std::uint64_t{0};
    [[nodiscard]] bool is_on() {
        if (writes_left == 0) return false;
        --writes_left;
        return true;
    }
};

// A device whose writes fail once there is no power. Before a barrier it keeps writes to
// itself, if it is `lazy`.
class fragile_device final : public device {
public:
    fragile_device(device& below, power& supply, bool is_lazy) noexcept
        : below_(below), power_(supply), is_lazy_(is_lazy) {}
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        if (not power_.is_on()) return failure({EIO, "power failure"});
        if (not is_lazy_) {
            present_bytes = std::max(present_bytes, offset + bytes_in(pieces));
            return below_.write_at(offset, pieces);
        }
        for (const io::const_buffer& each : pieces) {
            waiting_.emplace_back(offset, std::vector<std::byte>(each.bytes().begin(), each.bytes().end()));
            offset += each.size();
        }
        return {};
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind) noexcept override {
        if (not power_.is_on()) return failure({EIO, "power failure"});
        for (const auto& [offset, bytes] : waiting_) {
            present_bytes = std::max(present_bytes, offset + bytes.size());
            if (const auto done = below_.write_at(offset, std::span<const std::byte>(bytes)); not done)
                return done;
        }
        waiting_.clear();
        return {};
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        if (not power_.is_on()) return failure({EIO, "power failure"});
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

    std::uint64_t present_bytes = 0;  // how long a file would be

private:
    device& below_;
    power& power_;
    bool is_lazy_;
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> waiting_;
};

// An image with a volume in a partition, damaged in many ways.
class damaged_image {
    sample_volume sample_;

public:
    explicit damaged_image(fat_type type) : sample_(type), image(volume_start + sample_.shape.volume_bytes) {
        sample_volume& volume = sample_;
        volume.fat(21, 6);
        volume.fat(12, 12);
        volume.chain({50, 51, 52});
        volume.change(volume.root_slot(volume.one), [](auto& e) { e.name[2] = 7; });
        volume.set_free_count(3);
        std::ranges::fill(image.bytes().first(volume_start), std::byte{0x5a});
        const auto bytes = volume.image().bytes().first(volume.shape.cluster_offset(200));
        std::memcpy(image.bytes().data() + volume_start, bytes.data(), bytes.size());
        before.assign(image.bytes().begin(), image.bytes().end());
        shape = volume.shape;
        binding.image_bytes = before.size();
        binding.volume = {.offset = volume_start, .length = shape.volume_bytes};
        binding.id[3] = std::byte{9};
        binding.fingerprint_bytes = shape.data_offset;
    }
    [[nodiscard]] partition_device volume(device& whole) const {
        return partition_device::of(whole, binding.volume).value();
    }
    [[nodiscard]] bool is_as_before() {
        return std::memcmp(before.data(), image.bytes().data(), before.size()) == 0;
    }
    // Repairs until the repair is complete or the power fails. Returns whether it is complete.
    bool repair_with(device& log, power& supply, bool is_log_lazy) {
        fragile_device fragile_image(image, supply, false);
        fragile_device fragile_log(log, supply, is_log_lazy);
        partition_device part = volume(fragile_image);
        const auto recorder = undo_recorder::begin(part, fragile_log, binding);
        if (not recorder) return false;
        const auto report = repair(**recorder);
        const bool is_done = report and (*recorder)->finish(77).has_value();
        present_bytes = fragile_log.present_bytes;
        return is_done;
    }

    memory_device image;
    std::vector<std::byte> before;
    geometry shape;
    undo_binding binding;
    std::uint64_t present_bytes = 0;  // length of the log
};

TEST(undo, restores_every_byte_that_a_repair_changed) {
    for (const fat_type type : all_types) {
        damaged_image damaged(type);
        memory_device log(log_bytes);
        power supply;
        ASSERT_TRUE(damaged.repair_with(log, supply, false));
        EXPECT_FALSE(damaged.is_as_before());
        auto opened = undo_log::open(log, log.size_bytes());
        ASSERT_TRUE(opened) << opened.error();
        EXPECT_GT(opened->recorded_bytes(), 0U);
        ASSERT_TRUE(opened->check_image(damaged.image, 77));
        ASSERT_TRUE(opened->apply(damaged.image));
        EXPECT_TRUE(damaged.is_as_before());
        auto again = undo_log::open(log, log.size_bytes());
        ASSERT_TRUE(again);
        EXPECT_THAT(again->check_image(damaged.image, 77).error(), HasSubstr("undone already"));
    }
}

TEST(undo, restores_the_image_after_a_power_failure_at_every_write_of_a_repair) {
    for (const bool is_lazy : {false, true})
        for (std::uint64_t writes = 3;; ++writes) {
            SCOPED_TRACE(writes);
            damaged_image damaged(fat_type::fat12);
            memory_device log(log_bytes);
            power supply{.writes_left = writes};
            const bool is_done = damaged.repair_with(log, supply, is_lazy);
            auto opened = undo_log::open(log, damaged.present_bytes);
            ASSERT_TRUE(opened) << opened.error();
            const auto fits = opened->check_image(damaged.image, 77);
            ASSERT_TRUE(fits) << fits.error();
            ASSERT_TRUE(opened->apply(damaged.image));
            ASSERT_TRUE(damaged.is_as_before());
            if (is_done) break;
        }
}

TEST(undo, can_be_repeated_after_a_power_failure_at_every_write_of_it) {
    for (std::uint64_t writes = 1;; ++writes) {
        SCOPED_TRACE(writes);
        damaged_image damaged(fat_type::fat16);
        memory_device log(log_bytes);
        power supply;
        ASSERT_TRUE(damaged.repair_with(log, supply, false));
        supply.writes_left = writes;
        fragile_device image(damaged.image, supply, false);
        fragile_device fragile_log(log, supply, false);
        const bool is_done = undo_log::open(fragile_log, log.size_bytes())->apply(image).has_value();
        if (is_done) break;
        auto opened = undo_log::open(log, log.size_bytes());
        ASSERT_TRUE(opened);
        if (opened->binding().state == undo_state::undone) continue;  // only the barrier failed
        ASSERT_TRUE(opened->check_image(damaged.image, 77));
        ASSERT_TRUE(opened->apply(damaged.image));
        ASSERT_TRUE(damaged.is_as_before());
    }
}

TEST(undo, rejects_another_or_a_changed_image) {
    damaged_image damaged(fat_type::fat16);
    memory_device log(log_bytes);
    power supply;
    ASSERT_TRUE(damaged.repair_with(log, supply, false));
    const auto refusal = [&](device& image, std::int64_t modified) {
        auto opened = undo_log::open(log, log.size_bytes());
        const auto fits = opened->check_image(image, modified);
        return fits ? std::string() : fits.error();
    };
    EXPECT_EQ(refusal(damaged.image, 77), "");
    EXPECT_EQ(refusal(damaged.image, 0), "");
    EXPECT_THAT(refusal(damaged.image, 78), HasSubstr("touched or written"));
    memory_device longer(damaged.before.size() + 1);
    EXPECT_THAT(refusal(longer, 77), HasSubstr("another image"));
    memory_device other(damaged.before.size());
    EXPECT_THAT(refusal(other, 77), HasSubstr("changed since"));
    // An entry of the FAT, and a byte of a range that the repair changed.
    for (const std::uint64_t offset : {damaged.shape.fat_offset + 150, damaged.shape.root_offset + 40}) {
        std::byte& byte = damaged.image.bytes()[volume_start + offset];
        byte ^= std::byte{1};
        EXPECT_THAT(refusal(damaged.image, 77), HasSubstr("changed since"));
        byte ^= std::byte{1};
    }
}

TEST(undo, log_with_any_wrong_byte_is_rejected_or_restores_the_image) {
    damaged_image damaged(fat_type::fat12);
    memory_device log(log_bytes);
    power supply;
    ASSERT_TRUE(damaged.repair_with(log, supply, false));
    const std::uint64_t end = undo_log::open(log, log.size_bytes())->binding().log_bytes;
    seeded_random random(3);
    for (int i = 0; i != 400; ++i) {
        const std::uint64_t at = i < 200 ? static_cast<std::uint64_t>(i) : random.below(end);
        log.bytes()[at] ^= std::byte{0x10};
        auto opened = undo_log::open(log, log.size_bytes());
        const bool is_unused = at >= sizeof(undo_header) and at < undo_records_offset;
        EXPECT_EQ(opened.has_value(), is_unused) << at;
        log.bytes()[at] ^= std::byte{0x10};
    }
    EXPECT_FALSE(undo_log::open(log, end - 1));
    EXPECT_FALSE(undo_log::open(log, 50));
}

TEST(undo, repair_stops_before_the_first_change_if_the_undo_file_cannot_be_written) {
    damaged_image damaged(fat_type::fat16);
    memory_device log(600);
    power supply;
    EXPECT_FALSE(damaged.repair_with(log, supply, false));
    EXPECT_TRUE(damaged.is_as_before());
}

}  // namespace
}  // namespace sluice::fat
