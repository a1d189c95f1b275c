#include "sluice/vfs/domain/fs_domain.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

constinit thread_local inline_call_slot slot_of_this_thread;
constinit thread_local fs_domain* domain_of_this_call = nullptr;

// The measurement of the thread's current call.
struct measurement {
    inline_policy::measure what = inline_policy::measure::nothing;
    clock_source::steady_time began{};
    std::uint64_t sleeps = 0;
};
constinit thread_local measurement measured;

std::uint32_t next_number() noexcept {
    static constinit std::atomic<std::uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // only uniqueness matters
}

}  // namespace

std::uint64_t count_sleeps_of_thread() noexcept {
    rusage used{};
    return ::getrusage(RUSAGE_THREAD, &used) == 0 ? static_cast<std::uint64_t>(used.ru_nvcsw) : 0;
}

inline_call_slot& inline_call_slot::of_this_thread() noexcept {
    return slot_of_this_thread;
}

fs_domain::fs_domain(fs_domain_options options)
    : number_(next_number()),
      name_(std::move(options.name)),
      state_(options.policy),
      clock_(options.threads.clock),
      count_sleeps_(options.count_sleeps),
      workers_(options.threads) {
    if (options.policy == call_policy::starts_offloaded) inline_policy_.record_offloaded_at(now());
}

void fs_domain::discard(std::unique_ptr<discardable> what, std::shared_ptr<const void> needs,
                        offloaded where) noexcept {
    if (what == nullptr) return;
    if (where == offloaded::as_calls and is_inline()) {
        const inline_call now(*this);
        what.reset();
        return;
    }
    what->kept_ = std::move(needs);
    workers_.post(*what.release());
}

fs_domain* fs_domain::of_this_call() noexcept {
    return domain_of_this_call;
}

void fs_domain::offload_always() noexcept {
    state_.offload_always();
}

void fs_domain::record_blocked_call() noexcept {
    if (not state_.may_change()) return;
    inline_policy_.record_offloaded_at(now());
    state_.offload();
}

void fs_domain::begin_inline_call() noexcept {
    ENSURE(domain_of_this_call == nullptr, "nested call of a domain");
    domain_of_this_call = this;
    const std::uint64_t number = slot_of_this_thread.begin(number_);
    const auto what = inline_policy_.wanted(number);
    if (what != inline_policy::measure::nothing and state_.may_change()) [[unlikely]]
        start_measuring(what);
}

void fs_domain::end_inline_call() noexcept {
    if (measured.what != inline_policy::measure::nothing) [[unlikely]]
        end_measuring();
    slot_of_this_thread.end();
    domain_of_this_call = nullptr;
}

void fs_domain::start_measuring(inline_policy::measure what) noexcept {
    measured.what = what;
    if (what == inline_policy::measure::sleep) measured.sleeps = count_sleeps_();
    measured.began = now();
}

void fs_domain::end_measuring() noexcept {
    const auto took = now() - measured.began;
    const auto what = std::exchange(measured.what, inline_policy::measure::nothing);
    if (what == inline_policy::measure::time) {
        inline_policy_.record_time(took);
    } else if (inline_policy_.record_examined(took, count_sleeps_() != measured.sleeps)) {
        record_blocked_call();
    }
}

void fs_domain::begin_offloaded_call() noexcept {
    domain_of_this_call = this;
    if (state_.may_change()) measured.began = now();
}

void fs_domain::end_offloaded_call() noexcept {
    domain_of_this_call = nullptr;
    if (is_inline() or not state_.may_change()) return;
    const auto ended = now();
    if (inline_policy_.record_offloaded_call(ended - measured.began, ended)) state_.become_inline();
}

clock_source::steady_time fs_domain::now() const noexcept {
    return clock_ != nullptr ? clock_->steady_now() : std::chrono::steady_clock::now();
}

}  // namespace sluice::vfs
