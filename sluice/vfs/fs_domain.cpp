#include "sluice/vfs/fs_domain.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

constinit thread_local inline_call_slot slot_of_this_thread;
constinit thread_local fs_domain* domain_of_this_call = nullptr;

std::uint32_t next_number() noexcept {
    static constinit std::atomic<std::uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // unique is enough
}

}  // namespace

inline_call_slot& inline_call_slot::of_this_thread() noexcept {
    return slot_of_this_thread;
}

fs_domain::fs_domain(fs_domain_options options)
    : number_(next_number()),
      name_(std::move(options.name)),
      policy_(options.policy),
      is_inline_(policy_ == call_policy::always_inline or policy_ == call_policy::starts_inline),
      workers_(options.threads) {}

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

void fs_domain::begin_inline_call() noexcept {
    ENSURE(domain_of_this_call == nullptr, "a call is made inside of another");
    domain_of_this_call = this;
    slot_of_this_thread.begin(number_);
}

void fs_domain::end_inline_call() noexcept {
    slot_of_this_thread.end();
    domain_of_this_call = nullptr;
}

void fs_domain::begin_offloaded_call() noexcept {
    domain_of_this_call = this;
}

void fs_domain::end_offloaded_call() noexcept {
    domain_of_this_call = nullptr;
}

}  // namespace sluice::vfs
