#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::server {

/// The access of an open, and the access that it shares with other opens of the file
/// ([MS-FSA] 2.1.5.1.2.2).
struct sharing {
    wire::access_mask access = wire::access_mask::none;
    wire::share_access share = wire::share_access::none;
};

/// Returns the share modes that other opens of the file must have for an open with this access.
[[nodiscard]] wire::share_access needs_of(wire::access_mask access) noexcept;

/// Returns whether an open with this mode denies others the right to delete the file.
[[nodiscard]] bool denies_delete(const sharing& one) noexcept;

/// Returns whether two opens of a file can exist together: each shares the access that the other
/// needs. An open that
/// neither reads, writes nor removes conflicts with no other.
[[nodiscard]] bool can_coexist(const sharing& a, const sharing& b) noexcept;

/// The share modes of all opens of a file, as counts, so that a new open is
/// checked in constant time.
///
/// Invariant: can_join(x) is can_coexist(x, y) for every y that was added and not removed.
/// Allocates: nothing. Thread safety: part of a monitor, under its mutex.
class share_mode_counts {
public:
    void add(const sharing& one) noexcept;
    /// `one` was added with the same values.
    void remove(const sharing& one) noexcept;
    [[nodiscard]] bool can_join(const sharing& fresh) const noexcept;
    /// Returns whether an open denies others the right to delete the file.
    [[nodiscard]] bool denies_delete() const noexcept { return modes_.back().denied_by != 0; }
    /// Returns whether an open has the right to delete the file.
    [[nodiscard]] bool has_delete() const noexcept { return modes_.back().needed_by != 0; }

private:
    struct counts {
        std::uint32_t needed_by = 0;  // opens that need this mode
        std::uint32_t denied_by = 0;  // opens that need some mode, and do not share this one
    };
    void count(const sharing& one, std::uint32_t change) noexcept;

    std::array<counts, 3> modes_{};  // read, write, remove
};

}  // namespace sluice::smb::server
