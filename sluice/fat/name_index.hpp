#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/fat/directory_entry.hpp"

namespace sluice::fat {

/// Where a name stands, and how it is shown.
struct name_entry {
    std::uint32_t first_slot = 0;  // of its set: the last piece of its long name, or `slot`
    std::uint32_t slot = 0;        // its entry proper
    std::string name{};            // as a volume shows it (vfs::shown_name)
    std::string alias{};           // the folded short name, if it differs; empty otherwise
    short_name_bytes short_name{};
};

/// The names of a directory: by slot, by name and by short name, the first two without regard to case.
/// A name that leaves is not found any more, but remembered until its slots are given back.
///
/// Invariants: each entry is in one chain for each of its keys, by which its hash says; count() is the number
/// of entries that do not leave. Entries stay where they are in memory.
/// Complexity: O(1), but for next(), which passes over empty slots, and erase() of a name that several
/// entries share, which only damaged volumes have. Allocates: an entry, and 12 bytes for each slot.
/// Thread safety: none of its own.
class name_index {
public:
    /// Nothing may stand at the entry's slot.
    const name_entry* add(name_entry entry);
    void leave(std::uint32_t slot) noexcept;
    void erase(std::uint32_t slot) noexcept;

    /// By the name, else by the short name, of which `folded` is the fold(); of several that share it
    /// one, the first while they are as they were added. Null if there is none.
    [[nodiscard]] const name_entry* find(std::string_view folded) const noexcept;
    [[nodiscard]] const name_entry* at(std::uint32_t slot) const noexcept;
    /// The first at `from` or behind; null at the end.
    [[nodiscard]] const name_entry* next(std::uint32_t from) const noexcept;
    /// Whether one that leaves has, or had, that name.
    [[nodiscard]] bool is_leaving(std::string_view folded) const noexcept;
    /// Whether one has that short name, leaving or not.
    [[nodiscard]] bool has_short(const short_name_bytes& name) const noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

private:
    enum key : std::size_t { by_name, by_alias, by_short, keys };
    static constexpr std::uint32_t nobody = UINT32_MAX;
    struct node {
        name_entry entry;
        bool is_leaving = false;
        std::array<std::uint32_t, keys> hash{};
        std::array<std::uint32_t, keys> next{};  // in the chain; a slot
    };

    template <class Matches>
    [[nodiscard]] const node* search(key by, std::uint32_t hash, Matches matches) const noexcept;
    [[nodiscard]] const node* search_text(std::string_view folded, bool is_leaving) const noexcept;
    [[nodiscard]] std::uint32_t& chain(key by, std::uint32_t hash) noexcept;
    void link(node& one) noexcept;
    void grow();

    std::vector<std::unique_ptr<node>> by_slot_;
    std::array<std::vector<std::uint32_t>, keys> heads_;  // of chains; a power of two of them
    std::size_t nodes_ = 0;
    std::size_t count_ = 0;
};

}  // namespace sluice::fat
