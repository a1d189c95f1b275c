#pragma once

#include <atomic>

#include "sluice/base/ensure.hpp"
#include "sluice/base/intrusive_list.hpp"

namespace sluice::io {

/// The pending operations of a cancel_scope, and the scopes nested in it. It is separate from the
/// scope, so that a test can explore every order of events (`Flag` is std::atomic<bool> outside
/// tests). `Entry` has a member end(), which ends it early and signals nothing itself.
///
/// Thread safety: is_cancelled() and has_cut_short() by any thread; the other members are guarded
/// by one lock for all the scopes that are nested in each other.
///
/// Invariants:
///   1. A scope in a cancelled scope is cancelled.
///   2. An entry of a cancelled scope has been ended.
template <class Entry, list_hook<Entry> Entry::* Link, class Flag = std::atomic<bool>>
class scope_tree {
public:
    scope_tree() noexcept = default;
    scope_tree(const scope_tree&) = delete;
    scope_tree& operator=(const scope_tree&) = delete;
    ~scope_tree() = default;

    // relaxed: they order no other access; everything else is under the lock.
    [[nodiscard]] bool is_cancelled() const noexcept { return is_cancelled_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool has_cut_short() const noexcept {
        return has_cut_short_.load(std::memory_order_relaxed);
    }

    /// Another thread may have cancelled this since the entry was begun: then it is ended.
    void enter(Entry& waiting) noexcept {
        pending_.push_back(waiting);
        if (is_cancelled()) waiting.end();
    }
    void leave(Entry& waiting) noexcept { pending_.erase(waiting); }
    /// Removes and returns one entry; null for none.
    [[nodiscard]] Entry* pop() noexcept { return pending_.pop_front(); }

    /// Complexity: linear in the entries and scopes.
    void cancel() noexcept {
        // Without recursion: scopes may nest as deep as tasks do.
        intrusive_list<scope_tree, &scope_tree::walk_link_> to_cancel;
        to_cancel.push_back(*this);
        while (scope_tree* const at = to_cancel.pop_front()) {
            if (at->is_cancelled()) continue;  // and so are all scopes nested in it
            at->cancel_own();
            // A scope that is in a list already is cancelled by the call that this one interrupts.
            for (scope_tree& inner : at->nested_)
                if (not inner.walk_link_.is_linked()) to_cancel.push_back(inner);
        }
    }

    /// Records that an operation was ended here because of the cancellation.
    void record_cut_short() noexcept {
        for (scope_tree* at = this; at != nullptr and at->is_cancelled(); at = at->outer_)
            at->has_cut_short_.store(true, std::memory_order_relaxed);
    }

    [[nodiscard]] bool is_alone() const noexcept { return outer_ == nullptr and nested_.empty(); }

    void nest_in(scope_tree& outer) noexcept {
        if (outer_ == &outer or this == &outer) return;
        ENSURE(outer_ == nullptr, "a cancel scope is nested in one other at most");
        for (const scope_tree* at = &outer; at != nullptr; at = at->outer_)
            ENSURE(at != this, "a cancel scope cannot be nested in itself");
        outer_ = &outer;
        outer.nested_.push_back(*this);
        if (outer.is_cancelled()) cancel();
    }

    /// Before destruction: detaches the nested scopes, and this from its outer one.
    void leave_all() noexcept {
        ENSURE(pending_.empty(), "a cancel scope is destroyed while operations are pending in it");
        while (scope_tree* const inner = nested_.pop_front())
            inner->outer_ = nullptr;
        if (outer_ != nullptr) outer_->nested_.erase(*this);
        outer_ = nullptr;
    }

private:
    void cancel_own() noexcept {
        is_cancelled_.store(true, std::memory_order_relaxed);
        // Entries signal nothing from inside, so the list does not change.
        for (Entry& each : pending_)
            each.end();
    }

    Flag is_cancelled_{false};
    Flag has_cut_short_{false};
    scope_tree* outer_ = nullptr;
    intrusive_list<Entry, Link> pending_;
    list_hook<scope_tree> sibling_link_;
    list_hook<scope_tree> walk_link_;  // only within cancel()
    intrusive_list<scope_tree, &scope_tree::sibling_link_> nested_;
};

}  // namespace sluice::io
