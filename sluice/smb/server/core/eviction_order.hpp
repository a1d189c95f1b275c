#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

/// Resources that clients can make the server hold before they have authenticated, in the order in
/// which the server drops them. victim() is the oldest entry of the client that has most entries;
/// among several such clients, the one with the oldest entry comes first. So a client that creates
/// many entries drops its own, and entries from many clients are dropped by age.
///
/// Thread safety: as its owner. Allocates: three nodes per entry at most.
/// Complexity: O(log n) for each call. T: a pointer or a small value.
template <class Client, class T>
class eviction_order {
public:
    /// Identifies an entry until it is removed.
    struct entry {
        Client client{};
        std::uint64_t number = 0;
        [[nodiscard]] friend auto operator<=>(const entry&, const entry&) noexcept = default;
    };

    entry add(const Client& client, T what) {
        const entry added{.client = client, .number = next_++};
        rank(client, [&] { entries_.emplace(added, std::move(what)); }, +1);
        return added;
    }
    /// `which` is in the order (ENSURE).
    void remove(const entry& which) noexcept {
        rank(which.client, [&] { ENSURE(entries_.erase(which) == 1, "an entry is removed once"); }, -1);
    }
    /// Returns std::nullopt if the order is empty.
    [[nodiscard]] std::optional<T> victim() const noexcept {
        if (ranks_.empty()) return std::nullopt;
        return first_of(ranks_.rbegin()->client)->second;
    }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    /// The entries of the client that has most.
    [[nodiscard]] std::size_t most() const noexcept { return ranks_.empty() ? 0 : ranks_.rbegin()->entries; }

private:
    struct rank_of_client {
        std::size_t entries = 0;
        std::uint64_t age = 0;  // complement of the number of its oldest entry
        Client client{};
        [[nodiscard]] friend auto operator<=>(const rank_of_client&,
                                              const rank_of_client&) noexcept = default;
    };

    [[nodiscard]] auto first_of(const Client& client) const noexcept {
        return entries_.lower_bound(entry{.client = client, .number = 0});
    }
    [[nodiscard]] rank_of_client rank_now(const Client& client, std::size_t entries) const noexcept {
        return {.entries = entries, .age = ~first_of(client)->first.number, .client = client};
    }
    template <class Change>
    void rank(const Client& client, Change change, int more) {
        std::size_t& count = counts_[client];
        if (count != 0) ranks_.erase(rank_now(client, count));
        change();
        count += static_cast<std::size_t>(more);
        if (count != 0)
            ranks_.insert(rank_now(client, count));
        else
            counts_.erase(client);
    }

    std::map<entry, T> entries_;  // the oldest of each client first
    std::map<Client, std::size_t> counts_;
    std::set<rank_of_client> ranks_;
    std::uint64_t next_ = 1;
};

}  // namespace sluice::smb::server
