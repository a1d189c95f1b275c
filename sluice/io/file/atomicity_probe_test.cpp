#include "sluice/io/file/atomicity_probe.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using atomicity_probe_on = on_each_volume;

constexpr atomicity_options brief{.time_per_size = 5ms, .write_bytes_max = 64U << 10};

TEST_P(atomicity_probe_on, every_size_is_tried_and_no_file_remains) {
    const auto report = probe_atomicity(directory.anchor(), brief);
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->series.size(), 2U);
    const auto& buffered = report->series[0];
    EXPECT_FALSE(buffered.direct);
    ASSERT_EQ(buffered.rows.size(), 17U);
    for (std::size_t i = 0; i < buffered.rows.size(); ++i) {
        EXPECT_EQ(buffered.rows[i].write_bytes, std::size_t{1} << i);
        EXPECT_LE(buffered.rows[i].torn_reads, buffered.rows[i].reads);
    }
    EXPECT_EQ(buffered.rows[0].torn_reads, 0U) << "a single byte cannot be torn";
    const auto& direct = report->series[1];
    EXPECT_TRUE(direct.direct);
    EXPECT_NE(direct.refused.has_value(), not direct.rows.empty());
    EXPECT_EQ(directory.entry_count(), 0U);
}

TEST(atomicity_probe, the_largest_atomic_write_is_below_the_first_torn_or_unseen_one) {
    atomicity_series series;
    EXPECT_EQ(series.whole_bytes_max(), 0U);
    series.rows = {{.write_bytes = 1, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5},
                   {.write_bytes = 2, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5},
                   {.write_bytes = 4, .writes = 9, .reads = 9, .torn_reads = 1, .fresh_reads = 5},
                   {.write_bytes = 8, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5}};
    EXPECT_EQ(series.whole_bytes_max(), 2U);
    EXPECT_EQ(series.torn_bytes_min(), 4U);
    series.rows[0].short_writes = 1;
    EXPECT_EQ(series.whole_bytes_max(), 0U) << "in more than one call";
    series.rows[0].short_writes = 0;
    series.rows[1].fresh_reads = 0;
    EXPECT_EQ(series.whole_bytes_max(), 1U);
    EXPECT_EQ(atomicity_series{}.torn_bytes_min(), 0U);
}

// A file in memory whose calls are atomic, but short: each returns the first half. So
// no read can be torn.
class half_calls final : public atomicity_calls {
public:
    std::ptrdiff_t read(int, std::span<std::byte> into, extent_type offset) noexcept override {
        const std::lock_guard holding(mutex_);
        const std::size_t half = (into.size() + 1) / 2;
        std::memcpy(into.data(), content_.data() + offset, half);
        return static_cast<std::ptrdiff_t>(half);
    }
    std::ptrdiff_t write(int, std::span<const std::byte> from, extent_type offset) noexcept override {
        const std::lock_guard holding(mutex_);
        std::memcpy(content_.data() + offset, from.data(), from.size());
        return static_cast<std::ptrdiff_t>(from.size());
    }

private:
    std::mutex mutex_;
    std::vector<std::byte> content_ = std::vector<std::byte>(1U << 17);
};

TEST(atomicity_probe, does_not_combine_two_short_reads_into_a_torn_one) {
    half_calls calls;
    const auto directory = path_handle::temporary_files().value();
    const auto report = probe_atomicity(
        directory,
        {.time_per_size = 5ms, .write_bytes_max = 64U << 10, .io = atomicity_io::buffered, .calls = &calls});
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->series.size(), 1U);
    for (const atomicity_row& row : report->series[0].rows) {
        EXPECT_EQ(row.torn_reads, 0U) << row.write_bytes;
        EXPECT_EQ(row.short_reads, row.write_bytes == 1 ? 0 : row.reads);
        EXPECT_EQ(row.short_writes, 0U);
    }
    EXPECT_LE(report->series[0].whole_bytes_max(), 1U) << "what no call returns was not seen whole";
}

