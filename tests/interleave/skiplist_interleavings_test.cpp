#include <gtest/gtest.h>

#include "tests/interleave/skiplist_testing.hpp"

// Two or three threads use the skip list, and the lock based on it, in every order of their steps.

namespace sluice::interleave {
namespace {

using sync::bytes;
using sync::maintenance_steps;
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
    std::string verdict_of_this() override { return holds_exactly({}) ? "" : "a node is still linked"; }

    entry a_, b_, c_;
};

TEST(range_skiplist, excludes_overlapping_ranges_in_every_schedule) {
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
        return holds_exactly({a_, b_, c_}) ? "" : "a link above the lowest level is lost";
    }

    entry a_, b_, c_;
};

TEST(range_skiplist, loses_no_link_of_any_level_in_every_schedule) {
    expect_every_schedule_right<inserts_at_different_levels>();
}

// Erases neighbours, both with high towers, while a third node is inserted between them.
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
        if (not is_in_) return "refused a free range";
        return holds_exactly({c_}) ? "" : "the wrong nodes are linked";
    }

    entry a_, b_, c_;
    bool is_in_ = false;
};

TEST(range_skiplist, unlinks_leaving_nodes_during_inserts_in_every_schedule) {
    expect_every_schedule_right<erase_beside_insert>();
}

// The new node takes the place of a leaving one that is still linked on upper levels.
class insert_where_one_leaves final : public list_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        a_ = made(3);
        b_ = made(3);
        (void)insert(a_, bytes(5, 9));
        return {[this] { erase(a_, bytes(5, 9)); }, [this] { is_in_ = insert(b_, bytes(5, 9)); }};
    }
    std::string verdict_of_this() override {
        return holds_exactly(is_in_ ? std::vector{b_} : std::vector<entry>{})
                   ? ""
                   : "the erased node is still linked";
    }

    entry a_, b_;
    bool is_in_ = false;
};

TEST(range_skiplist, unlinks_a_leaving_node_after_an_equal_new_one_in_every_schedule) {
    expect_every_schedule_right<insert_where_one_leaves>();
}

// Two nodes for all threads, so that a released node becomes the range of another thread at once.
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

TEST(skiplist_range_lock, confuses_no_reused_node_with_its_earlier_range_in_every_schedule) {
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

TEST(skiplist_range_lock, reuses_its_nodes_repeatedly_in_every_schedule) {
    expect_every_schedule_right<reuse_again_and_again>();
}

// Two threads sleep on one node, and then one of them possibly on the other's node.
class waiting_for_one_another final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(bytes(0, 9));
        return {[this] { held_.unlock(); }, [this] { lock_and_use(bytes(0, 5)); },
                [this] { lock_and_use(bytes(5, 9)); }};
    }

    guard held_;
};

TEST(skiplist_range_lock, wakes_all_waiters_in_every_schedule) {
    expect_every_schedule_right<waiting_for_one_another>({.preemptions_max = 1});
}

class waiting_for_each_other final : public lock_users<sound_steps> {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(bytes(0, 5)); }, [this] { lock_and_use(bytes(5, 9)); }};
    }
};

TEST(skiplist_range_lock, wakes_the_only_waiter_in_every_schedule) {
    expect_every_schedule_right<waiting_for_each_other>();
}

// The node that a thread waits for becomes a range that does not conflict, and is not released
// while the thread waits.
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
        if (not kept_) return "refused a free range";
        kept_.unlock();
        return lock_users::verdict_of_this();
    }

    guard held_, kept_;
};

TEST(skiplist_range_lock, does_not_wait_for_a_reused_node_before_the_range_in_every_schedule) {
    expect_every_schedule_right<waiting_while_a_node_is_used_again<false>>();
}

TEST(skiplist_range_lock, does_not_wait_for_a_reused_node_after_the_range_in_every_schedule) {
    expect_every_schedule_right<waiting_while_a_node_is_used_again<true>>();
}

// Entry points (posts) are at 4 and 6. One thread searches from the latter, another locks across
// it, which removes it; then its node is reused for a range after 6.
template <class Steps>
class walk_from_a_post_that_goes final : public lock_users<Steps> {
    using base = lock_users<Steps>;

    std::vector<std::function<void()>> threads() override {
        (void)this->lock.try_lock(bytes(0, 0));
        (void)this->lock.try_lock(bytes(100, 100));  // so that every even number is a post
        this->use_if_free(bytes(4, 4));
        this->use_if_free(bytes(6, 6));
        return {[this] { this->use_if_free(bytes(7, 8)); },
                [this] {
                    const typename base::guard across = this->lock.try_lock(bytes(5, 6));
                    if (across) this->use_if_free(bytes(7, 7));
                }};
    }
    // Three ranges, posts at 4, 6 and 100, and one that is being created.
    [[nodiscard]] std::size_t nodes_max() const override { return 3 + 4; }
};

TEST(skiplist_range_lock, starts_from_no_removed_post_in_every_schedule) {
    expect_every_schedule_right<walk_from_a_post_that_goes<maintenance_steps>>({.preemptions_max = 1});
}

struct deaf_to_posts : maintenance_steps {
    static constexpr bool listens_to_posts = false;
};

TEST(skiplist_range_lock, bug_of_starting_from_a_removed_post_is_detected) {
    const report found = explore([] { return std::make_unique<walk_from_a_post_that_goes<deaf_to_posts>>(); },
                                 {.preemptions_max = 1});
    EXPECT_EQ(found.problem, "two threads held the same byte at once");
}

// Two threads create a post at the same place, while a third locks across it.
class posts_in_the_same_place final : public lock_users<maintenance_steps> {
    std::vector<std::function<void()>> threads() override {
        (void)lock.try_lock(bytes(0, 0));
        (void)lock.try_lock(bytes(50, 50));  // so that a range begins at a post
        return {[this] { use_if_free(bytes(5, 6)); }, [this] { use_if_free(bytes(5, 5)); },
                [this] { use_if_free(bytes(4, 6)); }};
    }
    // Three ranges, posts at 4, 5 and 50, and three that are being created.
    [[nodiscard]] std::size_t nodes_max() const override { return 3 + 3 + 3; }
};

TEST(skiplist_range_lock, keeps_no_post_that_is_replaced_in_every_schedule) {
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

TEST(skiplist_range_lock, loses_no_node_at_a_deadline_in_every_schedule) {
    expect_every_schedule_right<late_waiter>();
}

}  // namespace
}  // namespace sluice::interleave
