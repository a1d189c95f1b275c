#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/file/byte_range_locks.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "tests/interleave/scheduler.hpp"

// A LOCK that waits, as command/lock.cpp carries it out, against UNLOCK, CANCEL and CLOSE. A
// section of the file is one step.

namespace sluice::interleave {
namespace {

using smb::server::byte_range_locks;
using smb::wire::nt_status;
using one_shot_event = smb::server::one_shot_event<nt_status>;

constexpr byte_range_locks::range range{.offset = 0, .length = 10};

struct request_mix {
    bool cancels = false;  // a CANCEL of the LOCK
    bool closes = false;   // a CLOSE of the open that waits
};

class requests_of_locks final : public scenario {
public:
    explicit requests_of_locks(request_mix mix) : mix_(mix) {
        has_failed_ = not locks_.try_lock(wanted_by(*holder_));
    }

    std::vector<std::function<void()>> threads() override {
        std::vector<std::function<void()>> all{[this] { lock(); }, [this] { unlock(); }};
        if (mix_.cancels) all.emplace_back([this] { cancel(); });
        if (mix_.closes) all.emplace_back([this] { close(); });
        return all;
    }
    std::string verdict() override {
        if (has_failed_) return "a request had an impossible status";
        const bool is_held = locks_.held_by(*waiting_) == 1;
        if (not mix_.closes and is_held != (status_ == nt_status::success))
            return "the status of the LOCK does not say whether it is held";
        if (locks_.has_waiters()) return "a lock still waits";
        locks_.release_all(*waiting_);
        return locks_.is_empty() ? "" : "a lock has no owner";
    }

private:
    [[nodiscard]] static io::io_multiplexer& any_loop() {
        static const std::unique_ptr<io::io_multiplexer> one = io::make_epoll_multiplexer().value();
        return *one;
    }
    [[nodiscard]] static byte_range_locks::lock wanted_by(const smb::server::open& of) {
        return {.owner = &of, .where = range, .is_exclusive = true};
    }
    void wake() {
        record_change();
        if (granted_.is_set()) wake_all_on(&granted_);
    }

    // serve_lock(): one section that takes the lock or queues for it, and one that leaves the
    // queue.
    void lock() {
        byte_range_locks::waiter place{.wanted = wanted_by(*waiting_), .granted = &granted_};
        step();
        if (has_closed_) {
            status_ = nt_status::file_closed;
            return;
        }
        if (locks_.try_lock(place.wanted)) {
            status_ = nt_status::success;
            return;
        }
        locks_.enqueue(place);
        is_waiting_ = true;
        while (not granted_.is_set())
            sleep_on(&granted_, false);
        step();
        locks_.forget(place);
        is_waiting_ = false;
        status_ = place.is_held ? nt_status::success : granted_.value().value();
        const bool is_possible = status_ == nt_status::success or status_ == nt_status::cancelled or
                                 status_ == nt_status::range_not_locked;
        has_failed_ = has_failed_ or not is_possible;
    }
    void unlock() {
        step();
        has_failed_ = has_failed_ or not locks_.unlock(*holder_, range);
        wake();
    }
    // Finds the request in its connection's list; its loop sets the event.
    void cancel() {
        step();
        if (is_waiting_) granted_.set(nt_status::cancelled);
        wake();
    }
    void close() {
        step();
        has_closed_ = true;
        locks_.release_all(*waiting_);
        wake();
    }

    request_mix mix_;
    byte_range_locks locks_;
    std::shared_ptr<smb::server::open> holder_ = std::make_shared<smb::server::open>();
    std::shared_ptr<smb::server::open> waiting_ = std::make_shared<smb::server::open>();
    one_shot_event granted_{any_loop()};
    nt_status status_ = nt_status::pending;
    bool is_waiting_ = false;  // CANCEL finds it
    bool has_closed_ = false;
    bool has_failed_ = false;
};

void expect_right(request_mix mix) {
    const report found = explore([=] { return std::make_unique<requests_of_locks>(mix); });
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 3U);
}

TEST(lock_interleavings, lock_is_granted_or_cancelled_at_every_point) {
    expect_right({.cancels = true});
}

TEST(lock_interleavings, lock_is_granted_or_ends_with_its_open_at_every_point) {
    expect_right({.closes = true});
}

TEST(lock_interleavings, lock_that_is_cancelled_while_it_is_granted_and_its_open_closed_ends) {
    expect_right({.cancels = true, .closes = true});
}

}  // namespace
}  // namespace sluice::interleave