// Interrupts the threads that write until others have read ten times.
class late_writers final : public atomicity_calls {
public:
    std::ptrdiff_t read(int, std::span<std::byte> into, extent_type offset) noexcept override {
        const std::lock_guard holding(mutex_);
        std::memcpy(into.data(), content_.data() + offset, into.size());
        count(into.size());
        ++reads_;
        return static_cast<std::ptrdiff_t>(into.size());
    }
    std::ptrdiff_t write(int, std::span<const std::byte> from, extent_type offset) noexcept override {
        const std::lock_guard holding(mutex_);
        count(from.size());
        if (std::this_thread::get_id() != caller_ and reads_ < 10) {
            errno = EINTR;
            return -1;
        }
        std::memcpy(content_.data() + offset, from.data(), from.size());
        return static_cast<std::ptrdiff_t>(from.size());
    }

private:
    void count(std::size_t bytes) noexcept {
        if (bytes != bytes_) reads_ = 0;
        bytes_ = bytes;
    }

    const std::thread::id caller_ = std::this_thread::get_id();
    std::mutex mutex_;
    std::size_t bytes_ = 0;
    int reads_ = 0;
    std::vector<std::byte> content_ = std::vector<std::byte>(1U << 17);
};

TEST(atomicity_probe, does_not_count_bytes_of_writes_of_another_size_as_a_torn_read) {
    late_writers calls;
    const auto directory = path_handle::temporary_files().value();
    const auto report = probe_atomicity(
        directory,
        {.time_per_size = 5ms, .write_bytes_max = 4096, .io = atomicity_io::buffered, .calls = &calls});
    ASSERT_TRUE(report) << report.error().message();
    for (const atomicity_row& row : report->series[0].rows)
        EXPECT_EQ(row.torn_reads, 0U) << row.write_bytes;
}

// Each read of four bytes or more returns bytes of two writes.
class torn_calls final : public atomicity_calls {
public:
    std::ptrdiff_t read(int, std::span<std::byte> into, extent_type) noexcept override {
        std::fill(into.begin(), into.end(), std::byte{1});
        if (into.size() >= 4) into.back() = std::byte{2};
        return static_cast<std::ptrdiff_t>(into.size());
    }
    std::ptrdiff_t write(int, std::span<const std::byte> from, extent_type) noexcept override {
        return static_cast<std::ptrdiff_t>(from.size());
    }
};

TEST(atomicity_probe, counts_bytes_of_two_writes_in_one_call_as_torn) {
    torn_calls calls;
    const auto directory = path_handle::temporary_files().value();
    const auto report = probe_atomicity(directory, {.time_per_size = 5ms,
                                                    .write_bytes_max = 8,
                                                    .offset_bytes = 4095,
                                                    .io = atomicity_io::buffered,
                                                    .calls = &calls});
    ASSERT_TRUE(report) << report.error().message();
    for (const atomicity_row& row : report->series[0].rows)
        EXPECT_EQ(row.torn_reads, row.write_bytes >= 4 ? row.reads : 0) << row.write_bytes;
}

TEST(atomicity_probe, tries_unaligned_offsets_and_only_the_requested_io) {
    const auto directory = path_handle::temporary_files().value();
    const auto report = probe_atomicity(directory, {.time_per_size = 1ms,
                                                    .write_bytes_min = 512,
                                                    .write_bytes_max = 4096,
                                                    .offset_bytes = 1,
                                                    .io = atomicity_io::direct});
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->series.size(), 1U);
    EXPECT_TRUE(report->series[0].direct);
    EXPECT_NE(report->series[0].refused.has_value(), not report->series[0].rows.empty());
}

TEST(atomicity_probe, a_directory_without_files_and_senseless_options_are_errors) {
    EXPECT_FALSE(probe_atomicity(path_handle::open("/proc").value(), brief));
    const auto directory = path_handle::temporary_files().value();
    EXPECT_EQ(probe_atomicity(directory, {.writers = 0}).error(), std::errc::invalid_argument);
    EXPECT_EQ(probe_atomicity(directory, {.write_bytes_min = 9, .write_bytes_max = 8}).error(),
              std::errc::invalid_argument);
}

SLUICE_ON_EACH_VOLUME(atomicity_probe_on);

}  // namespace
}  // namespace sluice::io
