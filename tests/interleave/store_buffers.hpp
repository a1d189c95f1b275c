#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::interleave {

/// The stores of each thread that are not visible to other threads yet. The oldest store of a
/// thread becomes visible at any time; a thread sees its own stores at once.
///
/// A read-modify-write operation whose order is not seq_cst is delayed like a store, because later
/// loads may be performed before it is visible. It stays atomic: it becomes visible before any
/// other change of its location.
class store_buffers {
public:
    struct store {
        void* location = nullptr;
        std::uint64_t value = 0;
        void (*apply)(void* location, std::uint64_t value) = nullptr;
        bool is_exchange = false;  // has read the location
        bool is_seq_cst = false;
    };

    explicit store_buffers(std::size_t threads) : of_(threads) {}

    void add(unsigned thread, const store& one) { of_[thread].push_back(one); }
    [[nodiscard]] bool empty(unsigned thread) const { return of_[thread].empty(); }
    [[nodiscard]] bool empty() const {
        return std::ranges::all_of(of_, [](const auto& each) { return each.empty(); });
    }
    /// Returns the last value that the thread has stored at the location, if it is not visible yet.
    [[nodiscard]] std::optional<std::uint64_t> latest(unsigned thread, const void* location) const {
        std::optional<std::uint64_t> found;
        for (const store& each : of_[thread])
            if (each.location == location) found = each.value;
        return found;
    }

    /// Makes the oldest store of a thread visible.
    void flush_one(unsigned thread) {
        ENSURE(not empty(thread));
        const store oldest = of_[thread].front();
        flush_stores(thread, oldest.location);
        of_[thread].pop_front();
        oldest.apply(oldest.location, oldest.value);
    }
    /// Makes the stores of a thread visible up to its last one that is seq_cst. Returns whether
    /// there was one.
    bool flush_seq_cst(unsigned thread) {
        bool is_any = false;
        while (std::ranges::any_of(of_[thread], &store::is_seq_cst)) {
            flush_one(thread);
            is_any = true;
        }
        return is_any;
    }
    void flush(unsigned thread) {
        while (not empty(thread))
            flush_one(thread);
    }
    void flush() {
        for (unsigned thread = 0; thread != of_.size(); ++thread)
            flush(thread);
    }
    /// Makes exchanges of others visible before a thread changes or exchanges the location.
    void flush_stores(unsigned by, const void* location) {
        const auto exchanges = [&](const store& each) {
            return each.is_exchange and each.location == location;
        };
        for (unsigned other = 0; other != of_.size(); ++other)
            while (other != by and std::ranges::any_of(of_[other], exchanges))
                flush_one(other);
    }
    /// Makes all stores to the location visible, because it is destroyed.
    void settle_all(const void* location) {
        const auto is_here = [&](const store& each) { return each.location == location; };
        for (unsigned thread = 0; thread != of_.size(); ++thread)
            while (std::ranges::any_of(of_[thread], is_here))
                flush_one(thread);
    }

private:
    std::vector<std::deque<store>> of_;
};

}  // namespace sluice::interleave
