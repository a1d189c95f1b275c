#pragma once

#include <type_traits>

#include "sluice/base/ensure.hpp"

namespace sluice {

template <class T>
class heap_hook;

template <class T, heap_hook<T> T::* Link, class Before>
class pairing_heap;

/// The links of a `T` in a `pairing_heap`; a member of the element. Destroying it while it is
/// linked stops the program. Neither copied nor moved. Thread safety: as its heap.
template <class T>
class heap_hook {
public:
    heap_hook() noexcept = default;
    heap_hook(const heap_hook&) = delete;
    heap_hook& operator=(const heap_hook&) = delete;
    ~heap_hook() { ENSURE(!is_linked(), "heap element destroyed while linked"); }

    [[nodiscard]] bool is_linked() const noexcept { return previous_ != nullptr; }

private:
    template <class U, heap_hook<U> U::* Link, class Before>
    friend class pairing_heap;

    T* child_ = nullptr;     // the first child
    T* next_ = nullptr;      // the next sibling
    T* previous_ = nullptr;  // the previous sibling, for a first child its
                             // parent, for the root itself
};

/// A priority queue of elements that the caller owns, the first by `Before` on top:
/// `pairing_heap<timer, &timer::link, earlier>`. `Before` is a strict weak ordering, noexcept and
/// stateless. The compared values must not change while an element is linked: erase, change, push.
/// Equal elements come out in any order, but in the same one for the same sequence of operations.
///
/// A pairing heap, because it needs three words per element and no array that grows, and the timers
/// of a server are mostly pushed and erased before they expire. No recursion: the tree may be as
/// deep as the number of elements. Owns nothing; must be empty when destroyed. Allocates: nothing.
/// Complexity: push and top O(1), pop and erase O(log n) amortised over the operations, O(n) at
/// worst. Thread safety: none.
///
/// Invariants:
///   1. No element comes before its parent.
///   2. `root_` has no sibling; its `previous_` is itself. An element is linked if and only if
///      `previous_` is not null.
template <class T, heap_hook<T> T::* Link, class Before>
class pairing_heap {
public:
    pairing_heap() noexcept = default;
    pairing_heap(const pairing_heap&) = delete;
    pairing_heap& operator=(const pairing_heap&) = delete;
    ~pairing_heap() { ENSURE(empty(), "heap destroyed while it has elements"); }

    [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }

    /// Returns an element that no other comes before, or null if the heap is empty.
    [[nodiscard]] T* top() const noexcept { return root_; }

    void push(T& element) noexcept {
        ENSURE(!hook(element).is_linked(), "the element is in a heap already");
        make_root(root_ != nullptr ? merge(root_, &element) : &element);
    }

    /// Removes and returns the top, or null if the heap is empty.
    T* pop() noexcept {
        T* const popped = root_;
        if (popped != nullptr) erase(*popped);
        return popped;
    }

    /// Removes `element`, which must be in this heap. The check for another heap only detects its
    /// top.
    void erase(T& element) noexcept {
        heap_hook<T>& gone = hook(element);
        ENSURE(gone.is_linked() and root_ != nullptr);
        T* const orphans = merge_siblings(gone.child_);
        if (gone.previous_ == &element) {
            ENSURE(root_ == &element, "the element is in another heap");
            make_root(orphans);
        } else {
            cut(element);
            if (orphans != nullptr) make_root(merge(root_, orphans));
        }
        gone.child_ = gone.next_ = gone.previous_ = nullptr;
    }

private:
    static heap_hook<T>& hook(T& element) noexcept { return element.*Link; }

    void make_root(T* element) noexcept {
        root_ = element;
        if (element == nullptr) return;
        hook(*element).next_ = nullptr;
        hook(*element).previous_ = element;
    }

    // Removes a child from its parent's list; its own fields are left to the caller.
    static void cut(T& element) noexcept {
        heap_hook<T>& gone = hook(element);
        heap_hook<T>& before = hook(*gone.previous_);
        (before.child_ == &element ? before.child_ : before.next_) = gone.next_;
        if (gone.next_ != nullptr) hook(*gone.next_).previous_ = gone.previous_;
    }

    // Makes the later of two trees the first child of the other and returns that; `a` on a tie. The
    // siblings of both are ignored, and the winner's sibling fields are left to the caller.
    static T* merge(T* a, T* b) noexcept {
        static_assert(std::is_nothrow_invocable_r_v<bool, Before, const T&, const T&>);
        if (Before{}(static_cast<const T&>(*b), static_cast<const T&>(*a))) {
            T* const swapped = a;
            a = b;
            b = swapped;
        }
        heap_hook<T>& winner = hook(*a);
        heap_hook<T>& loser = hook(*b);
        loser.next_ = winner.child_;
        if (loser.next_ != nullptr) hook(*loser.next_).previous_ = b;
        loser.previous_ = a;
        winner.child_ = b;
        return a;
    }

    // Makes one tree of a list of siblings: in pairs from the first to the last, then the pairs
    // from the last to the first. Both passes are needed: merging one by one in one direction
    // costs O(n) for each pop.
    static T* merge_siblings(T* first) noexcept {
        T* pairs = nullptr;  // a stack through next_: the last pair on top
        while (first != nullptr) {
            T* const second = hook(*first).next_;
            T* const rest = second != nullptr ? hook(*second).next_ : nullptr;
            T* const pair = second != nullptr ? merge(first, second) : first;
            hook(*pair).next_ = pairs;
            pairs = pair;
            first = rest;
        }
        T* merged = pairs;
        if (merged != nullptr) pairs = hook(*merged).next_;
        while (merged != nullptr and pairs != nullptr) {
            T* const rest = hook(*pairs).next_;
            merged = merge(merged, pairs);
            pairs = rest;
        }
        return merged;
    }

    T* root_ = nullptr;
};

}  // namespace sluice
