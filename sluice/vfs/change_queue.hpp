#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sluice/vfs/change_feed.hpp"

// Internal to the change feeds.

namespace sluice::vfs {

/// A watch whose listener is told from a queue.
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

/// The changes that have not been delivered to listeners yet. A listener may drop its watch or others, and
/// cause changes, so none are delivered while a feed walks its own tables. Thread safety: that of its feed,
/// which locks it.
class change_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return told_next_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return told_next_.size(); }
    /// Drops a change of attributes that directly follows the making of the same name and was not told apart
    /// from it: who makes a file sets its attributes as well, and that is no change of its own.
    /// Complexity: constant, however many watches have changes in the queue.
    void add(queued_watch& to, change_kind what, bool is_directory, std::string path);
    void add_overflow(queued_watch& to) { put({.to = &to, .is_overflow = true}); }
    void add_end(queued_watch& to) { put({.to = &to, .is_end = true}); }

    /// The watch goes: what was meant for its listener is dropped.
    void forget(const queued_watch& gone) noexcept;
    /// Delivers all changes, including those added in the meantime.
    void deliver_all() noexcept;

private:
    struct item {
        queued_watch* to = nullptr;
        change_kind what = change_kind::modified;
        bool is_directory = false;
        bool is_overflow = false;
        bool is_end = false;
        std::string path{};
    };
    void put(item what);
    [[nodiscard]] bool is_of_making(const queued_watch& to, std::string_view path) const noexcept;

    std::deque<item> told_next_;
    std::uint64_t told_ = 0;  // items; that with this number came last, and the next one is the front
};

}  // namespace sluice::vfs
