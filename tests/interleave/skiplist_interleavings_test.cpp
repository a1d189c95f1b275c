#include <gtest/gtest.h>

#include "tests/interleave/skiplist_testing.hpp"

// What two or three threads do to the skip list, and to the lock on it, in every order of their steps.

namespace sluice::interleave {
namespace {

using sync::bytes;
using sync::tending_steps;
using sync::skiplist::sound_steps;

template <class Scenario>
void expect_every_schedule_right(const limits& within = {}) {
    const report found = explore([] { return std::make_unique<Scenario>(); }, within);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete) << "after " << found.schedules << " schedules";
    EXPECT_GT(found.schedules, 20U);
    testing::Test::RecordProperty("schedules", static_cast<int>(found.schedules));
}

class overlapping_inserts final : public list_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        a_ = made(1);
        b_ = made(2);
        c_ = made(1);
        return {[this] { insert_and_erase(a_, bytes(0, 5)); }, [this] { insert_and_erase(b_, bytes(3, 9)); },
                [this] { insert_and_erase(c_, bytes(8, 12)); }};
    }
    std::string verdict_of_this() override { return holds_exactly({}) ? "" : "something is still linked"; }

    entry a_, b_, c_;
};

TEST(range_skiplist, keeps_overlapping_ranges_apart_in_every_schedule) {
    expect_every_schedule_right<overlapping_inserts>();
}

class inserts_at_different_levels final : public list_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        a_ = made(3);
        b_ = made(2);
        c_ = made(3);
        (void)insert(c_, bytes(15, 19));
        return {[this] { (void)insert(a_, bytes(0, 4)); }, [this] { (void)insert(b_, bytes(5, 9)); }};
    }
    std::string verdict_of_this() override {
        return holds_exactly({a_, b_, c_}) ? "" : "a link above the bottom is lost";
    }

    entry a_, b_, c_;
};

TEST(range_skiplist, loses_no_link_of_any_level_in_every_schedule) {
    expect_every_schedule_right<inserts_at_different_levels>();
}

// Erases neighbours, both high, while a third comes between them.
class erase_beside_insert final : public list_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        a_ = made(2);
        b_ = made(3);
        c_ = made(2);
        (void)insert(a_, bytes(0, 4));
        (void)insert(b_, bytes(10, 14));
        return {[this] {
                    erase(a_, bytes(0, 4));
                    erase(b_, bytes(10, 14));
                },
                [this] { is_in_ = insert(c_, bytes(5, 9)); }};
    }
    std::string verdict_of_this() override {
        if (not is_in_) return "refused what is free";
        return holds_exactly({c_}) ? "" : "something is still linked, or not any more";
    }

    entry a_, b_, c_;
    bool is_in_ = false;
};

TEST(range_skiplist, unlinks_what_leaves_beside_what_comes_in_every_schedule) {
    expect_every_schedule_right<erase_beside_insert>();
}

// The newcomer takes the place of the one that leaves while this is still linked above.
class insert_where_one_leaves final : public list_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        a_ = made(3);
        b_ = made(3);
        (void)insert(a_, bytes(5, 9));
        return {[this] { erase(a_, bytes(5, 9)); }, [this] { is_in_ = insert(b_, bytes(5, 9)); }};
    }
    std::string verdict_of_this() override {
        return holds_exactly(is_in_ ? std::vector{b_} : std::vector<entry>{}) ? ""
                                                                              : "what left is still linked";
    }

    entry a_, b_;
    bool is_in_ = false;
};

TEST(range_skiplist, unlinks_what_leaves_behind_an_equal_newcomer_in_every_schedule) {
    expect_every_schedule_right<insert_where_one_leaves>();
}

// Two nodes for all, so that what was given back is somebody else's range at once.
class reuse_in_the_same_place final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(bytes(10, 14));
        return {[this] { use_if_free(bytes(0, 5)); },
                [this] {
                    held_.unlock();
                    use_if_free(bytes(3, 8));
                }};
    }
    guard held_;
};

TEST(skiplist_range_lock, takes_no_node_for_what_it_was_before_in_every_schedule) {
    expect_every_schedule_right<reuse_in_the_same_place>();
}

class reuse_again_and_again final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    use_if_free(bytes(3, 8));
                    use_if_free(bytes(0, 5));
                    use_if_free(bytes(5, 6));
                },
                [this] {
                    use_if_free(bytes(5, 6));
                    use_if_free(bytes(0, 3));
                }};
    }
};

TEST(skiplist_range_lock, uses_its_nodes_again_and_again_in_every_schedule) {
    expect_every_schedule_right<reuse_again_and_again>();
}

