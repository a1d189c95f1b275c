#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/deadline.hpp"
#include "sluice/smb/server/journal/handle_journal.hpp"

namespace sluice::smb::server {

/// Where the file of a journal is, and which account it must belong to.
struct journal_place {
    /// The state directory of the server. It is created if its parent exists. It has the mode 0700.
    std::string directory;
    std::uint32_t user_id = 0;  // the server's effective one
};

/// Opens or creates the file of the journal for the root in `identity`, `handles-DEVICE-INODE` in
/// the state directory, and maps it. An exclusive lock on all of the file excludes other servers
/// (the fence). The kernel releases it after the last thread of a killed process has ended.
/// Errors: EBUSY if another process had the lock until the deadline, with its number if it is
/// known; EPERM, with the path, if the directory or the file is a link, has another owner or other
/// modes, or if the file has a second name; those of opening, creating, locking and mapping.
/// Allocates: the storage. Blocks: for the file system; for the lock until the deadline.
[[nodiscard]] result<std::unique_ptr<journal_storage>> open_journal_file(const journal_place& place,
                                                                         const journal_identity& identity,
                                                                         deadline within = {}) noexcept;

/// Returns the version of such a file that a later program has written (see later_version_in), and
/// leaves the file as it is. Errors: those of open_journal_file for the directory; those of opening
/// and reading the file. Blocks: for the file system.
[[nodiscard]] result<std::optional<std::uint32_t>> later_version_in_file(const journal_place& place,
                                                                         const std::string& name) noexcept;

/// Returns the name of that file in the state directory. Allocates: the name.
[[nodiscard]] std::string journal_name(std::uint64_t device, std::uint64_t inode);

/// Returns the ID of the machine's present boot. Errors: those of reading /proc. Blocks: never.
[[nodiscard]] result<std::array<std::byte, 16>> present_boot() noexcept;

}  // namespace sluice::smb::server
