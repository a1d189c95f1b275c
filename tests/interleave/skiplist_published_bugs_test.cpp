#include <gtest/gtest.h>

#include "tests/interleave/published_locks.hpp"
#include "tests/interleave/skiplist_testing.hpp"

// The bugs of published range locks, put back: the tests that pass for ours have to find each of them.

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

TEST(published_listing, differs_in_nothing_from_a_list_of_what_is_held_once_it_is_repaired) {
    EXPECT_EQ(first_difference<defect::none>(), "");
}

TEST(published_listing, is_found_to_follow_a_pointer_with_its_mark) {
    EXPECT_NE(first_difference<defect::mark_stays_in_pointer>(), "");
}

TEST(published_listing, is_found_to_count_what_was_given_back) {
    EXPECT_NE(first_difference<defect::stops_before_what_left>(), "");
}

TEST(published_listing, is_found_to_walk_past_what_it_gives_back) {
    EXPECT_NE(first_difference<defect::walks_past_its_aim>(), "");
}

TEST(published_skiplist, is_found_never_to_lock_the_first_and_the_last_byte) {
    EXPECT_NE(first_difference<defect::sentinels_are_ranges>(), "");
}

TEST(published_skiplist, is_found_never_to_give_back_a_single_byte) {
    EXPECT_NE(first_difference<defect::one_byte_is_never_found>(), "");
}

template <class Scenario>
report explored(unsigned preemptions_max) {
    return explore([] { return std::make_unique<Scenario>(); }, {.preemptions_max = preemptions_max});
}

// A newcomer's link on an upper level leads where it led at first, whoever came in between.
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
        return this->holds_exactly({late_, early_, third_}) ? "" : "a link above the bottom is lost";
    }

    typename base::entry late_, early_, third_;
};

TEST(published_skiplist, is_found_to_lose_links_above_the_bottom) {
    EXPECT_EQ(explored<two_towers_before_a_third<stale_upper_links>>(2).problem,
              "a link above the bottom is lost");
    EXPECT_EQ(explored<two_towers_before_a_third<sound_steps>>(2).problem, "");
}

// Links that say only where they lead: a node that is used again in the same place looks as if it never left.
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

TEST(published_skiplist, is_found_to_grant_overlapping_ranges_once_nodes_are_used_again) {
    EXPECT_EQ(explored<one_leaves_and_comes_back<untagged_links>>(2).problem,
              "two held the same byte at once");
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

TEST(published_list_port, is_found_to_lose_what_comes_in_behind_what_leaves) {
    EXPECT_EQ(explored<release_beside_insert<true>>(2).problem, "two held the same byte at once");
    EXPECT_EQ(explored<release_beside_insert<false>>(3).problem, "");
}

}  // namespace
}  // namespace sluice::interleave
