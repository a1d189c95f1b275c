#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/fifo_lock.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

using smb::server::fifo_lock;
using smb::wire::nt_status;
using one_shot_event = smb::server::one_shot_event<nt_status>;

[[nodiscard]] io::io_multiplexer& any_loop() {
    static const std::unique_ptr<io::io_multiplexer> one = io::make_epoll_multiplexer().value();
    return *one;
}

// Requests that hold the lock for one step. The methods of the lock are steps: a
// mutex makes each atomic.
class requests_of_lock final : public scenario {
public:
    enum class kind : unsigned char { exclusive, shared, none };

    /// `interrupted`: the request that the last thread interrupts, whether it is waiting or not.
    requests_of_lock(std::array<kind, 3> kinds, std::size_t interrupted)
        : kinds_(kinds), interrupted_(interrupted) {}

    std::vector<std::function<void()>> threads() override {
        std::vector<std::function<void()>> all;
        for (std::size_t i = 0; i != kinds_.size(); ++i)
            if (kinds_.at(i) != kind::none) all.emplace_back([this, i] { request(i); });
        if (interrupted_ < kinds_.size()) all.emplace_back([this] { interrupt(); });
        return all;
    }
    std::string verdict() override {
        if (not problem_.empty()) return problem_;
        one_shot_event unused(any_loop());
        fifo_lock::lock_request last(unused);
        const bool is_free = lock_.lock(last);
        lock_.unlock(last);
        return is_free ? "" : "the lock is held at the end";
    }

private:
    struct request_state {
        one_shot_event woken{any_loop()};
        fifo_lock::lock_request request{woken};
        unsigned arrived = 0;
    };

    void request(std::size_t number) {
        request_state& self = requests_.at(number);
        const bool is_shared = kinds_.at(number) == kind::shared;
        step();
        self.arrived = ++arrivals_;
        bool is_held = is_shared ? lock_.lock_shared(self.request) : lock_.lock(self.request);
        while (not is_held and not self.woken.is_set())
            sleep_on(&self.woken, false);
        if (not is_held) {
            step();
            is_held = lock_.is_held_by(self.request);
        }
        if (is_held) hold(self, is_shared);
        step();
        lock_.unlock(self.request);
        wake();
    }
    void hold(const request_state& self, bool is_shared) {
        (is_shared ? shared_ : exclusive_) += 1;
        if (exclusive_ > 1 or (exclusive_ != 0 and shared_ != 0))
            problem_ = "the lock has conflicting holders";
        if (self.arrived < (is_shared ? last_exclusive_ : last_)) problem_ = "a request has been overtaken";
        last_ = std::max(last_, self.arrived);
        if (not is_shared) last_exclusive_ = self.arrived;
        step();
        (is_shared ? shared_ : exclusive_) -= 1;
    }
    void interrupt() {
        step();
        requests_.at(interrupted_).woken.set(nt_status::cancelled);
        wake();
    }
    void wake() {
        for (request_state& each : requests_)
            if (each.woken.is_set()) wake_all_on(&each.woken);
    }

    std::array<kind, 3> kinds_;
    std::size_t interrupted_;
    fifo_lock lock_;
    std::array<request_state, 3> requests_;
    unsigned arrivals_ = 0;
    unsigned last_ = 0;  // the number of the last holder in order of arrival
    unsigned last_exclusive_ = 0;
    int exclusive_ = 0;
    int shared_ = 0;
    std::string problem_;
};

using kind = requests_of_lock::kind;
constexpr std::size_t no_interrupt = 3;

void expect_right(std::array<kind, 3> kinds, std::size_t interrupted) {
    const report found = explore([&] { return std::make_unique<requests_of_lock>(kinds, interrupted); });
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 20U);
}

TEST(fifo_lock_interleavings, exclusive_requests_are_granted_one_after_the_other) {
    expect_right({kind::exclusive, kind::exclusive, kind::exclusive}, no_interrupt);
}

TEST(fifo_lock_interleavings, shared_requests_exclude_an_exclusive_one) {
    expect_right({kind::shared, kind::exclusive, kind::shared}, no_interrupt);
    expect_right({kind::exclusive, kind::shared, kind::exclusive}, no_interrupt);
}

TEST(fifo_lock_interleavings, interrupted_request_delays_no_other) {
    expect_right({kind::exclusive, kind::exclusive, kind::exclusive}, 1);
    expect_right({kind::shared, kind::exclusive, kind::shared}, 1);
}

}  // namespace
}  // namespace sluice::interleave
