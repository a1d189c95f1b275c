#include "sluice/smb/server/core/fifo_lock.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::smb::server {
namespace {

class fifo_lock_test : public testing::Test {
protected:
    struct user {
        explicit user(io::io_multiplexer& loop) noexcept : woken(loop), request(woken) {}
        one_shot_event<wire::nt_status> woken;
        fifo_lock::lock_request request;
    };

    // a holds the lock, and c waits after b.
    void lock_a_and_queue_b_and_c() {
        EXPECT_TRUE(lock.lock(a.request));
        EXPECT_FALSE(lock.lock(b.request));
        EXPECT_FALSE(lock.lock(c.request));
    }
    // The same, but a and c are shared.
    void lock_a_shared_and_queue_b_and_c() {
        EXPECT_TRUE(lock.lock_shared(a.request));
        EXPECT_FALSE(lock.lock(b.request));
        EXPECT_FALSE(lock.lock_shared(c.request));
    }

    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    fifo_lock lock;
    user a{*loop};
    user b{*loop};
    user c{*loop};
};

TEST_F(fifo_lock_test, grants_waiters_in_order_of_arrival) {
    lock_a_and_queue_b_and_c();
    lock.unlock(a.request);
    EXPECT_TRUE(b.woken.is_set());
    EXPECT_TRUE(lock.is_held_by(b.request));
    EXPECT_FALSE(c.woken.is_set());
    lock.unlock(b.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(c.request);
    EXPECT_TRUE(lock.lock(a.request));
    lock.unlock(a.request);
}

TEST_F(fifo_lock_test, skips_a_waiter_that_has_left_the_queue) {
    lock_a_and_queue_b_and_c();
    lock.unlock(b.request);
    EXPECT_FALSE(b.woken.is_set());
    lock.unlock(a.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(c.request);
}

TEST_F(fifo_lock_test, passes_on_a_grant_that_an_interrupted_waiter_releases) {
    lock_a_and_queue_b_and_c();
    b.woken.set(wire::nt_status::cancelled);
    lock.unlock(a.request);
    EXPECT_TRUE(lock.is_held_by(b.request)) << "the event only wakes; the request has the outcome";
    lock.unlock(b.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(c.request);
}

TEST_F(fifo_lock_test, grants_shared_holders_together) {
    EXPECT_TRUE(lock.lock_shared(a.request));
    EXPECT_TRUE(lock.lock_shared(b.request));
    EXPECT_FALSE(lock.lock(c.request));
    lock.unlock(a.request);
    EXPECT_FALSE(lock.is_held_by(c.request));
    lock.unlock(b.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(c.request);
}

TEST_F(fifo_lock_test, shared_waiter_does_not_overtake_an_exclusive_one) {
    lock_a_shared_and_queue_b_and_c();
    lock.unlock(a.request);
    EXPECT_TRUE(lock.is_held_by(b.request));
    EXPECT_FALSE(lock.is_held_by(c.request));
    lock.unlock(b.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(c.request);
}

TEST_F(fifo_lock_test, exclusive_waiter_that_leaves_lets_shared_waiters_in) {
    lock_a_shared_and_queue_b_and_c();
    lock.unlock(b.request);
    EXPECT_TRUE(lock.is_held_by(c.request));
    lock.unlock(a.request);
    lock.unlock(c.request);
}

TEST_F(fifo_lock_test, unlock_of_a_place_outside_does_nothing) {
    lock.unlock(a.request);
    EXPECT_TRUE(lock.lock(b.request));
    lock.unlock(b.request);
    lock.unlock(b.request);
}

}  // namespace
}  // namespace sluice::smb::server
