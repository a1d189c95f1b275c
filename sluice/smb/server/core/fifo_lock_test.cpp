#include "sluice/smb/server/core/fifo_lock.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::smb::server {
namespace {

class fifo_lock_test : public testing::Test {
protected:
    struct user {
        explicit user(io::io_multiplexer& loop) noexcept : woken(loop), place(woken) {}
        one_shot_event<wire::nt_status> woken;
        fifo_lock::place place;
    };

    // a holds the lock, and c waits after b.
    void lock_a_and_queue_b_and_c() {
        EXPECT_TRUE(lock.lock(a.place));
        EXPECT_FALSE(lock.lock(b.place));
        EXPECT_FALSE(lock.lock(c.place));
    }
    // The same, but a and c are shared.
    void lock_a_shared_and_queue_b_and_c() {
        EXPECT_TRUE(lock.lock_shared(a.place));
        EXPECT_FALSE(lock.lock(b.place));
        EXPECT_FALSE(lock.lock_shared(c.place));
    }

    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    fifo_lock lock;
    user a{*loop};
    user b{*loop};
    user c{*loop};
};

TEST_F(fifo_lock_test, grants_waiters_in_order_of_arrival) {
    lock_a_and_queue_b_and_c();
    lock.unlock(a.place);
    EXPECT_TRUE(b.woken.is_set());
    EXPECT_TRUE(lock.is_held_by(b.place));
    EXPECT_FALSE(c.woken.is_set());
    lock.unlock(b.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(c.place);
    EXPECT_TRUE(lock.lock(a.place));
    lock.unlock(a.place);
}

TEST_F(fifo_lock_test, skips_a_waiter_that_has_left_the_queue) {
    lock_a_and_queue_b_and_c();
    lock.unlock(b.place);
    EXPECT_FALSE(b.woken.is_set());
    lock.unlock(a.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(c.place);
}

TEST_F(fifo_lock_test, passes_on_a_grant_that_an_interrupted_waiter_releases) {
    lock_a_and_queue_b_and_c();
    b.woken.set(wire::nt_status::cancelled);
    lock.unlock(a.place);
    EXPECT_TRUE(lock.is_held_by(b.place)) << "the event only wakes; the place has the outcome";
    lock.unlock(b.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(c.place);
}

TEST_F(fifo_lock_test, grants_shared_holders_together) {
    EXPECT_TRUE(lock.lock_shared(a.place));
    EXPECT_TRUE(lock.lock_shared(b.place));
    EXPECT_FALSE(lock.lock(c.place));
    lock.unlock(a.place);
    EXPECT_FALSE(lock.is_held_by(c.place));
    lock.unlock(b.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(c.place);
}

TEST_F(fifo_lock_test, shared_waiter_does_not_overtake_an_exclusive_one) {
    lock_a_shared_and_queue_b_and_c();
    lock.unlock(a.place);
    EXPECT_TRUE(lock.is_held_by(b.place));
    EXPECT_FALSE(lock.is_held_by(c.place));
    lock.unlock(b.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(c.place);
}

TEST_F(fifo_lock_test, exclusive_waiter_that_leaves_lets_shared_waiters_in) {
    lock_a_shared_and_queue_b_and_c();
    lock.unlock(b.place);
    EXPECT_TRUE(lock.is_held_by(c.place));
    lock.unlock(a.place);
    lock.unlock(c.place);
}

TEST_F(fifo_lock_test, unlock_of_a_place_outside_does_nothing) {
    lock.unlock(a.place);
    EXPECT_TRUE(lock.lock(b.place));
    lock.unlock(b.place);
    lock.unlock(b.place);
}

}  // namespace
}  // namespace sluice::smb::server
