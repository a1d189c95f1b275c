#pragma once

#include <cstdint>
#include <optional>

namespace sluice::vfs {

/// The owner, group and mode of new files and directories of a host volume.
///
/// A mode is the one that a new object has, whatever the umask of the process. In a directory with
/// a default ACL, the kernel applies that ACL in place of the umask, and the mode restricts it, as
/// for a local program that creates an object with this mode. A directory keeps the set-group-ID
/// bit that it inherits. An owner or a group other than the one that the kernel chooses needs
/// CAP_CHOWN, but a process may use its own groups.
struct creation_rules {
    std::optional<std::uint32_t> owner{};
    std::optional<std::uint32_t> group{};
    bool inherits_owner = false;                    // that of the directory; not with `owner`
    std::optional<std::uint16_t> file_bits{};       // with 0600
    std::optional<std::uint16_t> directory_bits{};  // with 0700; perhaps set-group-ID and sticky

    [[nodiscard]] bool may_change_owner() const noexcept { return owner or group or inherits_owner; }
    [[nodiscard]] bool is_empty() const noexcept {
        return not may_change_owner() and not file_bits and not directory_bits;
    }
    [[nodiscard]] friend bool operator==(const creation_rules&, const creation_rules&) noexcept = default;
};

}  // namespace sluice::vfs
