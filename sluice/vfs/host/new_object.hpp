#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/creation_rules.hpp"
#include "sluice/vfs/metadata.hpp"

// Internal to the host volume: the creation of files and directories with an owner and a mode of
// their own.

namespace sluice::vfs {

/// Returns the mode that the kernel gives to an object that is created with `bits` in a directory
/// whose default ACL has these bytes (the attribute system.posix_acl_default, acl(5)). Returns
/// std::nullopt if they are not an ACL. Allocates, Blocks: nothing.
[[nodiscard]] std::optional<unsigned> mode_under_acl(bytes_view default_acl, unsigned bits) noexcept;

/// Returns the umask of the process. Returns std::nullopt if the kernel does not report it. Blocks:
/// for /proc. Thread safety: any thread.
[[nodiscard]] std::optional<unsigned> umask_of_process() noexcept;

/// The mode that a new file or directory is created with, and the owner and mode that it gets
/// before any client can use it. While its owner and group are not final, only its owner has
/// rights.
///
/// Thread safety: the thread that creates the object.
class new_object {
public:
    struct request {
        node_kind kind = node_kind::file;  // file or directory
        std::optional<std::uint16_t> asked_bits{};
        std::uint16_t usual_bits = 0;  // less the umask
    };
    /// `rules` and the open directory `parent` outlive the object.
    new_object(const creation_rules& rules, const io::handle& parent, const request& wanted) noexcept;

    /// Returns the bits to create it with. The umask, or a default ACL, reduces them further.
    [[nodiscard]] unsigned initial_bits() const noexcept;

    /// Returns whether an open directory can be the new one: it is opened by its name, and another
    /// program may have put another one in its place. It is empty, belongs to the creator, and has
    /// no more rights than the new one. A program that can put such a directory there can also
    /// remove it. Returns true for files, which are opened when they are created. `status` is that
    /// of the open. Blocks: for the file system.
    [[nodiscard]] bool may_be(const io::handle& opened, const io::file_status& status) const noexcept;

    /// Gives the new object its owner and mode, with the rights of the process, and updates its
    /// status. Errors: EPERM if the process may not, or if the file system ignores the change;
    /// EACCES unless may_be(); those of chown(2) and chmod(2). The caller then removes the object
    /// if may_be(). Blocks: for the file system.
    [[nodiscard]] result<void> complete(const io::handle& made, io::file_status& status) const noexcept;

private:
    struct owner_ids {
        std::uint32_t user = 0;
        std::uint32_t group = 0;
    };
    [[nodiscard]] result<owner_ids> final_owner(const io::file_status& status) const noexcept;
    [[nodiscard]] result<unsigned> final_bits(const io::file_status& status) const noexcept;

    const creation_rules& rules_;
    const io::handle& parent_;
    node_kind kind_;
    unsigned bits_;
    bool is_exact_;  // not less the umask
};

}  // namespace sluice::vfs
