#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/partition_device.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/volume_test.hpp"

// Effects of the device on the engine: it fails, is full, or is not writable; and discards of freed
// clusters.

namespace sluice::fat {
namespace {

// A device of which one call fails, or all calls from one on.
class failing_device final : public device {
public:
    explicit failing_device(device& below) noexcept : below_(below) {}

    void fail(std::uint64_t first, std::uint64_t count, int with) noexcept {
        calls_ = 0;
        first_ = first;
        count_ = count;
        error_ = with;
    }
    void heal() noexcept { count_ = 0; }
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return below_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        // A full disk is readable.
        if (error_ != ENOSPC and is_failing()) return failure({error_, "read"});
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        ++changes_;
        if (is_failing()) return failure({error_, "write"});
        return below_.write_at(offset, pieces);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        if (is_failing()) return failure({error_, "barrier"});
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        ++changes_;
        if (is_failing()) return failure({error_, "punch"});
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

private:
    bool is_failing() noexcept {
        const std::uint64_t call = calls_++;
        return call >= first_ and call - first_ < count_;
    }

    device& below_;
    std::uint64_t calls_ = 0;
    std::uint64_t changes_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t count_ = 0;
    int error_ = EIO;
};

struct volume_format {
    const char* name;
    std::size_t kibibytes;
    const char* options;
};

std::string text(std::size_t bytes, char what) {
    return std::string(bytes, what);
}

class failing : public testing::TestWithParam<volume_format> {
protected:
    failing() : fresh_(formatted(GetParam().kibibytes, GetParam().options)) {
        mounted_image made(fresh_);
        EXPECT_EQ(code(made.system->create("d", true, attributes::none)), 0);
        EXPECT_EQ(code(made.system->create("e", true, attributes::none)), 0);
        put(*made.system, "kept", text(3000, 'k'));
        put(*made.system, "d/moved with a long name", text(2000, 'm'));
        put(*made.system, "d/gone", text(9000, 'g'));
        made.system.reset();
        fresh_.assign(made.image.bytes().begin(), made.image.bytes().end());
    }

    // Performs operations, any of which may fail.
    static void act(file_system& fs) {
        run_list::hint hint;
        const std::string more = text(7000, 'n');
        if (auto file = fs.create("d/new file with a long name", false, attributes::none))
            (void)fs.write(**file, hint, std::as_bytes(std::span(more)), 0);
        if (auto file = fs.find("d/moved with a long name")) {
            (void)fs.write(**file, hint, std::as_bytes(std::span(more)), 2000);
            (void)fs.rename(**file, "e/moved here with a long name", file_system::if_taken::refuse);
        }
        for (int i = 0; i != 8; ++i)  // more than fit into a cluster
            (void)fs.create("e/directory of number " + std::to_string(i), true, attributes::none);
        if (auto file = fs.find("d/gone")) (void)fs.truncate(**file, 1000);
        (void)fs.commit();
        if (auto file = fs.find("d/gone")) (void)fs.remove(**file);
        if (auto file = fs.find("kept")) (void)fs.rename(**file, "Kept", file_system::if_taken::refuse);
        (void)fs.commit();
    }
    [[nodiscard]] std::unique_ptr<file_system> mounted(device& on) const {
        return file_system::mount(on, shape_, clock_, {.zone = time_zone::utc()}).value();
    }
    // Returns the number of calls that act() makes if none fails.
    [[nodiscard]] std::uint64_t calls_of_act() const {
        memory_device image(fresh_);
        failing_device below(image);
        const auto fs = mounted(below);
        below.fail(0, 0, EIO);
        act(*fs);
        return below.calls();
    }
    static void expect_kept(file_system& fs, const std::string& where) {
        EXPECT_EQ(content_of(fs, "kept"), text(3000, 'k')) << where;
        const std::string before = content_of(fs, "d/moved with a long name");
        const std::string after = content_of(fs, "e/moved here with a long name");
        const std::string& found = after == "(missing)" ? before : after;
        EXPECT_TRUE(found.starts_with(text(2000, 'm'))) << where << ": " << found.substr(0, 20);
    }
    static void expect_no_worse_than(memory_device& image, std::set<problem_kind> allowed,
                                     const std::string& where) {
        for (const problem& each : check(image).value().problems) {
            EXPECT_TRUE(each.weight() == severity::unusual or allowed.contains(each.kind))
                << where << ": " << each.path << ": " << each.message();
        }
    }

