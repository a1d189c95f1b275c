#pragma once

#include <atomic>
#include <cstddef>

#include "sluice/base/ensure.hpp"

namespace sluice {

template <class T>
class mpsc_hook;

template <class T, mpsc_hook<T> T::* Link>
class intrusive_mpsc_queue;

/// The link of a `T` in an `intrusive_mpsc_queue`; a member of the element. Destroying it while it
/// is linked stops the program. Thread safety: belongs to the owner of the element: the producer
/// until push, the consumer from pop; in between only the queue uses it.
template <class T>
class mpsc_hook {
public:
    mpsc_hook() noexcept = default;
    mpsc_hook(const mpsc_hook&) = delete;
    mpsc_hook& operator=(const mpsc_hook&) = delete;
    ~mpsc_hook() { ENSURE(!linked_, "queue element destroyed while linked"); }

    /// For the element's owner only.
    [[nodiscard]] bool is_linked() const noexcept { return linked_; }

private:
    template <class U, mpsc_hook<U> U::* Link>
    friend class intrusive_mpsc_queue;

    std::atomic<T*> next_{nullptr};
    bool linked_ = false;  // plain: its owner changes with that of the element
};

/// A queue from many threads to one, of elements that the caller owns:
/// `intrusive_mpsc_queue<message, &message::link>`. First in, first out: the order is that of the
/// exchanges in push(), so one producer's elements never overtake each other.
///
/// Thread safety: push() and empty() from any thread; pop() and drain() from one thread at a time,
/// the consumer. Allocates: nothing. Blocks: never; push is wait-free. A producer stopped between
/// the two steps of its push hides later elements until it continues: pop() then returns null
/// although empty() is false.
///
/// To sleep without losing an element: every push() that returned true is followed by a persistent
/// wake-up (eventfd), and the consumer sleeps only if empty() after pop() returned null; otherwise
/// it polls again.
///
/// Once an element has been popped, its push does not access the queue or any element again: the
/// consumer may destroy both.
///
/// Invariants:
///   1. `newest_` is null if and only if the queue is empty; only the consumer makes it null.
///   2. The producer that changed `newest_` from null delivers its element through `oldest_`; every
///      other one through its predecessor's `next_`. So each of these has one writer at a time, and
///      an element is popped only after its one outgoing link has been written or ruled out.
template <class T, mpsc_hook<T> T::* Link>
class intrusive_mpsc_queue {
public:
    intrusive_mpsc_queue() noexcept = default;
    intrusive_mpsc_queue(const intrusive_mpsc_queue&) = delete;
    intrusive_mpsc_queue& operator=(const intrusive_mpsc_queue&) = delete;
    ~intrusive_mpsc_queue() { ENSURE(empty(), "queue destroyed while it has elements"); }

    /// Queues `element`, which must exist until it is popped. Returns whether the queue was empty,
    /// that is, whether the consumer may need a wake-up. Any thread.
    bool push(T& element) noexcept {
        mpsc_hook<T>& hook = element.*Link;
        ENSURE(!hook.linked_, "the element is in a queue already");
        hook.linked_ = true;
        hook.next_.store(nullptr, std::memory_order_relaxed);  // published by the exchange

        // release: the next producer's exchange sees `next_` null before it stores there. acquire
        // pairs with that release of the previous producer, and with the consumer's in take_last(),
        // so that our store to `oldest_` comes after its clearing of it.
        T* const previous = newest_.exchange(&element, std::memory_order_acq_rel);
        // release: the element's contents; pairs with the acquire loads in pop().
        if (previous == nullptr) {
            oldest_.store(&element, std::memory_order_release);
        } else {
            (previous->*Link).next_.store(&element, std::memory_order_release);
        }
        return previous == nullptr;
    }

    /// Returns whether the queue is empty. After a true result, the next push(), if any, returns
    /// true. Any thread; only a hint for threads other than the consumer.
    [[nodiscard]] bool empty() const noexcept {
        // relaxed: does not refer to an element's contents; coherence with the exchange suffices
        // for the contract.
        return newest_.load(std::memory_order_relaxed) == nullptr;
    }

    /// Removes and returns the oldest element, or null if there is none or its push has not
    /// finished. Consumer only.
    T* pop() noexcept {
        if (front_ == nullptr and !receive_first()) return nullptr;
        T* const popped = front_;
        // acquire: the next element's contents; pairs with the release store in push().
        T* next = ((*popped).*Link).next_.load(std::memory_order_acquire);
        if (next == nullptr and !take_last(popped)) {
            // A later element was pushed; it may have linked itself since.
            next = ((*popped).*Link).next_.load(std::memory_order_acquire);  // pairs as above
            if (next == nullptr) return nullptr;
        }
        front_ = next;
        (popped->*Link).linked_ = false;
        return popped;
    }

    /// Pops the elements queued at the time of the call, in order, and passes each to `use(T&)`,
    /// which may push to this queue (the same element too) but not pop. Returns their number. Stops
    /// early at an unfinished push. Bounded, so that elements that queue themselves again cannot
    /// hold up the consumer. Consumer only.
    template <class Use>
    std::size_t drain(Use&& use) noexcept(noexcept(use(*static_cast<T*>(nullptr)))) {
        // relaxed: compared, never followed.
        const T* const last = newest_.load(std::memory_order_relaxed);
        std::size_t count = 0;
        if (last == nullptr) return count;
        for (bool more = true; more;) {
            T* const element = pop();
            if (element == nullptr) break;
            more = element != last;
            use(*element);
            ++count;
        }
        return count;
    }

private:
    static constexpr std::size_t cache_line_bytes = 64;

    // Takes over the element of the producer that found the queue empty.
    bool receive_first() noexcept {
        // acquire: the element's contents; pairs with the release store in push().
        front_ = oldest_.load(std::memory_order_acquire);
        if (front_ == nullptr) return false;
        // relaxed: take_last() orders the next writer after us.
        oldest_.store(nullptr, std::memory_order_relaxed);
        return true;
    }

    // Empties the queue if `only` is the newest element, so that no producer will
    // ever write its `next_`.
    bool take_last(T* only) noexcept {
        // release: our clearing of `oldest_`, for the producer whose exchange reads this null. A
        // failure is relaxed: the element that came is read through `next_`.
        return newest_.compare_exchange_strong(only, nullptr, std::memory_order_release,
                                               std::memory_order_relaxed);
    }

    // Written by producers (the consumer only when the queue runs empty).
    alignas(cache_line_bytes) std::atomic<T*> newest_{nullptr};
    std::atomic<T*> oldest_{nullptr};
    // The consumer's own: the next result of pop(), once it is known. Separate, so that pushing
    // does not slow popping.
    alignas(cache_line_bytes) T* front_ = nullptr;
};

}  // namespace sluice
