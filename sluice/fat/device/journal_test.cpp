#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/journal_device.hpp"

// The guarantee of a journal: after a crash at any moment, in which any sectors that no barrier has
// made durable may be missing from the image or the journal, the volume is in the state after a
// batch and needs no repair.

namespace sluice::fat {
namespace {

constexpr std::array<std::byte, 16> some_id{std::byte{9}};
constexpr std::size_t log_bytes = 512U << 10;

// One write to one of two devices; a barrier if there are no bytes.
struct traced_event {
    std::size_t which = 0;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};
};

class traced_device final : public device {
public:
    traced_device(device& below, std::size_t which, std::vector<traced_event>& trace)
        : below_(below), which_(which), trace_(trace) {}

    bool is_failing = false;  // writes and barriers fail

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type into) noexcept override {
        return below_.read_at(offset, into);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset, io::const_buffers_type from) noexcept override {
        if (is_failing) return failure({ENOSPC, "write"});
        traced_event event{.which = which_, .offset = offset};
        for (const io::const_buffer& each : from)
            event.bytes.insert(event.bytes.end(), each.bytes().begin(), each.bytes().end());
        if (not event.bytes.empty()) trace_.push_back(std::move(event));
        return below_.write_at(offset, from);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        if (is_failing) return failure({ENOSPC, "barrier"});
        trace_.push_back({.which = which_});
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        if (is_failing) return failure({ENOSPC, "hole"});
        trace_.push_back(
            {which_, range.offset, std::vector<std::byte>(static_cast<std::size_t>(range.length))});
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

private:
    device& below_;
    std::size_t which_;
    std::vector<traced_event>& trace_;
};

// The possible contents of the disks of image and journal: the durable writes, and the writes that
// may be missing.
struct crashing_disks {
    std::array<std::vector<std::byte>, 2> durable;
    std::array<std::vector<const traced_event*>, 2> pending;

