#pragma once

#include "sluice/io/call/handle.hpp"
#include "sluice/io/path/confinement.hpp"
#include "sluice/io/path/path_view.hpp"

namespace sluice::io {

/// A directory to which paths are relative: an anchor that stays valid if its name changes. It
/// opens nothing for reading (O_PATH), so it needs only search permission.
///
/// Confinement belongs to the anchor, not to the single call: everything opened, created, renamed
/// or removed relative to a confined anchor stays beneath it, and an anchor opened relative to a
/// confined one is confined at least as much. So no call can omit it.
///
/// A default-constructed path_handle is the current directory, unconfined. A moved-from one that
/// was confined is refused with EBADF: it must not turn into the current directory.
class path_handle : public handle {
public:
    constexpr path_handle() noexcept = default;
    explicit constexpr path_handle(native_handle native, confinement limit = confinement::none) noexcept
        : handle(native), confinement_(limit) {}

    /// Opens the directory `path`, relative to `base`.
    /// Errors: ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, EMFILE, ENFILE, ENOMEM as `open(2)`;
    /// EINVAL for a path with a zero in it; relative to a confined base also EXDEV (it would lead
    /// outside, or onto another mount), ELOOP (a magic link, or any link if those are forbidden),
    /// EAGAIN (continual concurrent renames), ENOSYS (a kernel before 5.6, or a sandbox without
    /// openat2), EBADF (moved-from base). Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<path_handle> open(const path_handle& base, path_view path,
                                                  confinement limit = confinement::none) noexcept;
    [[nodiscard]] static result<path_handle> open(path_view path,
                                                  confinement limit = confinement::none) noexcept {
        return open({}, path, limit);
    }

    /// Opens the directory for temporary files: $TMPDIR, else /tmp. A set-user-id program ignores
    /// $TMPDIR. Errors: as open. Allocates: nothing.
    [[nodiscard]] static result<path_handle> temporary_files() noexcept;

    [[nodiscard]] constexpr confinement confined() const noexcept { return confinement_; }

private:
    confinement confinement_ = confinement::none;
};

}  // namespace sluice::io
