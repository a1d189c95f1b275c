#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/fat/codec/name_text.hpp"

namespace sluice::fat {

struct item;

/// What a file system remembers with a name; a directory only keeps it.
struct name_use {
    std::uint64_t id = 0;        // of its own; 0: the one of its place
    std::weak_ptr<item> held{};  // what is in use under that name
};

/// Where a name stands, and how it is shown.
struct name_entry {
    std::uint32_t first_slot = 0;  // of its set: the last piece of its long name, or `slot`
    std::uint32_t slot = 0;        // its entry proper
    name_text name{};              // as a volume shows it (vfs::shown_name)
    std::string alias{};           // the short name, shown, if it differs by more than case; else empty
    mutable name_use use{};
};

/// The names of a directory: by slot, by name and by short name, the latter two without regard to case.
/// A name that leaves is not found any more, but remembered until its slots are given back.
///
/// What a search looks at, but for the entry that it finds, is small and side by side: who works through
/// thousands of names would wait for memory otherwise.
///
/// Invariants: each entry has a number, and is in one chain for each of its keys, by which its hash says;
/// count() and leaving_ are the numbers of entries that do not leave and that do. Entries stay where they are
/// in memory.
/// Complexity: O(1), but for next(), which passes over empty slots, and erase() of a name that several
/// entries share, which only damaged volumes have. Allocates: an entry, 24 bytes for it, and 4 for each slot;
/// what one took that is gone is kept for another.
/// Thread safety: none of its own.
class name_index {
public:
    /// Nothing may stand at the entry's slot.
    const name_entry* add(name_entry entry);
    void leave(std::uint32_t slot) noexcept;
    void erase(std::uint32_t slot) noexcept;

    /// By the name, else by the short name; of several that share it one, the first while they are as they
    /// were added. Null if there is none.
    [[nodiscard]] const name_entry* find(std::string_view name) const;
    [[nodiscard]] const name_entry* at(std::uint32_t slot) const noexcept;
    /// The first at `from` or behind; null at the end.
    [[nodiscard]] const name_entry* next(std::uint32_t from) const noexcept;
    /// Whether one that leaves has, or had, that name.
    [[nodiscard]] bool is_leaving(std::string_view name) const;
    /// Whether one has that name or short name, leaving or not.
    [[nodiscard]] bool has(std::string_view name) const;
    [[nodiscard]] std::size_t count() const noexcept { return numbers_used() - leaving_; }

private:
    enum key : std::uint32_t { by_name, by_alias, keys };
    static constexpr std::uint32_t nobody = UINT32_MAX;
    struct node {
        name_entry entry;
        bool is_leaving = false;
    };
    struct link {
        std::uint32_t hash = 0;
        std::uint32_t next = nobody;  // in the chain; a number
    };
    using links = std::array<link, keys>;

    // A list whose elements stay where they are, in pieces each as large as all before: memory is read in one
    // direction, and a small directory takes little.
    class node_list {
    public:
        [[nodiscard]] std::size_t size() const noexcept { return size_; }
        void add();
        [[nodiscard]] node& operator[](std::uint32_t number) noexcept {
            const place at = place_of(number);
            return pieces_[at.piece][at.within];
        }
        [[nodiscard]] const node& operator[](std::uint32_t number) const noexcept {
            const place at = place_of(number);
            return pieces_[at.piece][at.within];
        }

    private:
        static constexpr std::uint32_t first_bits = 4;  // 16 in the first
        struct place {
            std::uint32_t piece = 0;
            std::uint32_t within = 0;
        };
        [[nodiscard]] static place place_of(std::uint32_t number) noexcept {
            const std::uint32_t shifted = number + (1U << first_bits);
            const auto bits = static_cast<std::uint32_t>(std::bit_width(shifted)) - 1;
            return {.piece = bits - first_bits, .within = shifted - (1U << bits)};
        }
        std::vector<std::unique_ptr<node[]>> pieces_;
        std::size_t size_ = 0;
    };

    [[nodiscard]] std::size_t numbers_used() const noexcept { return nodes_.size() - unused_.size(); }
    [[nodiscard]] std::uint32_t number_at(std::uint32_t slot) const noexcept {
        return slot < numbers_.size() ? numbers_[slot] : nobody;
    }
    template <class Matches>
    [[nodiscard]] const node* search(key by, std::uint32_t hash, Matches matches) const noexcept;
    template <class IsWanted>
    [[nodiscard]] const name_entry* search(std::string_view name, IsWanted is_wanted) const;
    [[nodiscard]] std::uint32_t& chain(key by, std::uint32_t hash) noexcept;
    void put_in_chains(std::uint32_t number) noexcept;
    void grow();

    node_list nodes_;                                     // by number
    std::vector<links> links_;                            // by number
    std::vector<std::uint32_t> unused_;                   // numbers
    std::vector<std::uint32_t> numbers_;                  // by slot
    std::array<std::vector<std::uint32_t>, keys> heads_;  // of chains; a power of two of them
    std::size_t leaving_ = 0;
};

}  // namespace sluice::fat
