#include "sluice/vfs/host/host_metadata.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;

constexpr time_point noon{std::chrono::sys_days{std::chrono::year(2026) / 11 / 27} + 12h};
constexpr time_point far{std::chrono::sys_days{std::chrono::year(9999) / 12 / 31}};
constexpr stored_times all_times{
    .modified = noon, .accessed = noon - 1h, .changed = noon + 1h, .stored = noon + 2h};

std::optional<stored_metadata> round_trip(const stored_metadata& what) {
    return decode_stored_metadata(encoded_metadata(what).bytes());
}

io::file_status status_with(time_point modified, time_point changed) {
    return {.modified = system_time_of(modified), .changed = system_time_of(changed)};
}

TEST(stored_metadata, are_decoded_as_they_were_encoded) {
    for (const stored_metadata& each :
         {stored_metadata{}, stored_metadata{.dos = dos_attributes::hidden, .is_sparse = true, .born = noon},
          stored_metadata{.born = far}, stored_metadata{.times = all_times},
          stored_metadata{.born = far, .times = stored_times{.modified = far}},
          stored_metadata{.times = stored_times{.modified = far, .modified_limit = noon}},
          stored_metadata{.times = stored_times{.modified = noon, .accessed = far, .accessed_limit = noon}}})
        EXPECT_EQ(round_trip(each), each);
}

TEST(stored_metadata, without_parts_have_the_size_of_the_first_version) {
    EXPECT_EQ(encoded_metadata({.dos = dos_attributes::system, .born = noon}).bytes().size(),
              stored_metadata_bytes_min);
    stored_times outside_range = all_times;
    outside_range.modified_limit = noon;
    const encoded_metadata longest({.born = far, .times = outside_range});
    EXPECT_EQ(longest.bytes().size(), stored_metadata_bytes_max);
}

TEST(stored_metadata, lose_only_the_parts_that_are_cut) {
    const encoded_metadata whole({.dos = dos_attributes::hidden, .born = far, .times = all_times});
    for (std::size_t size = 0; size != whole.bytes().size(); ++size) {
        const auto cut = decode_stored_metadata(*whole.bytes().first(size));
        ASSERT_EQ(cut.has_value(), size >= stored_metadata_bytes_min) << size;
        if (not cut) continue;
        EXPECT_EQ(cut->dos, dos_attributes::hidden) << size;
        EXPECT_EQ(cut->times, std::nullopt) << size;
    }
}

TEST(stored_times, are_ignored_if_they_were_stored_at_no_time_of_the_clock) {
    for (const time_point stored :
         {time_point::min() + time_point::duration(1), time_point::max(), time_point::max() - 1ms, far}) {
        const stored_metadata hostile{
            .dos = dos_attributes::hidden,
            .times = stored_times{.modified = noon, .changed = noon, .stored = stored}};
        const auto read = round_trip(hostile);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->dos, dos_attributes::hidden);
        EXPECT_EQ(times_that_hold(read, status_with(noon, noon)), std::nullopt);
        EXPECT_EQ(metadata_of(status_with(noon, noon), read, "f", dot_names::plain).changed, noon);
    }
}

TEST(stored_times, hold_until_the_file_is_modified) {
    const stored_metadata stored{.times = all_times};
    EXPECT_EQ(times_that_hold(stored, status_with(noon, noon + 2h)), all_times);
    EXPECT_EQ(times_that_hold(stored, status_with(noon + 1s, noon + 2h)), std::nullopt);
    EXPECT_EQ(times_that_hold(stored_metadata{}, status_with(noon, noon)), std::nullopt);
    EXPECT_EQ(times_that_hold(std::nullopt, status_with(noon, noon)), std::nullopt);
}

TEST(stored_times, lose_the_change_time_with_any_change) {
    const stored_metadata stored{.times = all_times};
    const auto held = times_that_hold(stored, status_with(noon, noon + 2h + 1s));
    ASSERT_TRUE(held);
    EXPECT_EQ(held->changed, std::nullopt);
    EXPECT_EQ(held->accessed, all_times.accessed);
}

TEST(stored_times, after_2262_hold_for_the_last_time_that_the_host_reports) {
    const stored_metadata stored{.times = stored_times{.modified = far, .accessed = far}};
    const io::file_status status = status_with(far, noon);
    EXPECT_EQ(metadata_of(status, stored, "f", dot_names::plain).modified, far);
    EXPECT_EQ(times_that_hold(stored, status_with(noon, noon)), std::nullopt);
}

TEST(stored_times, outside_the_range_of_the_host_hold_for_the_limit_that_it_reports) {
    const stored_metadata stored{
        .times = stored_times{
            .modified = far, .accessed = far + 1h, .modified_limit = noon, .accessed_limit = noon}};
    io::file_status status = status_with(noon, noon);
    status.accessed = system_time_of(noon);
    EXPECT_EQ(metadata_of(status, stored, "f", dot_names::plain).modified, far);
    EXPECT_EQ(metadata_of(status, stored, "f", dot_names::plain).accessed, far + 1h);
    EXPECT_EQ(times_that_hold(stored, status_with(far, noon)), std::nullopt);
}

TEST(metadata, have_a_modification_as_an_access_unless_the_access_was_set) {
    io::file_status status = status_with(noon, noon);
    status.accessed = system_time_of(noon - 1h);
    EXPECT_EQ(metadata_of(status, std::nullopt, "f", dot_names::plain).accessed, noon);
    const stored_metadata set{.times = stored_times{.modified = noon, .accessed = noon - 1h}};
    EXPECT_EQ(metadata_of(status, set, "f", dot_names::plain).accessed, noon - 1h);
    status.accessed = system_time_of(noon - 1min);
    EXPECT_EQ(metadata_of(status, set, "f", dot_names::plain).accessed, noon - 1min)
        << "read since it was set";
    status.modified = system_time_of(noon + 1h);
    EXPECT_EQ(metadata_of(status, set, "f", dot_names::plain).accessed, noon + 1h) << "modified since";
}

}  // namespace
}  // namespace sluice::vfs
