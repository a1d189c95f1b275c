#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>

#include "sluice/sync/small_mutex.hpp"
#include "sluice/vfs/host/host_metadata.hpp"

namespace sluice::vfs {

/// The private extended attributes (docs/formats/host_metadata.md) that are read whenever a file is
/// opened.
struct private_attributes {
    std::optional<stored_metadata> metadata{};
    bool has_security = false;
    bool has_streams = false;  // the reference to large streams, which are files of a store
};

/// A cache of private attributes. Reading them by name is one of the more expensive calls.
///
/// A process that changes an attribute also changes the change time, except for two changes within
/// one tick of the kernel's clock. The attributes are therefore valid as long as the change time is
/// the same, if it was already some ticks old when they were read: the caller of record() checks
/// that. This also holds if another file reuses the inode number, because that file is younger.
/// Monitor, of several stripes with a mutex each. Allocates: nothing. Complexity: O(1); entries
/// replace each other.
class attribute_memory {
public:
    /// Returns std::nullopt if they are not cached.
    [[nodiscard]] std::optional<private_attributes> find(const file_key& file,
                                                         time_point change_time) const noexcept {
        const std::size_t hash = std::hash<file_key>{}(file);
        const stripe& here = stripes_[hash % stripe_count];
        const std::scoped_lock guard(here.mutex);
        const entry& there = here.entries[hash / stripe_count % entries_per_stripe];
        if (there.file != file or there.change_time != change_time) return std::nullopt;
        return there.own;
    }
    void record(const file_key& file, time_point change_time, const private_attributes& own) noexcept {
        const std::size_t hash = std::hash<file_key>{}(file);
        stripe& here = stripes_[hash % stripe_count];
        const std::scoped_lock guard(here.mutex);
        here.entries[hash / stripe_count % entries_per_stripe] = {
            .file = file, .change_time = change_time, .own = own};
    }

private:
    static constexpr std::size_t stripe_count = 16;
    // A prime, so that all bits of the hash are used.
    static constexpr std::size_t entries_per_stripe = 61;
    static constexpr std::size_t cache_line_bytes = 64;
    struct entry {
        file_key file{};
        time_point change_time{};
        private_attributes own{};
    };
    struct alignas(cache_line_bytes) stripe {
        mutable sync::basic_small_mutex<sync::real_atomics> mutex;
        std::array<entry, entries_per_stripe> entries{};
    };

    std::array<stripe, stripe_count> stripes_{};
};

}  // namespace sluice::vfs
