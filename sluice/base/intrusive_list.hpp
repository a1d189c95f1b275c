#pragma once

#include "sluice/base/ensure.hpp"

namespace sluice {

template <class T>
class list_hook;

template <class T, list_hook<T> T::* Link>
class intrusive_list;

/// The link of a `T` in an `intrusive_list`; a member of the element. Destroying it while it is
/// linked stops the program, because the list would point to freed memory. Neither copied nor
/// moved: neighbours store the element's address. Thread safety: as its list.
template <class T>
class list_hook {
public:
    list_hook() noexcept = default;
    list_hook(const list_hook&) = delete;
    list_hook& operator=(const list_hook&) = delete;
    ~list_hook() { ENSURE(!is_linked(), "list element destroyed while linked"); }

    [[nodiscard]] bool is_linked() const noexcept { return next_ != nullptr; }

private:
    template <class U, list_hook<U> U::* Link>
    friend class intrusive_list;

    T* next_ = nullptr;
    T* previous_ = nullptr;
};

/// A first-in first-out list of elements that the caller owns:
/// `intrusive_list<waiter, &waiter::link>`.
///
/// Owns nothing; an element outlives its membership. Two hooks let one element be in two lists. The
/// list is one word and may be moved. It must be empty when destroyed. Allocates: nothing.
/// Complexity: every operation O(1). Thread safety: none.
///
/// Invariants:
///   1. The elements form a ring; `first_` is its oldest, and `first_`'s previous is the newest.
///   2. A hook is linked if and only if its two pointers are not null (a single element points at
///      itself).
template <class T, list_hook<T> T::* Link>
class intrusive_list {
public:
    class iterator;

    intrusive_list() noexcept = default;
    intrusive_list(intrusive_list&& from) noexcept : first_(from.first_) { from.first_ = nullptr; }
    intrusive_list& operator=(intrusive_list&& from) noexcept {
        ENSURE(empty() or this == &from, "a list is assigned to while it has elements");
        T* const taken = from.first_;
        from.first_ = nullptr;
        first_ = taken;
        return *this;
    }
    ~intrusive_list() { ENSURE(empty(), "list destroyed while it has elements"); }

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

    /// Return the oldest and the newest element, or null if the list is empty.
    [[nodiscard]] T* front() const noexcept { return first_; }
    [[nodiscard]] T* back() const noexcept { return first_ != nullptr ? (first_->*Link).previous_ : nullptr; }

    void push_back(T& element) noexcept { insert_before_first(element); }
    void push_front(T& element) noexcept {
        insert_before_first(element);  // in a ring, last and before-first are the same place
        first_ = &element;
    }

    /// Removes and returns the oldest element, or null if the list is empty.
    T* pop_front() noexcept {
        T* const oldest = first_;
        if (oldest != nullptr) erase(*oldest);
        return oldest;
    }

    /// Removes `element`, which must be in this list. The check for another list only detects a
    /// single element.
    void erase(T& element) noexcept {
        list_hook<T>& hook = element.*Link;
        ENSURE(hook.is_linked() and first_ != nullptr);
        if (hook.next_ == &element) {
            ENSURE(first_ == &element, "the element is in another list");
            first_ = nullptr;
        } else {
            (hook.previous_->*Link).next_ = hook.next_;
            (hook.next_->*Link).previous_ = hook.previous_;
            if (first_ == &element) first_ = hook.next_;
        }
        hook.next_ = hook.previous_ = nullptr;
    }

    /// Moves all of `from`, in order, to the end of this list.
    void append(intrusive_list&& from) noexcept {
        ENSURE(this != &from);
        if (from.empty()) return;
        if (!empty()) {
            T* const our_last = back();
            T* const their_last = from.back();
            (our_last->*Link).next_ = from.first_;
            (from.first_->*Link).previous_ = our_last;
            (their_last->*Link).next_ = first_;
            (first_->*Link).previous_ = their_last;
        } else {
            first_ = from.first_;
        }
        from.first_ = nullptr;
    }

    /// Oldest first. Only erasing the iterator's current element invalidates it, so step before
    /// erasing; while iterating, push to the back only.
    [[nodiscard]] iterator begin() const noexcept { return {this, first_}; }
    [[nodiscard]] iterator end() const noexcept { return {this, nullptr}; }

private:
    void insert_before_first(T& element) noexcept {
        list_hook<T>& hook = element.*Link;
        ENSURE(!hook.is_linked(), "the element is in a list already");
        if (first_ == nullptr) {
            hook.next_ = hook.previous_ = first_ = &element;
            return;
        }
        list_hook<T>& first = first_->*Link;
        hook.next_ = first_;
        hook.previous_ = first.previous_;
        (first.previous_->*Link).next_ = &element;
        first.previous_ = &element;
    }

    T* first_ = nullptr;
};

// Enough for a range-for; <iterator> would cost every includer more.
template <class T, list_hook<T> T::* Link>
class intrusive_list<T, Link>::iterator {
public:
    iterator() noexcept = default;
    [[nodiscard]] T& operator*() const noexcept { return *at_; }
    [[nodiscard]] T* operator->() const noexcept { return at_; }
    iterator& operator++() noexcept {
        T* const next = (at_->*Link).next_;
        at_ = next == list_->first_ ? nullptr : next;  // once around the ring
        return *this;
    }
    iterator operator++(int) noexcept {
        const iterator before = *this;
        ++*this;
        return before;
    }
    [[nodiscard]] friend bool operator==(iterator a, iterator b) noexcept { return a.at_ == b.at_; }

private:
    friend intrusive_list;
    iterator(const intrusive_list* list, T* at) noexcept : list_(list), at_(at) {}

    const intrusive_list* list_ = nullptr;
    T* at_ = nullptr;
};

}  // namespace sluice
