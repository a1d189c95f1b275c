#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "sluice/io/best_available.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io {
namespace {

constexpr const char* variable = "SLUICE_MULTIPLEXER";

enum class back_end : unsigned char { none, io_uring, epoll };

struct choice {
    back_end which;
    std::string reason;
    error refusal{0, ""};
    bool is_forced = false;
};

choice choose() noexcept {
    const char* const forced = std::getenv(variable);
    if (forced != nullptr and forced[0] != '\0') {
        const std::string_view name = forced;
        if (name == "io_uring")
            return {.which = back_end::io_uring,
                    .reason = "io_uring: SLUICE_MULTIPLEXER=io_uring",
                    .is_forced = true};
        if (name == "epoll") return {back_end::epoll, "epoll: SLUICE_MULTIPLEXER=epoll"};
        const error unknown =
            error::with_path(EINVAL, "choose io_uring or epoll", "SLUICE_MULTIPLEXER=" + std::string(name));
        return {back_end::none, "none: " + unknown.message(), unknown};
    }
    const auto tried = try_uring();
    if (tried) return {back_end::io_uring, "io_uring"};
    return {back_end::epoll, "epoll: " + tried.error().message()};
}

// Once per process and without output, so that a sandbox that logs denials logs one line.
const choice& chosen_back_end() noexcept {
    static const choice made = choose();
    return made;
}

// The reason why the first ring failed after the trial had succeeded; null while all succeeded.
// Never freed, because callers may keep views of it.
std::atomic<const std::string*> degradation{nullptr};

void record_degradation(const error& refusal) noexcept {
    if (degradation.load(std::memory_order_relaxed) != nullptr) return;
    const std::string* fresh = nullptr;
    try {
        fresh = new std::string("epoll for some loops: " + refusal.message());  // NOLINT: kept
    } catch (const std::bad_alloc&) {
        return;  // memory is short: the loop matters more than the reason
    }
    const std::string* none = nullptr;
    // release: pairs with best_available_reason().
    const bool is_first = degradation.compare_exchange_strong(none, fresh, std::memory_order_release,
                                                              std::memory_order_relaxed);
    if (not is_first) delete fresh;
}

result<std::unique_ptr<io_multiplexer>> make_ring_else_epoll(run_by threads,
                                                             std::size_t file_threads) noexcept {
    auto ring = make_uring_multiplexer({.threads = threads});
    if (ring) return ring;
    auto epoll = make_epoll_multiplexer(file_threads, threads);
    if (epoll) record_degradation(ring.error());
    return epoll;
}

}  // namespace

result<std::unique_ptr<io_multiplexer>> best_available(std::size_t threads,
                                                       std::size_t file_threads) noexcept {
    if (threads == 0)
        return failure({EINVAL, "make a multiplexer for no threads: pass 1, or how many run it"});
    const run_by by = threads == 1 ? run_by::one : run_by::several;
    const choice& made = chosen_back_end();
    switch (made.which) {
        case back_end::io_uring:
            return made.is_forced ? make_uring_multiplexer({.threads = by})
                                  : make_ring_else_epoll(by, file_threads);
        case back_end::epoll:
            return make_epoll_multiplexer(file_threads, by);
        case back_end::none:
            break;
    }
    return failure(made.refusal);
}

std::string_view best_available_reason() noexcept {
    // acquire: pairs with record_degradation().
    const std::string* const degraded = degradation.load(std::memory_order_acquire);
    return degraded != nullptr ? std::string_view(*degraded) : chosen_back_end().reason;
}

namespace this_thread {
namespace {

thread_local std::unique_ptr<io_multiplexer> own;
thread_local io_multiplexer* chosen = nullptr;

}  // namespace

result<io_multiplexer*> multiplexer() noexcept {
    if (chosen != nullptr) return chosen;
    if (own == nullptr) {
        auto made = best_available();
        if (not made) return failure(made.error());
        own = std::move(*made);
    }
    return own.get();
}

void set_multiplexer(io_multiplexer* multiplexer) noexcept {
    chosen = multiplexer;
}

}  // namespace this_thread
}  // namespace sluice::io
