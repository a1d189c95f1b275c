#include "sluice/cli/status/text_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "sluice/cli/status/time_text.hpp"

namespace sluice::cli {
namespace {

TEST(text_table, columns_are_aligned_by_characters_and_lines_do_not_end_in_spaces) {
    text_table table({{"NAME"}, {"SIZE", column_kind::number}, {"NOTE"}});
    table.add({"Grüße", "7", ""});
    table.add({"x", "12345", "y"});
    EXPECT_EQ(table.text(),
              "NAME    SIZE  NOTE\n"
              "Grüße      7\n"
              "x      12345  y\n");
}

TEST(text_table, without_rows_the_text_is_empty) {
    EXPECT_EQ(text_table({{"NAME"}}).text(), "");
}

TEST(text_table, a_stretched_column_is_cut_at_its_beginning_so_that_lines_fit) {
    text_table table({{"A"}, {"PATH", column_kind::stretched}});
    table.add({"0123456789", std::string(100, 'x') + "end"});
    const std::string text = table.text();
    const std::string line = text.substr(text.find('\n') + 1);
    EXPECT_EQ(line, "0123456789  …" + std::string(64, 'x') + "end\n");
}

TEST(text_table, control_characters_are_not_printed) {
    text_table table({{"A"}});
    table.add({"a\x1b[2J\nb"});
    EXPECT_EQ(table.text(), "A\na?[2J?b\n");
}

TEST(bytes_text, numbers_have_three_digits_and_a_unit) {
    EXPECT_EQ(bytes_text(0), "0 B");
    EXPECT_EQ(bytes_text(999), "999 B");
    EXPECT_EQ(bytes_text(1000), "1.0 kB");
    EXPECT_EQ(bytes_text(999'960), "1.0 MB");
    EXPECT_EQ(bytes_text(123'456'789), "123 MB");
    EXPECT_EQ(bytes_text(1.8e19), "18.0 EB");
}

TEST(time_text, formats_times_of_files_and_logs_and_rejects_years_out_of_range) {
    EXPECT_EQ(utc_text(iso_seconds, 0), "1970-01-01T00:00:00");
    // Where FILETIME begins.
    EXPECT_EQ(utc_text("%Y-%m-%d %H:%M", -11'644'473'600), "1601-01-01 00:00");
    EXPECT_EQ(utc_text(iso_seconds, INT64_MAX), "?");
    EXPECT_EQ(local_time_text(iso_seconds, INT64_MIN), "?");
}

}  // namespace
}  // namespace sluice::cli
