#include <gtest/gtest.h>

#include <memory>

#include "sluice/smb/server/open/open_progress.hpp"
#include "sluice/vfs/domain/inline_state.hpp"
#include "tests/interleave/scheduler.hpp"

// Pairs of words of which each party changes one and then reads the other one. The interleavings
// are tried with stores that become visible late, too, so that the memory orders matter.

namespace sluice::interleave {
namespace {

using smb::server::open_phase;
using vfs::call_policy;

constexpr limits in_order{};
constexpr limits late{.delays_stores = true};
constexpr limits all_late{.delays_all_stores = true};

template <class Scenario>
void expect_right() {
    for (const limits& within : {in_order, late, all_late}) {
        const report found = explore([] { return std::make_unique<Scenario>(); }, within);
        EXPECT_EQ(found.problem, "");
        EXPECT_TRUE(found.is_complete);
        EXPECT_GT(found.schedules, 5U);
    }
}

// --- the phase of an open, and its entry in the table of repeated CREATEs
// -------------------------------------------------------------------------------------------------

// A CREATE completes its open and makes it eligible, as create_operation::run and
// replay_table::place::keep do, while two others end the open.
class open_that_ends final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] { create(); }, [this] { end(); }, [this] { end(); }};
    }
    std::string verdict() override {
        if (finished_ != 1) return "the open is not finished exactly once";
        if (removals_ > 1) return "the entry is removed twice";
        if (is_in_table_) return "the entry of an ended open stays in the table";
        return {};
    }

private:
    using progress = smb::server::basic_open_progress<scheduled_atomics>;

    void create() {
        if (not of_.go_live()) {
            ++finished_;  // the CREATE undoes it
            return;
        }
        is_in_table_ = true;
        if (not of_.begin_eligibility()) end_eligibility();
    }
    void end() {
        if (of_.end() != open_phase::live) return;  // another ends it, or its CREATE undoes it
        ++finished_;
        end_eligibility();
    }
    void end_eligibility() {
        if (not of_.end_eligibility()) return;
        ++removals_;
        is_in_table_ = false;
    }

    progress of_;
    bool is_in_table_ = false;
    int finished_ = 0;
    int removals_ = 0;
};

TEST(flag_pairs, open_is_finished_once_and_leaves_no_entry_for_repeated_creates) {
    expect_right<open_that_ends>();
}

// --- where the calls of a domain run
// -------------------------------------------------------------------------------------------------

// One thread finds that calls are quick, another that a call has blocked, and the configuration is
// changed to offload them always.
class domain_that_changes final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] { state_.become_inline(); }, [this] { state_.offload_always(); },
                [this] {
                    state_.offload();
                    state_.become_inline();
                }};
    }
    std::string verdict() override {
        return state_.is_inline() ? "calls run on loops although they are always offloaded" : "";
    }

private:
    vfs::basic_inline_state<scheduled_atomics> state_{call_policy::starts_inline};
};

TEST(flag_pairs, domain_whose_calls_are_always_offloaded_does_not_become_inline) {
    expect_right<domain_that_changes>();
}

// The same with a relaxed read of the policy after the store.
class domain_with_weak_check final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    is_inline_.store(1, std::memory_order_seq_cst);
                    if (policy_.load(std::memory_order_relaxed) == 1)
                        is_inline_.store(0, std::memory_order_seq_cst);
                },
                [this] {
                    policy_.store(1, std::memory_order_seq_cst);
                    is_inline_.store(0, std::memory_order_seq_cst);
                }};
    }
    std::string verdict() override {
        return is_inline_.load(std::memory_order_seq_cst) == 1 ? "calls run on loops" : "";
    }

private:
    scheduled_atomics::atomic<std::uint32_t> policy_{0};
    scheduled_atomics::atomic<std::uint32_t> is_inline_{0};
};

TEST(flag_pairs, weaker_read_after_the_store_is_detected) {
    const report in_its_order = explore([] { return std::make_unique<domain_with_weak_check>(); }, in_order);
    EXPECT_EQ(in_its_order.problem, "");
    const report found = explore([] { return std::make_unique<domain_with_weak_check>(); }, all_late);
    EXPECT_EQ(found.problem, "calls run on loops");
}

}  // namespace
}  // namespace sluice::interleave
