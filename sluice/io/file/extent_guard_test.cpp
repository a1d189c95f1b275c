#include "sluice/io/file/extent_guard.hpp"

#include <chrono>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

class extent_guard_on : public on_each_volume {
protected:
    file_handle open(mode wanted = mode::write) {
        return file_handle::open(directory.anchor(), "file", wanted, creation::if_needed).value();
    }
    file_handle first = open();
    file_handle second = open();
};

TEST_P(extent_guard_on, a_locked_range_is_refused_to_another_handle_until_released) {
    auto held = first.lock_range({.offset = 10, .length = 10}, lock_kind::exclusive);
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_TRUE(held->is_held());
    const auto refused =
        second.lock_range({.offset = 19, .length = 1}, lock_kind::exclusive, deadline::zero());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::timed_out);
    EXPECT_TRUE(second.lock_range({.offset = 20, .length = 1}, lock_kind::exclusive, deadline::zero()));
    held->unlock();
    EXPECT_FALSE(held->is_held());
    EXPECT_TRUE(second.lock_range({.offset = 19, .length = 1}, lock_kind::exclusive, deadline::zero()));
}

TEST_P(extent_guard_on, shared_locks_conflict_with_an_exclusive_one_but_not_with_each_other) {
    const auto one = first.lock_range({.offset = 0, .length = 5}, lock_kind::shared).value();
    EXPECT_TRUE(second.lock_range({.offset = 0, .length = 5}, lock_kind::shared, deadline::zero()));
    EXPECT_EQ(second.lock_range({.offset = 4, .length = 5}, lock_kind::exclusive, deadline::zero()).error(),
              std::errc::timed_out);
}

TEST_P(extent_guard_on, a_wait_ends_soon_after_its_deadline) {
    const auto held = first.lock_range({}, lock_kind::exclusive).value();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(second.lock_range({}, lock_kind::shared, 30ms).error(), std::errc::timed_out);
    const auto waited = std::chrono::steady_clock::now() - began;
    EXPECT_GE(waited, 30ms);
    EXPECT_LT(waited, 2s);
    EXPECT_EQ(second.lock_range({}, lock_kind::shared, std::chrono::steady_clock::now() + 5ms).error(),
              std::errc::timed_out);
    EXPECT_EQ(second.lock_range({}, lock_kind::shared, std::chrono::system_clock::now() - 1s).error(),
              std::errc::timed_out);
}

TEST_P(extent_guard_on, a_guard_releases_when_it_is_destroyed_or_assigned_to) {
    { const auto held = first.lock_range({}, lock_kind::exclusive).value(); }
    auto low = second.lock_range({.offset = 0, .length = 1}, lock_kind::exclusive, deadline::zero()).value();
    auto high = second.lock_range({.offset = 1, .length = 1}, lock_kind::exclusive, deadline::zero()).value();
    low = std::move(high);
    EXPECT_TRUE(first.lock_range({.offset = 0, .length = 1}, lock_kind::exclusive, deadline::zero()));
    EXPECT_FALSE(first.lock_range({.offset = 1, .length = 1}, lock_kind::exclusive, deadline::zero()));
}

TEST_P(extent_guard_on, a_guard_survives_the_move_of_its_handle_and_can_be_disowned) {
    auto held = first.lock_range({}, lock_kind::exclusive).value();
    file_handle moved = std::move(first);
    EXPECT_FALSE(second.lock_range({}, lock_kind::shared, deadline::zero()));
    held.release();
    held = extent_guard();
    EXPECT_FALSE(second.lock_range({}, lock_kind::shared, deadline::zero()));
    ASSERT_TRUE(moved.close());
    EXPECT_TRUE(second.lock_range({}, lock_kind::shared, deadline::zero()));
}

TEST_P(extent_guard_on, locks_of_one_handle_convert_each_other) {
    const auto weak = first.lock_range({}, lock_kind::shared).value();
    const auto strong = first.lock_range({}, lock_kind::exclusive, deadline::zero());
    EXPECT_TRUE(strong);
    EXPECT_FALSE(second.lock_range({}, lock_kind::shared, deadline::zero()));
}

TEST_P(extent_guard_on, impossible_ranges_are_refused) {
    EXPECT_EQ(first.lock_range({.offset = 5, .length = 0}, lock_kind::shared).error(),
              std::errc::invalid_argument);
    EXPECT_EQ(first.lock_range({.offset = 1, .length = extent_type{1} << 63}, lock_kind::shared).error(),
              std::errc::value_too_large);
    EXPECT_TRUE(first.lock_range({.offset = (extent_type{1} << 63) - 2, .length = 1}, lock_kind::shared));
}

TEST_P(extent_guard_on, the_kind_of_lock_must_suit_the_mode) {
    auto reader = open(mode::read);
    EXPECT_EQ(reader.lock_range({}, lock_kind::exclusive).error(), std::errc::bad_file_descriptor);
    EXPECT_TRUE(reader.lock_range({}, lock_kind::shared));
}

SLUICE_ON_EACH_VOLUME(extent_guard_on);

}  // namespace
}  // namespace sluice::io
