#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/range_lock_subjects.hpp"
#include "bench/range_lock_workloads.hpp"
#include "sluice/base/ensure.hpp"

// Long queues for one range, on one thread: the cost of a grant with many waiters.

namespace sluice::bench::range_locks {

/// The queue of a lock with requests that do not block a thread: `ask` and `is_granted` of entries,
/// and `release` of granted ones. Other locks have none.
template <class Lock>
class waiting_line;

template <>
class waiting_line<kara_tree> {
public:
    using entry = kara_tree::holder;

    [[nodiscard]] bool ask(entry& one, const extent& where, access how) { return lock_.ask(one, where, how); }
    [[nodiscard]] static bool is_granted(const entry& one) noexcept { return kara_tree::is_granted(one); }
    void release(entry& one) noexcept { lock_.unlock(one); }

private:
    kara_tree lock_{the_area};
};

template <>
class waiting_line<sluice_range_lock> {
public:
    class entry final : public sync::range_request {
    public:
        ~entry() = default;
        bool is_granted = false;

    private:
        void completed(bool granted) noexcept override { is_granted = granted; }
    };

    [[nodiscard]] bool ask(entry& one, const extent& where, access how) noexcept {
        one.is_granted = lock_.lock_async(one, sluice_range_lock::wanted(where, how));
        return one.is_granted;
    }
    [[nodiscard]] static bool is_granted(const entry& one) noexcept { return one.is_granted; }
    static void release(entry& one) noexcept { one.take().unlock(); }

private:
    sync::range_lock lock_;
};

template <class Lock>
inline constexpr bool has_queue = requires { typename waiting_line<Lock>::entry; };

/// The ranges of the queue: one range; ranges with one byte in common; one range, nine of ten
/// readers.
enum class queued { equal, unequal, readers };

[[nodiscard]] inline std::vector<drawn_request> draw_queue(queued what) {
    constexpr std::uint64_t middle = slot_bytes * slot_count / 2;
    seeded_random random(42);
    std::vector<drawn_request> drawn(4096);
    for (std::size_t i = 0; i != drawn.size(); ++i) {
        drawn[i].where = {.begin = middle, .end = middle + slot_bytes};
        if (what == queued::unequal)
            drawn[i].where = {.begin = middle - random.below(middle),
                              .end = middle + 1 + random.below(middle)};
        if (what == queued::readers and i % 10 != 0) drawn[i].how = access::shared;
    }
    return drawn;
}

/// The oldest of a queue releases its range, which grants others, and requests it again after all
/// others. That is one pair.
template <class Lock>
void rotate_queue(run& repeat, std::size_t waiting, queued what) {
    using entry = typename waiting_line<Lock>::entry;
    const std::vector<drawn_request> requests = draw_queue(what);
    waiting_line<Lock> queue;
    const std::size_t size = waiting + 1;  // one holds
    const auto entries = std::make_unique<entry[]>(size);
    std::size_t asked = 0;
    const auto ask = [&] {
        const drawn_request& wanted = requests[asked % requests.size()];
        (void)queue.ask(entries[asked % size], wanted.where, wanted.how);
        ++asked;
    };
    while (asked != size)
        ask();
    run_on_threads(repeat, 1, [&](unsigned, const std::atomic<bool>& is_over) {
        std::uint64_t pairs = 0;
        for (; not is_over.load(std::memory_order_relaxed); ++pairs) {
            entry& oldest = entries[asked % size];
            ENSURE(queue.is_granted(oldest), "the oldest is next");
            queue.release(oldest);
            ask();
        }
        return pairs;
    });
    for (std::size_t left = size; left != 0; --left, ++asked)
        queue.release(entries[asked % size]);
}

}  // namespace sluice::bench::range_locks
