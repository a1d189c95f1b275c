#include "sluice/smb/server/file/cached_directories.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {
namespace {

constexpr vfs::file_key directory{.volume = 1, .file = 2};
constexpr vfs::file_key other{.volume = 1, .file = 3};

[[nodiscard]] name_state state(std::uint64_t file, int changed = 0) {
    return vfs::name_identity{.key = {.volume = 1, .file = file},
                              .changed = vfs::time_point(vfs::time_point::duration(changed))};
}

class cached_directories_of_test : public testing::Test {
protected:
    cached_directories_of_test() { EXPECT_TRUE(all_.add(directory, this, {})); }
    ~cached_directories_of_test() override {
        all_.remove(directory, this);
        EXPECT_FALSE(all_.has_any());
    }
    [[nodiscard]] bool is_own(std::string_view name, const name_state& now, bool is_written = false) {
        return all_.is_own_change(directory, {.name = std::string(name)}, now, is_written);
    }
    // A change by the server, as far as it leaves a state.
    void change(std::string_view name, const name_state& left) {
        all_.begin_change(directory, name, std::nullopt);
        all_.end_change(directory, name, left);
    }
    [[nodiscard]] bool has_lost_events() {
        const auto events = all_.take_events();
        return not events.empty() and events.front().are_lost;
    }
    cached_directories all_;
};
using a_cached_directory = cached_directories_of_test;

TEST_F(a_cached_directory, is_known_while_it_is_watched) {
    EXPECT_TRUE(all_.has(directory));
    EXPECT_FALSE(all_.has(other));
    EXPECT_TRUE(all_.add(directory, &all_, {}));
    all_.remove(directory, &all_);
    EXPECT_TRUE(all_.has(directory));
}

TEST_F(a_cached_directory, gives_its_events_once) {
    EXPECT_FALSE(all_.has_events());
    all_.record_event(directory, "b", true);
    all_.record_event(directory, "a", true);
    all_.record_event(directory, "a", false);
    all_.record_event(other, "a", false);
    EXPECT_TRUE(all_.has_events());
    const auto events = all_.take_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events.front().directory, directory);
    EXPECT_FALSE(events.front().are_lost);
    ASSERT_EQ(events.front().names.size(), 2U);
    EXPECT_EQ(events.front().names[0].name, "a");
    EXPECT_FALSE(events.front().names[0].is_content) << "one of the two changed more";
    EXPECT_TRUE(events.front().names[1].is_content);
    EXPECT_FALSE(all_.has_events());
    EXPECT_TRUE(all_.take_events().empty());
}

TEST_F(a_cached_directory, knows_its_own_changes_by_the_state_that_they_left) {
    change("f", state(7, 1));
    EXPECT_FALSE(is_own("g", state(7, 1)));
    EXPECT_FALSE(all_.is_own_change(other, {.name = "f"}, state(7, 1), false));
    EXPECT_TRUE(is_own("f", state(7, 1)));
    EXPECT_TRUE(is_own("f", state(7, 1)));
}

TEST_F(a_cached_directory, forgets_a_state_that_another_program_has_changed) {
    for (const name_state& changed : {state(7, 2), state(8, 1), name_state()}) {
        change("f", state(7, 1));
        EXPECT_FALSE(is_own("f", changed));
        EXPECT_FALSE(is_own("f", state(7, 1))) << "it came back";
    }
}

TEST_F(a_cached_directory, examines_a_name_after_the_own_change_in_progress) {
    all_.begin_change(directory, "f", std::nullopt);
    all_.record_event(directory, "f", false);
    EXPECT_TRUE(all_.take_events().empty());
    all_.end_change(directory, "f", state(7, 1));
    EXPECT_TRUE(all_.has_events());
    EXPECT_EQ(all_.take_events().size(), 1U);
}

TEST_F(a_cached_directory, is_examined_by_one_at_a_time) {
    all_.record_event(directory, "a", false);
    EXPECT_EQ(all_.take_events().size(), 1U);
    all_.record_event(directory, "b", false);
    EXPECT_TRUE(all_.take_events().empty());
    all_.end_examination(directory);
    EXPECT_TRUE(all_.has_events());
    EXPECT_EQ(all_.take_events().size(), 1U);
}

TEST_F(a_cached_directory, takes_an_event_before_an_own_change_for_that_of_the_own_change_before) {
    change("f", state(7, 1));
    all_.record_event(directory, "f", false);
    all_.begin_change(directory, "f", state(7, 1));
    all_.end_change(directory, "f", state(7, 2));
    EXPECT_TRUE(all_.take_events().empty());
}

TEST_F(a_cached_directory, loses_an_event_of_another_program_before_an_own_change) {
    change("f", state(7, 1));
    all_.record_event(directory, "f", false);
    all_.begin_change(directory, "f", state(7, 2));
    all_.end_change(directory, "f", state(7, 3));
    EXPECT_TRUE(has_lost_events());
}

TEST_F(a_cached_directory, notices_a_change_whose_event_has_not_come_before_an_own_change) {
    change("f", state(7, 1));
    all_.begin_change(directory, "f", state(7, 2));
    all_.end_change(directory, "f", state(7, 3));
    EXPECT_TRUE(has_lost_events());
    EXPECT_TRUE(is_own("f", state(7, 3)));
}

