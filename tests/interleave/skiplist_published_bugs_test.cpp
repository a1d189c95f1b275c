#include <gtest/gtest.h>

#include "tests/interleave/published_locks.hpp"
#include "tests/interleave/skiplist_testing.hpp"

// The bugs of published range locks, reintroduced: the tests of our locks must detect each of them.

namespace sluice::interleave {
namespace {

using sync::bytes;
using sync::skiplist::sound_steps;

template <defect Defect>
std::string first_difference() {
    std::string found;
    for (std::uint64_t seed = 1; seed != 20 and found.empty(); ++seed) {
        listed_range_lock<Defect> lock;
        found = sync::first_difference(lock, seed, 500);
    }
    return found;
}

TEST(published_listing, behaves_like_a_list_of_held_ranges_after_the_repair) {
    EXPECT_EQ(first_difference<defect::none>(), "");
}

TEST(published_listing, bug_of_following_a_marked_pointer_is_detected) {
    EXPECT_NE(first_difference<defect::mark_stays_in_pointer>(), "");
}

TEST(published_listing, bug_of_counting_released_ranges_is_detected) {
    EXPECT_NE(first_difference<defect::stops_before_what_left>(), "");
}

TEST(published_listing, bug_of_passing_the_range_to_release_is_detected) {
    EXPECT_NE(first_difference<defect::walks_past_its_aim>(), "");
}

TEST(published_skiplist, bug_of_never_locking_the_first_and_last_byte_is_detected) {
    EXPECT_NE(first_difference<defect::sentinels_are_ranges>(), "");
}

TEST(published_skiplist, bug_of_never_releasing_a_single_byte_is_detected) {
    EXPECT_NE(first_difference<defect::one_byte_is_never_found>(), "");
}

template <class Scenario>
report explored(unsigned preemptions_max) {
    return explore([] { return std::make_unique<Scenario>(); }, {.preemptions_max = preemptions_max});
}

// A new node's link on an upper level keeps its first successor, even if other nodes are inserted
// in between.
struct stale_upper_links : sound_steps {
    static constexpr bool renews_upper_links = false;
};

template <class Steps>
class two_towers_before_a_third final : public list_users<Steps> {
    using base = list_users<Steps>;

    std::vector<std::function<void()>> threads() override {
        late_ = this->made(2);
        early_ = this->made(2);
        third_ = this->made(2);
        (void)this->insert(third_, bytes(15, 19));
        return {[this] { (void)this->insert(late_, bytes(0, 4)); },
                [this] { (void)this->insert(early_, bytes(5, 9)); }};
    }
    std::string verdict_of_this() override {
        return this->holds_exactly({late_, early_, third_}) ? "" : "a link above the lowest level is lost";
    }

    typename base::entry late_, early_, third_;
};

TEST(published_skiplist, bug_of_losing_links_above_the_lowest_level_is_detected) {
    EXPECT_EQ(explored<two_towers_before_a_third<stale_upper_links>>(2).problem,
              "a link above the lowest level is lost");
    EXPECT_EQ(explored<two_towers_before_a_third<sound_steps>>(2).problem, "");
}

// Links that contain only their target: a node that is reused in the same place looks as if it had
// never left.
struct untagged_links : sound_steps {
    [[nodiscard]] static constexpr std::uint64_t changed(std::uint64_t,
                                                         sync::skiplist::node_number next) noexcept {
        return sound_steps::changed(0, next);
    }
};

template <class Steps>
class one_leaves_and_comes_back final : public lock_users<Steps> {
    using base = lock_users<Steps>;

    std::vector<std::function<void()>> threads() override {
        held_ = this->lock.try_lock(bytes(10, 14));
        return {[this] { this->use_if_free(bytes(0, 5)); },
                [this] {
                    held_.unlock();
                    this->use_if_free(bytes(3, 8));
                }};
    }

    typename base::guard held_;
};

TEST(published_skiplist, bug_of_granting_overlapping_ranges_after_reuse_is_detected) {
    EXPECT_EQ(explored<one_leaves_and_comes_back<untagged_links>>(2).problem,
              "two threads held the same byte at once");
    EXPECT_EQ(explored<one_leaves_and_comes_back<sound_steps>>(2).problem, "");
}

template <bool ReadsAndWrites>
class release_beside_insert final : public exclusive_users {
    std::vector<std::function<void()>> threads() override {
        (void)list_.insert(1, bytes(0, 4));
        const auto use_behind = [this](unsigned number) {
            if (not list_.insert(number, bytes(5, 9))) return;
            use(bytes(5, 9));
            list_.release(number);
        };
        return {[this] { list_.release(1); }, [=] { use_behind(2); }, [=] { use_behind(3); }};
    }

    ported_range_list<ReadsAndWrites> list_;
};

TEST(published_list_port, bug_of_losing_an_insert_after_a_leaving_node_is_detected) {
    EXPECT_EQ(explored<release_beside_insert<true>>(2).problem, "two threads held the same byte at once");
    EXPECT_EQ(explored<release_beside_insert<false>>(3).problem, "");
}

}  // namespace
}  // namespace sluice::interleave
