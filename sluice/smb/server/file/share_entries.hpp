#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/file/share_modes.hpp"

namespace sluice::smb::server {

/// The states of a share-mode entry that counts in its file.
enum class entry_state : std::uint8_t {
    joining,    ///< its CREATE is not complete, and may fail
    committed,  ///< an open
    ended,      ///< closed, with changes of the file in flight
};

/// The share-mode entries of one file or stream, as counts for each state.
///
/// Invariant: committed entries can coexist with each other and with joining ones.
/// Thread safety: part of a monitor, under its mutex. Allocates: nothing.
/// Complexity: constant.
class share_entries {
public:
    enum class conflict : std::uint8_t {
        none,
        passing,    ///< with entries that join or have ended: they may leave without a trace
        committed,  ///< with an open
    };

    void add(entry_state in, const sharing& mode) noexcept {
        modes_[index(in)].add(mode);
        ++counts_[index(in)];
    }
    /// An entry of this state and mode was added.
    void remove(entry_state from, const sharing& mode) noexcept {
        ENSURE(counts_[index(from)] != 0, "an entry is removed once");
        modes_[index(from)].remove(mode);
        --counts_[index(from)];
    }

    /// Returns with which entries a new one would conflict.
    [[nodiscard]] conflict conflict_with(const sharing& fresh) const noexcept {
        return worst([&](const share_mode_counts& modes) { return modes.can_join(fresh); });
    }
    /// Returns which entries deny others the right to delete.
    [[nodiscard]] conflict denial_of_delete() const noexcept {
        return worst([](const share_mode_counts& modes) { return not modes.denies_delete(); });
    }
    /// Returns which entries have the right to delete.
    [[nodiscard]] conflict right_to_delete() const noexcept {
        return worst([](const share_mode_counts& modes) { return not modes.has_delete(); });
    }
    [[nodiscard]] std::uint32_t count(entry_state in) const noexcept { return counts_[index(in)]; }
    [[nodiscard]] bool empty() const noexcept { return counts_ == std::array<std::uint32_t, states>{}; }

private:
    static constexpr std::size_t states = 3;
    [[nodiscard]] static constexpr std::size_t index(entry_state of) noexcept {
        return static_cast<std::size_t>(of);
    }
    template <class Agrees>
    [[nodiscard]] conflict worst(Agrees agrees) const noexcept {
        if (not agrees(modes_[index(entry_state::committed)])) return conflict::committed;
        const bool passes =
            agrees(modes_[index(entry_state::joining)]) and agrees(modes_[index(entry_state::ended)]);
        return passes ? conflict::none : conflict::passing;
    }

    std::array<share_mode_counts, states> modes_;
    std::array<std::uint32_t, states> counts_{};
};

}  // namespace sluice::smb::server
