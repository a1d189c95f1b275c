#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sluice/vfs/change_feed.hpp"

// Internal to the change feeds.

namespace sluice::vfs {

/// A watch whose changes are delivered from a queue.
class queued_watch : public change_watch {
public:
    [[nodiscard]] change_listener& listener() const noexcept { return listener_; }

protected:
    explicit queued_watch(change_listener& listener) noexcept : listener_(listener) {}

private:
    friend class change_queue;
    change_listener& listener_;
    std::uint64_t last_item_ = 0;  // the number of the item queued last for it
};

/// The changes that have not been delivered to listeners. A listener may end its watch or others,
/// and cause changes, so none are delivered while a feed iterates over its own tables. Thread
/// safety: its feed locks it.
class change_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return queued_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return queued_.size(); }
    /// Adds a change. Drops a change of attributes that directly follows the creation of the same
    /// name and was not delivered separately: the creator of a file also sets its attributes, which
    /// is not a separate change. Complexity: constant, for any number of watches with queued
    /// changes.
    void add(queued_watch& to, change_kind what, bool is_directory, std::string path);
    void add_overflow(queued_watch& to) { put({.to = &to, .is_overflow = true}); }
    void add_end(queued_watch& to) { put({.to = &to, .is_end = true}); }
    void add_move(queued_watch& to) { put({.to = &to, .is_move = true}); }

    /// Drops all changes for a watch that ends.
    void forget(const queued_watch& gone) noexcept;
    /// Delivers all changes, including those added during the call.
    void deliver_all() noexcept;

private:
    struct item {
        queued_watch* to = nullptr;
        change_kind what = change_kind::modified;
        bool is_directory = false;
        bool is_overflow = false;
        bool is_end = false;
        bool is_move = false;  // the watched directory itself was moved
        std::string path{};
    };
    void put(item what);
    [[nodiscard]] bool is_of_making(const queued_watch& to, std::string_view path) const noexcept;

    std::deque<item> queued_;
    // The number of the item delivered last; the next one is the front.
    std::uint64_t delivered_ = 0;
};

}  // namespace sluice::vfs