// Two sleep on one node, and then perhaps one on the other's.
class waiting_for_one_another final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(bytes(0, 9));
        return {[this] { held_.unlock(); }, [this] { lock_and_use(bytes(0, 5)); },
                [this] { lock_and_use(bytes(5, 9)); }};
    }

    guard held_;
};

TEST(skiplist_range_lock, wakes_everybody_who_waits_in_every_schedule) {
    expect_every_schedule_right<waiting_for_one_another>({.preemptions_max = 1});
}

class waiting_for_each_other final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(bytes(0, 5)); }, [this] { lock_and_use(bytes(5, 9)); }};
    }
};

TEST(skiplist_range_lock, wakes_the_one_who_waits_in_every_schedule) {
    expect_every_schedule_right<waiting_for_each_other>();
}

// The node waited for becomes a range that is not in the way, and is not given back while somebody waits.
template <bool IsBehind>
class waiting_while_a_node_is_used_again final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(IsBehind ? bytes(5, 9) : bytes(0, 5));
        return {[this] { lock_and_use(bytes(3, 6)); },
                [this] {
                    held_.unlock();
                    kept_ = lock.try_lock(bytes(15, 19));
                }};
    }
    std::string verdict_of_this() override {
        if (not kept_) return "refused what is free";
        kept_.unlock();
        return lock_users::verdict_of_this();
    }

    guard held_, kept_;
};

TEST(skiplist_range_lock, waits_for_no_other_range_in_the_node_before_it_in_every_schedule) {
    expect_every_schedule_right<waiting_while_a_node_is_used_again<false>>();
}

TEST(skiplist_range_lock, waits_for_no_other_range_in_the_node_behind_it_in_every_schedule) {
    expect_every_schedule_right<waiting_while_a_node_is_used_again<true>>();
}

// Posts are at 4 and 6. One walks from the latter, another locks across it, which takes it down, and then its
// node is a range behind 6.
template <class Steps>
class walk_from_a_post_that_goes final : public lock_users<Steps> {
    using base = lock_users<Steps>;

    std::vector<std::function<void()>> threads() override {
        (void)this->lock.try_lock(bytes(0, 0));
        (void)this->lock.try_lock(bytes(100, 100));  // so a post is at every even number
        this->use_if_free(bytes(4, 4));
        this->use_if_free(bytes(6, 6));
        return {[this] { this->use_if_free(bytes(7, 8)); },
                [this] {
                    const typename base::guard across = this->lock.try_lock(bytes(5, 6));
                    if (across) this->use_if_free(bytes(7, 7));
                }};
    }
    // Three ranges, and posts at 4, 6 and 100, and one that is being set up.
    [[nodiscard]] std::size_t nodes_max() const override { return 3 + 4; }
};

TEST(skiplist_range_lock, walks_from_no_post_that_has_gone_in_every_schedule) {
    expect_every_schedule_right<walk_from_a_post_that_goes<tending_steps>>({.preemptions_max = 1});
}

struct deaf_to_posts : tending_steps {
    static constexpr bool listens_to_posts = false;
};

TEST(skiplist_range_lock, is_found_to_walk_from_a_post_that_has_gone_if_it_does_not_listen) {
    const report found = explore([] { return std::make_unique<walk_from_a_post_that_goes<deaf_to_posts>>(); },
                                 {.preemptions_max = 1});
    EXPECT_EQ(found.problem, "two held the same byte at once");
}

// Two set up a post at the same place, beside one who locks across it.
class posts_in_the_same_place final : public lock_users<tending_steps> {
    std::vector<std::function<void()>> threads() override {
        (void)lock.try_lock(bytes(0, 0));
        (void)lock.try_lock(bytes(50, 50));  // so a post is where a range begins
        return {[this] { use_if_free(bytes(5, 6)); }, [this] { use_if_free(bytes(5, 5)); },
                [this] { use_if_free(bytes(4, 6)); }};
    }
    // Three ranges, posts at 4, 5 and 50, and three that are being set up.
    [[nodiscard]] std::size_t nodes_max() const override { return 3 + 3 + 3; }
};

TEST(skiplist_range_lock, keeps_no_post_that_another_takes_the_place_of_in_every_schedule) {
    expect_every_schedule_right<posts_in_the_same_place>({.preemptions_max = 1});
}

class late_waiter final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(bytes(0, 5)); },
                [this] {
                    const guard held = lock.try_lock_for(bytes(3, 9), std::chrono::seconds(1));
                    if (held) use(held.where());
                }};
    }
};

TEST(skiplist_range_lock, loses_nothing_to_a_deadline_in_every_schedule) {
    expect_every_schedule_right<late_waiter>();
}

}  // namespace
}  // namespace sluice::interleave
