#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/fat/codec/directory_entry.hpp"

// Long names: UTF-16 in pieces of thirteen units, in slots before their entry, the last piece
// first, all with a checksum of the short name.

namespace sluice::fat {

inline constexpr std::size_t long_name_units_max = 255;
inline constexpr std::size_t units_per_slot = 13;
inline constexpr std::size_t long_name_slots_max = 20;
static_assert(long_name_slots_max * units_per_slot >= long_name_units_max);

/// Converts UTF-8 to UTF-16. Lone surrogates (WTF-8) are kept; each byte that is not UTF-8 becomes
/// U+FFFD.
/// Allocates: the string.
[[nodiscard]] std::u16string to_utf16(std::string_view name);
/// Converts back text that was UTF-8. Allocates: the string.
[[nodiscard]] std::string to_utf8(std::u16string_view name);

/// Returns the checksum that associates pieces with their entry.
[[nodiscard]] std::uint8_t checksum_of(const short_name_bytes& name) noexcept;

/// Returns the number of pieces for a name of `units`.
[[nodiscard]] constexpr std::size_t long_name_slots(std::size_t units) noexcept {
    return (units + units_per_slot - 1) / units_per_slot;
}

/// Returns piece `number` of a name. Piece 1 has the first thirteen units and is stored last.
/// `name` is not empty, has at most long_name_units_max units, and has such a piece.
[[nodiscard]] directory_entry long_name_slot(std::u16string_view name, std::size_t number,
                                             std::uint8_t checksum) noexcept;

/// Collects the pieces of a long name in the order in which they are read. Invariants: `units_`
/// holds the pieces from `next_` + 1 on, all with `checksum_`; `next_` is the number that the
/// following piece must have, 0 once all are present. A piece that does not fit starts a new name
/// if it is a last piece; otherwise the collector discards everything, because the remaining pieces
/// are orphans.
/// Thread safety: none of its own.
class long_name_collector {
public:
    /// Adds the next slot, which is a piece. Complexity: constant.
    void add(const directory_entry& piece) noexcept;
    /// Discards the collected pieces. Call it after a slot of another kind, or once the entry has
    /// been read.
    void drop() noexcept { slots_ = 0; }

    /// Returns the name collected for the entry that follows, or std::nullopt if there is none, it
    /// is incomplete, or it belongs to another entry. Valid until the next call.
    [[nodiscard]] std::optional<std::u16string_view> name_of(const short_name_bytes& name) const noexcept;
    /// Returns the number of slots of the collected pieces; 0 after drop().
    [[nodiscard]] std::size_t slots() const noexcept { return slots_; }

private:
    std::array<char16_t, long_name_slots_max * units_per_slot> units_{};
    std::size_t slots_ = 0;  // slots of the whole name; 0: no pieces
    std::size_t next_ = 0;
    std::uint8_t checksum_ = 0;
};

}  // namespace sluice::fat