    std::vector<std::byte> fresh_;
    const simulated_clock clock_;
    memory_device for_shape_{fresh_};
    const geometry shape_ = read_geometry(for_shape_).value();
};

// Once the device works again, a commit writes all changes, and the content in memory is on the
// disk.
TEST_P(failing, a_call_of_the_device_leaves_a_volume_that_can_be_committed_completely) {
    const std::uint64_t calls = calls_of_act();
    const std::uint64_t stride = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 1 : 3;
    ASSERT_GT(calls, 30U);
    for (const int error : {EIO, ENOSPC}) {
        for (std::uint64_t call = error == EIO ? 0 : 1; call < calls; call += stride) {
            const std::string where = std::to_string(error) + " at call " + std::to_string(call);
            memory_device image(fresh_);
            failing_device below(image);
            auto fs = mounted(below);
            below.fail(call, 1, error);
            act(*fs);
            below.heal();
            ASSERT_EQ(code(fs->commit()), 0) << where;
            expect_kept(*fs, where);
            const std::string picture_before = picture(*fs);
            const std::uint32_t free = fs->free_clusters().value();
            ASSERT_EQ(code(fs->unmount()), 0) << where;
            fs.reset();
            // Clusters that were allocated for a failed operation are lost, or known to be taken or
            // free.
            const auto report = check(image).value();
            expect_no_worse_than(image, {problem_kind::lost_clusters, problem_kind::free_count_wrong}, where);
            EXPECT_GE(free, report.free_clusters) << where;
            const auto again = mounted(image);
            ASSERT_EQ(picture(*again), picture_before) << where;
            if (HasFailure()) return;
        }
    }
}

// As after a crash: the disk has the writes that reached it.
TEST_P(failing, a_device_that_stays_broken_leaves_a_state_that_a_crash_may_leave) {
    const std::uint64_t calls = calls_of_act();
    const std::uint64_t stride = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 1 : 3;
    for (std::uint64_t call = 0; call < calls; call += stride) {
        const std::string where = "from call " + std::to_string(call);
        memory_device image(fresh_);
        failing_device below(image);
        {
            const auto fs = mounted(below);
            below.fail(call, UINT64_MAX, EIO);
            act(*fs);
            EXPECT_EQ(code(fs->commit()), EIO) << where;
        }
        expect_no_worse_than(
            image,
            {problem_kind::dirty, problem_kind::lost_clusters, problem_kind::free_count_wrong,
             problem_kind::chain_too_long, problem_kind::fats_differ, problem_kind::orphan_long_name,
             problem_kind::cross_link},
            where);
        const auto again = mounted(image);
        expect_kept(*again, where);
        if (HasFailure()) return;
    }
}

TEST_P(failing, a_volume_that_is_read_only_is_read_and_never_written) {
    memory_device image(fresh_);
    failing_device below(image);
    const auto fs = file_system::mount(below, shape_, clock_, {.is_read_only = true}).value();
    const std::string before = picture(*fs);
    run_list::hint hint;
    auto file = fs->find("kept").value();
    const std::string more = text(10, 'x');
    EXPECT_EQ(code(fs->create("new", false, attributes::none)), EROFS);
    EXPECT_EQ(code(fs->create("new", true, attributes::none)), EROFS);
    EXPECT_EQ(code(fs->write(*file, hint, std::as_bytes(std::span(more)), 0)), EROFS);
    EXPECT_EQ(code(fs->truncate(*file, 1)), EROFS);
    EXPECT_EQ(code(fs->preallocate(*file, 100)), EROFS);
    EXPECT_EQ(code(fs->zero(*file, {.offset = 0, .length = 1})), EROFS);
    EXPECT_EQ(code(fs->change(*file, {.bits = attributes::hidden})), EROFS);
    EXPECT_EQ(code(fs->rename(*file, "other", file_system::if_taken::refuse)), EROFS);
    EXPECT_EQ(code(fs->remove(*file)), EROFS);
    EXPECT_EQ(code(fs->flush(*file)), 0) << "there are no changes to write";
    EXPECT_EQ(code(fs->commit()), 0);
    EXPECT_EQ(code(fs->unmount()), 0);
    EXPECT_EQ(picture(*fs), before);
    EXPECT_EQ(below.changes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(on, failing,
                         testing::Values(volume_format{"fat12", 400, "-F 12 -s 1"},
                                         volume_format{"fat16", 2200, "-F 16 -s 1"},
                                         volume_format{"fat32", 2200, "-F 32 -s 1"}),
                         [](const auto& each) { return std::string(each.param.name); });

// A directory with two clusters, whose entries are far apart in the table.
TEST(reading_directory, that_fails_in_the_middle_is_an_error_and_not_an_end) {
    const std::uint32_t far = 40'000;
    mounted_image made(formatted(40 << 10, "-F 32 -s 1"));
    ASSERT_EQ(code(made.system->create("d", true, attributes::none)), 0);
    for (int i = 0; i != 20; ++i)
        put(*made.system, "d/file" + std::to_string(i), {});
    const std::string whole = picture(*made.system);
    const std::uint32_t first = made.system->state_of(*made.system->find("d").value())->first_cluster;
    ASSERT_EQ(code(made.system->unmount()), 0);
    const geometry& shape = made.shape;
    const auto table = made.image.bytes().subspan(shape.fat_copy_offset(0), shape.fat_bytes);
    const std::uint32_t second = *read_entry(shape.type, table, first);
    ASSERT_TRUE(shape.is_cluster(second));
    std::ranges::copy(made.image.bytes().subspan(shape.cluster_offset(second), shape.cluster_bytes),
                      made.image.bytes().subspan(shape.cluster_offset(far)).begin());
    ASSERT_TRUE(write_entry(shape.type, {.bytes = table}, first, far));
    ASSERT_TRUE(write_entry(shape.type, {.bytes = table}, far, end_entry(shape.type)));

    for (const unsigned failures : {1U, 2U}) {
        failing_device below(made.image);
        const auto fs = file_system::mount(below, shape, made.clock, {.is_read_only = true}).value();
        const auto directory = fs->find("d").value();
        // The first call reads the first cluster, the others the table.
        below.fail(1, failures, EIO);
        EXPECT_EQ(code(fs->list(*directory, 0)), EIO);
        const auto state = fs->state_of(*directory);
        ASSERT_EQ(code(state), 0);
        EXPECT_FALSE(state->is_cut_off) << failures;
        EXPECT_EQ(picture(*fs), whole) << failures;
    }
}

// Its first cluster has no names left, and the chain that leads to the others is broken.
TEST(damaged_directory, is_neither_removed_nor_replaced_because_its_names_are_unknown) {
    mounted_image made(formatted(2200, "-F 16 -s 1"));
    ASSERT_EQ(code(made.system->create("d", true, attributes::none)), 0);
    ASSERT_EQ(code(made.system->create("other", true, attributes::none)), 0);
    const std::uint32_t first = made.system->state_of(*made.system->find("d").value())->first_cluster;
    ASSERT_EQ(code(made.system->unmount()), 0);
    const geometry& shape = made.shape;
    for (std::uint32_t copy = 0; copy != shape.fat_count; ++copy)
        ASSERT_TRUE(write_entry(
            shape.type, {.bytes = made.image.bytes().subspan(shape.fat_copy_offset(copy), shape.fat_bytes)},
            first, first));
    const auto fs = file_system::mount(made.image, shape, made.clock, {}).value();
    const auto directory = fs->find("d").value();
    EXPECT_TRUE(fs->state_of(*directory)->is_cut_off);
    EXPECT_EQ(code(fs->remove(*directory)), EIO);
    EXPECT_EQ(code(fs->rename(*fs->find("other").value(), "d", file_system::if_taken::replace)), EIO);
}

// --- discarding freed clusters

class discarding : public io::on_each_volume {
protected:
    static constexpr std::uint64_t partition_at = 1 << 20;
    static constexpr std::uint64_t file_bytes = 4 << 20;

    discarding() {
        const auto image = formatted(16 << 10, "-F 16 -s 8");
        directory.write("image", std::string(partition_at, 'p') +
                                     std::string(reinterpret_cast<const char*>(image.data()), image.size()));
        file_.emplace(
            file_device::over(io::file_handle::open({}, directory.path_of("image"), io::mode::write).value())
                .value());
        part_.emplace(partition_device::of(*file_, {.offset = partition_at, .length = image.size()}).value());
    }
    std::unique_ptr<file_system> mounted(bool discards) {
        return file_system::mount(*part_, read_geometry(*part_).value(), clock_, {.discards = discards})
            .value();
    }
    std::uint64_t allocated() const {
        const auto file = io::file_handle::open({}, directory.path_of("image")).value();
        // Delayed allocations are not counted yet.
        (void)file_->barrier(io::barrier_kind::wait_all);
        return io::status_of(file, io::stat_fields::allocated).value().allocated_bytes;
    }

    const simulated_clock clock_;
    mutable std::optional<file_device> file_;
    std::optional<partition_device> part_;
};
SLUICE_ON_EACH_VOLUME(discarding);

TEST_P(discarding, frees_blocks_on_the_host_once_a_removal_or_truncation_is_durable) {
    const auto fs = mounted(true);
    put(*fs, "stays", text(file_bytes, 's'));
    put(*fs, "goes", text(file_bytes, 'g'));
    put(*fs, "shrinks", text(file_bytes, 'h'));
    ASSERT_EQ(code(fs->commit()), 0);
    const std::uint64_t full = allocated();
    ASSERT_EQ(code(fs->remove(*fs->find("goes").value())), 0);
    ASSERT_EQ(code(fs->truncate(*fs->find("shrinks").value(), 5000)), 0);
    EXPECT_GT(allocated() + (1U << 20), full) << "still needed after a crash";
    ASSERT_EQ(code(fs->commit()), 0);
    EXPECT_LT(allocated() + 2 * file_bytes - (1U << 16), full);
    EXPECT_EQ(content_of(*fs, "stays"), text(file_bytes, 's'));
    EXPECT_EQ(content_of(*fs, "shrinks"), text(5000, 'h'));
    // The blocks can be used again.
    put(*fs, "again", text(2 * file_bytes, 'a'));
    EXPECT_EQ(content_of(*fs, "again"), text(2 * file_bytes, 'a'));
    ASSERT_EQ(code(fs->unmount()), 0);
    EXPECT_TRUE(check(*part_)->is_consistent());
}

TEST_P(discarding, is_off_if_the_mount_option_is_off) {
    const auto fs = mounted(false);
    put(*fs, "goes", text(file_bytes, 'g'));
    ASSERT_EQ(code(fs->commit()), 0);
    const std::uint64_t full = allocated();
    ASSERT_EQ(code(fs->remove(*fs->find("goes").value())), 0);
    ASSERT_EQ(code(fs->commit()), 0);
    EXPECT_GE(allocated(), full);
}

}  // namespace
}  // namespace sluice::fat
