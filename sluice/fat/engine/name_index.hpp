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

struct inode;

/// The data that a file system attaches to a name; a directory only stores it.
struct name_use {
    std::uint64_t id = 0;         // own id; 0: the id of its location
    std::weak_ptr<inode> held{};  // the inode in use under that name
};

/// The location of a name, and its displayed form.
struct name_entry {
    std::uint32_t first_slot = 0;  // first of its set: the last piece of its long name, or `slot`
    std::uint32_t slot = 0;        // the entry proper
    name_text name{};              // as displayed by a volume (vfs::shown_name)
    std::string alias{};           // the displayed short name if it differs by more
                                   // than case; else empty
    mutable name_use use{};
};

/// The names of a directory: by slot, by name and by short name, the latter two ignoring case.
/// A leaving name (removed, but still on the disk) is not found any more, but is kept until its
/// slots are free.
///
/// A search reads only small, adjacent data, except for the entry that it finds. Otherwise a scan
/// of thousands of names would wait for memory.
///
/// Invariants: each entry has a number, and is in one chain for each of its keys, selected by the
/// hash of the key; count() and leaving_ are the numbers of entries that stay and that leave.
/// Entries never move in memory.
/// Complexity: O(1), except for next(), which skips empty slots, and erase() of a name that several
/// entries share, which occurs only on damaged volumes. Allocates: an entry, 24 bytes for it, and 4
/// for each slot; the memory of erased entries is reused.
/// Thread safety: none of its own.
class name_index {
public:
    /// Adds an entry. Its slot must be unused in the index.
    const name_entry* add(name_entry entry);
    void leave(std::uint32_t slot) noexcept;
    void erase(std::uint32_t slot) noexcept;

    /// Returns the entry with that name, or else the one with that short name. If several entries
    /// share the name, returns the first as long as the entries are as they were added. Returns
    /// null if there is none.
    [[nodiscard]] const name_entry* find(std::string_view name) const;
    [[nodiscard]] const name_entry* at(std::uint32_t slot) const noexcept;
    /// Returns the first entry at or after `from`; null at the end.
    [[nodiscard]] const name_entry* next(std::uint32_t from) const noexcept;
    /// Returns whether a leaving entry has, or had, that name.
    [[nodiscard]] bool is_leaving(std::string_view name) const;
    /// Returns whether an entry has that name or short name, leaving or not.
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
        std::uint32_t next = nobody;  // number of the next entry in the chain
    };
    using links = std::array<link, keys>;

    // A list whose elements never move. Each block is as large as all blocks before it: memory is
    // read in one direction, and a small directory needs little.
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
        static constexpr std::uint32_t first_bits = 4;  // 16 in the first block
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
    std::array<std::vector<std::uint32_t>, keys> heads_;  // first of each chain; a power of two
    std::size_t leaving_ = 0;
};

}  // namespace sluice::fat
