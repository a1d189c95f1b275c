#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "bench/range_lock_peers/peers.hpp"
#include "sluice/sync/range_lock.hpp"
#include "sluice/sync/skiplist/skiplist_range_lock.hpp"

// The subjects of the benchmark of range locks, and their names.

namespace sluice::bench::range_locks {

/// Returns the allocated bytes of one of our locks, if it ever allocates.
template <class Lock>
[[nodiscard]] std::size_t bytes_allocated_by(Lock& lock) noexcept {
    if constexpr (requires { lock.bytes_allocated(); }) return lock.bytes_allocated();
    return 0;
}

/// The holder of one of our locks: a guard constructed in its final place, because moving one may
/// be expensive.
template <class Guard>
struct guard_holder {
    union {
        Guard guard;  // from lock() to unlock()
    };
    guard_holder() noexcept {}
    ~guard_holder() {}
};

/// sluice::sync::range_lock in the form of the peers.
class sluice_range_lock {
public:
    static constexpr bool has_readers = true;
    using holder = guard_holder<sync::range_guard>;
    static constexpr std::size_t held_bytes = sizeof(sync::range_guard);

    explicit sluice_range_lock(const resource&) noexcept {}

    [[nodiscard]] std::size_t object_bytes() noexcept { return sizeof(lock_) + bytes_allocated_by(lock_); }

    void lock(holder& held, const extent& where, access how) noexcept {
        ::new (&held.guard) auto(lock_.lock(wanted(where, how)));
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access how) noexcept {
        ::new (&held.guard) auto(lock_.try_lock(wanted(where, how)));
        if (held.guard) return true;
        std::destroy_at(&held.guard);
        return false;
    }
    void unlock(holder& held) noexcept { std::destroy_at(&held.guard); }

    [[nodiscard]] static sync::lock_args wanted(const extent& where, access how) noexcept {
        return {.where = sync::byte_range::between({.first = where.begin, .last = where.end - 1}),
                .mode = how == access::shared ? sync::lock_mode::shared : sync::lock_mode::exclusive};
    }

private:
    sync::range_lock lock_;
};

/// sluice::sync::skiplist_range_lock in the form of the peers.
class sluice_skiplist {
public:
    static constexpr bool has_readers = false;
    using holder = guard_holder<sync::skiplist_range_guard>;
    static constexpr std::size_t node_bytes = 64;
    static constexpr std::size_t held_bytes = sizeof(sync::skiplist_range_guard) + node_bytes;

    explicit sluice_skiplist(const resource& what)
        : lock_({.height_max = std::min(what.height_max, sync::skiplist::height_max)}) {}

    [[nodiscard]] std::size_t object_bytes() noexcept { return sizeof(lock_) + lock_.nodes() * node_bytes; }

    void lock(holder& held, const extent& where, access) noexcept {
        ::new (&held.guard) auto(lock_.lock(wanted(where)));
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access) noexcept {
        ::new (&held.guard) auto(lock_.try_lock(wanted(where)));
        if (held.guard) return true;
        std::destroy_at(&held.guard);
        return false;
    }
    void unlock(holder& held) noexcept { std::destroy_at(&held.guard); }

private:
    [[nodiscard]] static sync::byte_range wanted(const extent& where) noexcept {
        return sync::byte_range::between({.first = where.begin, .last = where.end - 1});
    }

    sync::skiplist_range_lock lock_;
};

/// The features of a subject beyond the concept range_lock.
template <class Lock>
inline constexpr bool excludes = true;
template <>
inline constexpr bool excludes<no_lock> = false;

/// Whether one thread may hold several ranges.
template <class Lock>
inline constexpr bool has_ranges = true;
template <>
inline constexpr bool has_ranges<one_mutex> = false;

/// Whether it uses resource::height_max.
template <class Lock>
inline constexpr bool has_height = false;
template <>
inline constexpr bool has_height<song_skip_list> = true;
template <>
inline constexpr bool has_height<sluice_skiplist> = true;

/// Calls `visit.template operator()<Lock>(name)` for every subject. A new one is one line
/// here, a struct like the one above if it is not in the form of the peers, and its
/// traits where they differ.
template <class Visit>
void for_each_subject(Visit&& visit) {
    visit.template operator()<no_lock>("limit");
    visit.template operator()<sluice_range_lock>("sluice.range_lock");
    visit.template operator()<sluice_skiplist>("sluice.skiplist");
    visit.template operator()<pnova_segments>("pnova_segments");
    visit.template operator()<leanstore_bitmap>("leanstore_bitmap");
    visit.template operator()<kogan_list<true>>("kogan_list.fast_path");
    visit.template operator()<kogan_list<false>>("kogan_list");
    visit.template operator()<kogan_reader_writer_list>("kogan_list.readers");
    visit.template operator()<kara_tree>("kara_tree");
    visit.template operator()<song_skip_list>("song_skip_list");
    visit.template operator()<mutex_and_map>("mutex_and_map");
    visit.template operator()<one_mutex>("one_mutex");
}

}  // namespace sluice::bench::range_locks