    void add(const traced_event& event) {
        auto& waiting = pending[event.which];
        if (not event.bytes.empty()) {
            waiting.push_back(&event);
            return;
        }
        for (const traced_event* const each : waiting)
            std::ranges::copy(each->bytes,
                              durable[event.which].begin() + static_cast<std::ptrdiff_t>(each->offset));
        waiting.clear();
    }
    // `percent` of the sectors that no barrier covers reach the disk.
    [[nodiscard]] std::array<std::vector<std::byte>, 2> crash(seeded_random& random, unsigned percent) const {
        auto torn = durable;
        for (std::size_t which = 0; which < torn.size(); ++which)
            for (const traced_event* const each : pending[which])
                for (std::size_t done = 0; done < each->bytes.size();) {
                    const std::size_t count =
                        std::min<std::size_t>(512 - (each->offset + done) % 512, each->bytes.size() - done);
                    if (random.below(100) < percent)
                        std::copy_n(each->bytes.begin() + static_cast<std::ptrdiff_t>(done), count,
                                    torn[which].begin() + static_cast<std::ptrdiff_t>(each->offset + done));
                    done += count;
                }
        return torn;
    }
};

std::vector<std::byte> copy_of(memory_device& device) {
    return {device.bytes().begin(), device.bytes().end()};
}

journal_device::place place_in(const geometry& shape, std::uint64_t volume_bytes) {
    return {.in_image = {.offset = 0, .length = volume_bytes}, .dirty_mark = shape.dirty_byte_offset()};
}

std::string text(std::size_t bytes, char what) {
    return std::string(bytes, what);
}

inode_handle at(file_system& fs, std::string_view path) {
    auto found = fs.find(path);
    EXPECT_EQ(code(found), 0) << path;
    return std::move(*found);
}

void overwrite(file_system& fs, std::string_view path, const std::string& what, std::uint64_t offset) {
    run_list::hint hint;
    EXPECT_EQ(code(fs.write(*at(fs, path), hint, std::as_bytes(std::span(what)), offset)), 0);
}

// Each function is one batch: none needs a commit in its middle, as the growth of a recently
// truncated file does.
const std::vector<std::function<void(file_system&)>>& batches() {
    using enum file_system::if_taken;
    static const std::vector<std::function<void(file_system&)>> all{
        [](file_system& fs) {
            EXPECT_EQ(code(fs.create("d", true, attributes::none)), 0);
            put(fs, "d/A name that is long enough for slots.text", text(5000, 'a'));
            put(fs, "kept", text(3000, 'k'));
        },
        [](file_system& fs) {  // in place, in two files
            overwrite(fs, "kept", text(2000, 'K'), 500);
            overwrite(fs, "d/A name that is long enough for slots.text", text(3000, 'A'), 1);
        },
        [](file_system& fs) {
            put(fs, "big", text(60'000, 'b'));
            EXPECT_EQ(code(fs.rename(*at(fs, "kept"), "d/kept under another name", refuse)), 0);
        },
        [](file_system& fs) {
            EXPECT_EQ(code(fs.truncate(*at(fs, "big"), 700)), 0);
            put(fs, "other", text(30'000, 'o'));
        },
        [](file_system& fs) { overwrite(fs, "big", text(4000, 'B'), 700); },
        [](file_system& fs) {
            EXPECT_EQ(code(fs.rename(*at(fs, "other"), "big", replace)), 0);
            EXPECT_EQ(code(fs.remove(*at(fs, "d/kept under another name"))), 0);
        },
        [](file_system& fs) {
            for (int i = 0; i < 20; ++i)
                put(fs, "d/" + std::to_string(i) + text(60, 'n'), text(900, static_cast<char>('a' + i)));
            EXPECT_EQ(code(fs.truncate(*at(fs, "big"), 40'000)), 0);
            EXPECT_EQ(code(fs.flush(*at(fs, "big"))), 0);
        },
        [](file_system& fs) {
            put(fs, "last", text(50'000, 'l'));
            EXPECT_EQ(code(fs.rename(*at(fs, "d"), "e", refuse)), 0);
        },
    };
    return all;
}

struct recovered {
    std::string seen;
    std::vector<std::byte> image;
    std::vector<traced_event> trace;
};

// Recovers the journal, mounts and unmounts; records the content of the volume.
void recover(std::array<std::vector<std::byte>, 2> disks, const std::string& where, recovered& into) {
    memory_device image(std::move(disks[0]));
    memory_device log(std::move(disks[1]));
    traced_device traced_image(image, 0, into.trace);
    traced_device traced_log(log, 1, into.trace);
    const geometry shape = read_geometry(image).value();
    const auto opened =
        journal_device::open(traced_image, traced_log, place_in(shape, image.size_bytes()), false);
    ASSERT_TRUE(opened) << where << ": " << opened.error();
    ASSERT_EQ(code((*opened)->recover()), 0) << where;
    for (const problem& each : check(image).value().problems) {
        const bool is_mark = each.kind == problem_kind::dirty or each.kind == problem_kind::free_count_wrong;
        ASSERT_TRUE(is_mark) << where << ": " << each.path << ": " << each.message();
    }
    const simulated_clock clock;
    auto fs =
        file_system::mount(traced_image, shape, clock,
                           {.zone = time_zone::utc(), .is_known_consistent = (*opened)->binding().was_clean})
            .value();
    into.seen = picture(*fs);
    ASSERT_EQ(code(fs->unmount()), 0);
    fs.reset();
    const auto report = check(image).value();
    ASSERT_TRUE(report.problems.empty()) << where << ": " << report.problems[0].message();
    into.image = copy_of(image);
}

class journal : public testing::TestWithParam<const char*> {
protected:
    void run_all() {
        memory_device image(formatted(2200, GetParam()));
        memory_device log(log_bytes);
        disks.durable[0] = copy_of(image);
        const geometry shape = read_geometry(image).value();
        const auto where = place_in(shape, image.size_bytes());
        ASSERT_EQ(code(journal_device::format(image, log, where, true, some_id)), 0);
        disks.durable[1] = copy_of(log);
        traced_device traced_image(image, 0, trace);
        traced_device traced_log(log, 1, trace);
        auto opened = journal_device::open(traced_image, traced_log, where, false).value();
        auto fs = file_system::mount(*opened, shape, clock, {.zone = time_zone::utc()}).value();
        states.push_back(picture(*fs));
        ends.push_back(0);
        for (const auto& act : batches()) {
            const std::uint32_t before = opened->split_batches();
            act(*fs);
            ASSERT_EQ(code(fs->commit()), 0);
            ASSERT_EQ(opened->split_batches(), before);
            states.push_back(picture(*fs));
            ends.push_back(trace.size());
        }
        EXPECT_GT(opened->binding().generation, 1U) << "nothing was copied in between";
        ASSERT_EQ(code(fs->unmount()), 0);
        fs.reset();
        ASSERT_EQ(code(opened->recover()), 0);
        EXPECT_TRUE(check(image).value().problems.empty());
    }
    void judge(std::size_t moment, unsigned percent) {
        const std::string where = "after " + std::to_string(moment) + " of " + std::to_string(trace.size()) +
                                  ", " + std::to_string(percent) + " % of the rest";
        recovered first;
        recover(disks.crash(random, percent), where, first);
        if (HasFatalFailure()) return;
        std::size_t done = 0;
        while (done + 1 < ends.size() and ends[done + 1] <= moment)
            ++done;
        const bool is_before = first.seen == states[done];
        const bool is_after = done + 1 < states.size() and first.seen == states[done + 1];
        ASSERT_TRUE(is_before or is_after) << where << ": neither batch " << done << " nor the next:\n"
                                           << first.seen;
        was_seen_early |= is_before and moment > ends[done];
        was_seen_late |= is_after;
    }

    const simulated_clock clock;
    std::vector<traced_event> trace;
    crashing_disks disks;
    std::vector<std::string> states;
    std::vector<std::size_t> ends;  // length of the trace when each state was durable
    seeded_random random{5};
    bool was_seen_early = false;
    bool was_seen_late = false;
};

TEST_P(journal, makes_every_batch_atomic_for_a_crash_at_any_moment) {
    run_all();
    if (HasFatalFailure()) return;
    const std::size_t stride = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 1 : 1 + trace.size() / 60;
    for (std::size_t i = 0; i <= trace.size(); ++i) {
        const bool is_edge = i == trace.size() or trace[i].bytes.empty();
        if (is_edge or i % stride == 0) {
            judge(i, 100);
            if (not HasFatalFailure() and is_edge) judge(i, 50);
            if (HasFatalFailure()) return;
        }
        if (i != trace.size()) disks.add(trace[i]);
    }
    // Otherwise the test would not have checked anything.
    EXPECT_TRUE(was_seen_early);
    EXPECT_TRUE(was_seen_late);
}

TEST_P(journal, is_recovered_again_if_the_recovery_was_interrupted) {
    run_all();
    if (HasFatalFailure()) return;
    for (std::size_t batch = 1; batch < ends.size(); ++batch) {
        crashing_disks crashed{.durable = disks.durable, .pending = {}};
        for (std::size_t i = 0; i < ends[batch]; ++i)
            crashed.add(trace[i]);
        const auto torn = crashed.crash(random, 50);
        recovered whole;
        recover(torn, "batch " + std::to_string(batch), whole);
        if (HasFatalFailure()) return;
        ASSERT_EQ(whole.seen, states[batch]);
        EXPECT_TRUE(fsck(whole.image).is_clean) << fsck(whole.image).said;
        crashing_disks again{.durable = torn, .pending = {}};
        const std::size_t cut = random.below(whole.trace.size() + 1);
        for (std::size_t i = 0; i < cut; ++i)
            again.add(whole.trace[i]);
        recovered second;
        recover(again.crash(random, 50), "cut at " + std::to_string(cut), second);
        if (HasFatalFailure()) return;
        ASSERT_EQ(second.seen, states[batch]) << "cut at " << cut << " of " << whole.trace.size();
    }
}

INSTANTIATE_TEST_SUITE_P(of, journal, testing::Values("-F 16 -s 1", "-F 32 -s 1"), [](const auto& each) {
    return std::string(each.param).substr(3, 2) == "16" ? "fat16" : "fat32";
});

// A volume with a journal, in memory.
struct journaled {
    explicit journaled(std::size_t journal_bytes = log_bytes)
        : image(formatted(2200, "-F 16 -s 1")), log(journal_bytes), shape(read_geometry(image).value()) {
        EXPECT_EQ(code(journal_device::format(image, log, where(), true, some_id)), 0);
        opened = journal_device::open(traced_image, traced_log, where(), false).value();
        fs = file_system::mount(*opened, shape, clock, {.zone = time_zone::utc()}).value();
    }
    [[nodiscard]] journal_device::place where() { return place_in(shape, image.size_bytes()); }
    [[nodiscard]] std::string refusal() {
        const auto again = journal_device::open(image, log, where(), true);
        return again ? "" : again.error();
    }

    memory_device image;
    memory_device log;
    geometry shape;
    simulated_clock clock;
    std::vector<traced_event> trace;
    traced_device traced_image{image, 0, trace};
    traced_device traced_log{log, 1, trace};
    std::unique_ptr<journal_device> opened;
    std::unique_ptr<file_system> fs;
};

TEST(journal_of_a_volume, is_used_for_reads_before_it_is_recovered) {
    journaled made;
    put(*made.fs, "file", text(5000, 'f'));
    ASSERT_EQ(code(made.fs->commit()), 0);
    put(*made.fs, "never ended", text(5000, 'n'));
    const auto view = journal_device::open(made.image, made.log, made.where(), true).value();
    EXPECT_EQ(view->pending_batches(), 1U);
    const auto fs = file_system::mount(*view, made.shape, made.clock, {.is_read_only = true}).value();
    EXPECT_EQ(content_of(*fs, "file"), text(5000, 'f'));
    EXPECT_EQ(content_of(*fs, "never ended"), "(missing)");
}

TEST(journal_of_a_volume, needs_one_barrier_for_a_batch_and_none_for_an_empty_one) {
    journaled made;
    put(*made.fs, "first", "1");
    ASSERT_EQ(code(made.fs->commit()), 0);
    made.trace.clear();
    put(*made.fs, "second", text(3000, '2'));
    ASSERT_EQ(code(made.fs->commit()), 0);
    const auto barriers = [&] {
        return std::ranges::count_if(made.trace, [](const auto& each) { return each.bytes.empty(); });
    };
    EXPECT_EQ(barriers(), 1);
    ASSERT_EQ(code(made.fs->commit()), 0);
    EXPECT_EQ(barriers(), 1);
}

TEST(journal_of_a_volume, ends_a_batch_that_does_not_fit_early_and_continues) {
    journaled made(journal_bytes_min);
    put(*made.fs, "larger than the journal", text(300'000, 'x'));
    ASSERT_EQ(code(made.fs->commit()), 0);
    EXPECT_GT(made.opened->split_batches(), 0U);
    put(*made.fs, "small", "y");
    ASSERT_EQ(code(made.fs->unmount()), 0);
    made.fs.reset();
    ASSERT_EQ(code(made.opened->recover()), 0);
    EXPECT_TRUE(fsck(copy_of(made.image)).is_clean);
    const auto fs = file_system::mount(made.image, made.shape, made.clock).value();
    EXPECT_EQ(content_of(*fs, "larger than the journal"), text(300'000, 'x'));
    EXPECT_EQ(content_of(*fs, "small"), "y");
}

TEST(journal_of_a_volume, on_a_full_disk_reports_the_error_and_loses_no_ended_batch) {
    journaled made;
    put(*made.fs, "file", text(5000, 'f'));
    ASSERT_EQ(code(made.fs->commit()), 0);
    made.traced_log.is_failing = true;
    {
        run_list::hint hint;
        const std::string more = text(99, 'g');
        const auto file = at(*made.fs, "file");
        EXPECT_EQ(code(made.fs->write(*file, hint, std::as_bytes(std::span(more)), 0)), ENOSPC);
    }
    made.traced_log.is_failing = false;
    made.traced_image.is_failing = true;  // the recovery fails, but the journal is complete
    EXPECT_EQ(code(made.opened->recover()), ENOSPC);
    EXPECT_EQ(content_of(*made.fs, "file"), text(5000, 'f'));
    overwrite(*made.fs, "file", text(99, 'h'), 0);
    ASSERT_EQ(code(made.fs->commit()), 0);
    made.traced_image.is_failing = false;
    ASSERT_EQ(code(made.opened->recover()), 0);
    ASSERT_EQ(code(made.fs->unmount()), 0);
    made.fs.reset();
    ASSERT_EQ(code(made.opened->recover()), 0);
    const auto fs = file_system::mount(made.image, made.shape, made.clock).value();
    EXPECT_EQ(content_of(*fs, "file"), text(99, 'h') + text(4901, 'f'));
}

// Returns the number of runs of a file in an image that no other code uses.
std::uint64_t runs_in_image(std::vector<std::byte> bytes, std::string_view path) {
    memory_device image(std::move(bytes));
    const simulated_clock clock;
    const auto fs =
        file_system::mount(image, read_geometry(image).value(), clock, {.is_read_only = true}).value();
    std::uint64_t runs = 0;
    const auto file = at(*fs, path);
    EXPECT_EQ(code(fs->for_each_extent(*file, {.offset = 0, .length = UINT32_MAX},
                                       [&](const auto&) {
                                           ++runs;
                                           return true;
                                       })),
              0);
    return runs;
}

// The parameter is the size of the journal, in bytes. In the smaller one, the data of the file does
// not fit.
class defragmenting : public testing::TestWithParam<std::size_t> {
protected:
    static constexpr std::uint64_t clusters = 600;
    static void make_pieces(file_system& fs) {
        put(fs, "in pieces", "");
        put(fs, "between", "");
        for (std::uint64_t i = 0; i < clusters; ++i) {  // each takes the cluster after the other's
            overwrite(fs, "in pieces", text(512, static_cast<char>('a' + i % 26)), i * 512);
            overwrite(fs, "between", "b", i * 512);
        }
        EXPECT_EQ(code(fs.commit()), 0);
    }
};

TEST_P(defragmenting,
       a_file_with_a_journal_survives_a_power_failure_at_any_moment_in_the_old_or_the_new_runs) {
    journaled made(GetParam());
    make_pieces(*made.fs);
    ASSERT_EQ(code(made.opened->recover()), 0);
    const std::string before = picture(*made.fs);
    crashing_disks disks{.durable = {copy_of(made.image), copy_of(made.log)}, .pending = {}};
    made.trace.clear();
    const auto counts = made.fs->defragment(*at(*made.fs, "in pieces"));
    ASSERT_EQ(code(counts), 0);
    EXPECT_EQ(counts->before, clusters);
    EXPECT_EQ(counts->after, 1U);
    seeded_random random(11);
    std::set<std::uint64_t> runs_seen;
    const std::size_t stride = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 1 : 1 + made.trace.size() / 60;
    for (std::size_t i = 0; i <= made.trace.size(); ++i) {
        const bool is_edge = i == made.trace.size() or made.trace[i].bytes.empty();
        if (is_edge or i % stride == 0) {
            for (const unsigned percent : {100U, 50U}) {
                recovered after;
                recover(disks.crash(random, percent), "after " + std::to_string(i), after);
                if (HasFatalFailure()) return;
                ASSERT_EQ(after.seen, before) << "after " << i;
                runs_seen.insert(runs_in_image(after.image, "in pieces"));
            }
        }
        if (i != made.trace.size()) disks.add(made.trace[i]);
    }
    EXPECT_EQ(runs_seen, (std::set<std::uint64_t>{1, clusters}));
}

INSTANTIATE_TEST_SUITE_P(of, defragmenting, testing::Values(journal_bytes_min, log_bytes * 4),
                         [](const auto& each) {
                             return each.param == journal_bytes_min ? "small" : "large";
                         });

TEST(journal_of_a_volume, is_rejected_if_the_volume_differs_or_was_changed_by_another_program) {
    journaled made;
    put(*made.fs, "file", text(5000, 'f'));
    ASSERT_EQ(code(made.fs->commit()), 0);
    EXPECT_EQ(made.refusal(), "");
    const std::uint64_t mark = made.shape.dirty_byte_offset();
    made.image.bytes()[mark] &= ~std::byte{1};
    EXPECT_TRUE(made.refusal().contains("another program")) << made.refusal();
    made.image.bytes()[mark] |= std::byte{1};
    made.image.bytes()[mark + 3] ^= std::byte{1};  // a byte of the serial number
    EXPECT_EQ(made.refusal(), "belongs to another volume");
    made.image.bytes()[mark + 3] ^= std::byte{1};
    made.log.bytes()[32] ^= std::byte{1};
    EXPECT_EQ(made.refusal(), "damaged: its header has a wrong checksum");
    made.log.bytes()[0] = std::byte{};
    EXPECT_EQ(made.refusal(), "not a journal");
}

}  // namespace
}  // namespace sluice::fat
