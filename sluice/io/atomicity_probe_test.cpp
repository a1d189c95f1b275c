#include "sluice/io/atomicity_probe.hpp"

#include "sluice/io/volume_test.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using atomicity_probe_on = on_each_volume;

constexpr atomicity_options brief{.time_per_size = 5ms, .write_bytes_max = 64U << 10};

TEST_P(atomicity_probe_on, every_size_is_tried_and_nothing_is_left_behind) {
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

TEST(atomicity_probe, the_largest_whole_write_ends_before_the_first_torn_or_unseen_one) {
    atomicity_series series;
    EXPECT_EQ(series.whole_bytes_max(), 0U);
    series.rows = {{.write_bytes = 1, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5},
                   {.write_bytes = 2, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5},
                   {.write_bytes = 4, .writes = 9, .reads = 9, .torn_reads = 1, .fresh_reads = 5},
                   {.write_bytes = 8, .writes = 9, .reads = 9, .torn_reads = 0, .fresh_reads = 5}};
    EXPECT_EQ(series.whole_bytes_max(), 2U);
    series.rows[1].fresh_reads = 0;
    EXPECT_EQ(series.whole_bytes_max(), 1U);
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