TEST_F(a_cached_directory, takes_writes_of_clients_for_own_changes_of_the_same_file) {
    change("f", state(7, 1));
    EXPECT_TRUE(is_own("f", state(7, 2), true));
    EXPECT_FALSE(is_own("f", state(8, 2), true)) << "another file";
    change("f", state(7, 1));
    all_.record_event(directory, "f", false);
    all_.begin_change(directory, "f", state(7, 2), true);
    all_.end_change(directory, "f", state(7, 2));
    EXPECT_FALSE(has_lost_events());
    // Also of a file that no own change has recorded.
    all_.record_event(directory, "g", true);
    all_.begin_change(directory, "g", state(9, 1), true);
    all_.end_change(directory, "g", state(9, 1));
    EXPECT_FALSE(has_lost_events());
}

TEST_F(a_cached_directory, decides_an_event_after_an_own_change_that_began_during_its_examination) {
    change("f", state(7, 1));
    all_.record_event(directory, "f", false);
    EXPECT_EQ(all_.take_events().size(), 1U);
    all_.begin_change(directory, "f", state(7, 1));
    EXPECT_TRUE(is_own("f", state(7, 2)));
    all_.end_change(directory, "f", state(7, 3));
    all_.end_examination(directory);
    const auto again = all_.take_events();
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again.front().names.front().name, "f");
    all_.end_examination(directory);
    // Not if that change began in a state that is not known to be its own.
    all_.begin_change(directory, "g", state(8, 2));
    EXPECT_FALSE(is_own("g", state(8, 2)));
    all_.end_change(directory, "g", state(8, 3));
}

TEST_F(a_cached_directory, forgets_all_states_when_events_were_not_examined) {
    change("f", state(7, 1));
    all_.forget_states(directory);
    EXPECT_FALSE(is_own("f", state(7, 1)));
    change("f", state(7, 1));
    all_.record_loss(directory);
    EXPECT_FALSE(is_own("f", state(7, 1)));
}

TEST_F(a_cached_directory, forgets_the_states_of_the_directory_with_most_of_them) {
    change("f", state(7, 1));
    std::array<char, 32> watches{};
    for (std::size_t i = 0; i != watches.size(); ++i) {
        const vfs::file_key many{.volume = 2, .file = i};
        EXPECT_TRUE(all_.add(many, &watches[i], {}));
        for (std::size_t k = 0; k != limits::own_changes_kept_max; ++k)
            all_.end_change(many, std::to_string(k), state(k));
    }
    EXPECT_TRUE(is_own("f", state(7, 1))) << "others have more";
    change("g", state(8, 1));
    EXPECT_TRUE(is_own("g", state(8, 1)));
    for (std::size_t i = 0; i != watches.size(); ++i)
        all_.remove({.volume = 2, .file = i}, &watches[i]);
}

TEST_F(a_cached_directory, has_a_bounded_number_of_watches) {
    std::array<char, limits::watches_per_cached_directory_max> watches{};
    for (std::size_t i = 1; i != watches.size(); ++i)
        EXPECT_TRUE(all_.add(directory, &watches[i], {}));
    EXPECT_FALSE(all_.add(directory, watches.data(), {}));
    for (std::size_t i = 1; i != watches.size(); ++i)
        all_.remove(directory, &watches[i]);
}

TEST_F(a_cached_directory, knows_an_own_removal) {
    change("f", name_state());
    EXPECT_TRUE(is_own("f", std::nullopt));
    EXPECT_FALSE(is_own("f", state(7)));
}

TEST_F(a_cached_directory, takes_no_state_for_its_own_after_a_change_with_an_unknown_one) {
    all_.begin_change(directory, "f", std::nullopt);
    all_.end_change(directory, "f", std::nullopt);
    EXPECT_FALSE(is_own("f", std::nullopt));
    EXPECT_FALSE(is_own("f", state(7)));
}

TEST_F(a_cached_directory, loses_events_rather_than_to_grow_without_bound) {
    for (std::size_t i = 0; i <= limits::directory_events_max; ++i)
        all_.record_event(directory, std::to_string(i), false);
    const auto events = all_.take_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_TRUE(events.front().are_lost);
    EXPECT_TRUE(events.front().names.empty());
}

TEST_F(a_cached_directory, forgets_states_rather_than_to_grow_without_bound) {
    change("in progress", state(1));
    all_.begin_change(directory, "in progress", state(1));
    for (std::size_t i = 0; i <= limits::own_changes_kept_max; ++i) {
        all_.begin_change(directory, std::to_string(i), std::nullopt);
        all_.end_change(directory, std::to_string(i), state(i));
    }
    EXPECT_FALSE(is_own("0", state(0)));
    EXPECT_TRUE(is_own("in progress", state(1)));
    all_.end_change(directory, "in progress", state(1));
}

TEST_F(a_cached_directory, loses_everything_with_its_watch) {
    all_.record_event(directory, "a", false);
    all_.record_loss(directory);
    all_.record_event(directory, "b", false);
    const auto events = all_.take_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_TRUE(events.front().are_lost);
    EXPECT_TRUE(events.front().names.empty());
}

}  // namespace
}  // namespace sluice::smb::server
