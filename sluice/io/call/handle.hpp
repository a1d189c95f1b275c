#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sluice/base/result.hpp"

namespace sluice::io {

enum class handle_kind : std::uint8_t { none, path, directory, symlink, file, pipe, socket };

/// The access that a handle is opened with.
enum class mode : std::uint8_t {
    none,        ///< only to open others relative to it
    attr_read,   ///< read attributes
    attr_write,  ///< read and write attributes
    read,        ///< read
    write,       ///< read and write
    append,      ///< every write appends atomically
};

/// How to open something that already exists, or that does not exist.
enum class creation : std::uint8_t {
    open_existing,      ///< fail if it does not exist
    only_if_not_exist,  ///< fail if it exists
    if_needed,          ///< open it, or create it empty
    truncate_existing,  ///< fail if it does not exist, else make it empty; keeps its identity
    always_new,         ///< replace an existing one atomically by a new empty one
};

/// The data that the kernel may keep in memory.
enum class caching : std::uint8_t {
    none,                ///< O_DIRECT | O_SYNC: I/O aligned to the device's blocks,
                         ///< durable when it returns
    only_metadata,       ///< O_DIRECT: I/O aligned to the device's blocks
    reads,               ///< reads are cached; writes are durable (with metadata) when they return
    reads_and_metadata,  ///< reads are cached; written data is durable when the write returns
    all,                 ///< everything is cached; durable after a barrier
    temporary,           ///< everything is cached, and write-back may be
                         ///< delayed as long as possible
};

/// A file descriptor and its known properties. A plain value: `handle` is its owner.
struct native_handle {
    int descriptor = -1;
    handle_kind kind = handle_kind::none;
    bool readable = false;
    bool writable = false;
    bool append_only = false;
    bool direct = false;       // opened with O_DIRECT
    bool nonblocking = false;  // O_NONBLOCK is set on the open file description
    // Bytes without message boundaries: neighbouring requests may share a system call.
    bool stream = false;
    bool in_memory = false;  // a file whose I/O never waits for a device (tmpfs)

    [[nodiscard]] constexpr bool is_valid() const noexcept { return descriptor >= 0; }
};

/// Owns one open descriptor. Move-only; closes in the destructor.
/// Thread safety: distinct handles are independent; one handle is for one thread at a time, except
/// that const members, and blocking reads and writes at an offset, may be called from several.
class handle {
public:
    constexpr handle() noexcept = default;
    explicit constexpr handle(native_handle native) noexcept : native_(native) {}
    handle(handle&& other) noexcept : native_(std::exchange(other.native_, {})) {}
    handle& operator=(handle&& other) noexcept {
        if (this != &other) {
            close_ignoring_errors();
            native_ = std::exchange(other.native_, {});
        }
        return *this;
    }
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    ~handle() { close_ignoring_errors(); }

    [[nodiscard]] constexpr bool is_valid() const noexcept { return native_.is_valid(); }
    [[nodiscard]] constexpr const native_handle& native() const noexcept { return native_; }
    [[nodiscard]] constexpr int descriptor() const noexcept { return native_.descriptor; }
    [[nodiscard]] constexpr handle_kind kind() const noexcept { return native_.kind; }

    /// Closes now, and returns an error that the destructor would discard (a failed write-back on
    /// NFS). The handle is invalid afterwards, also on error. Errors: EIO, ENOSPC, EDQUOT as
    /// `close(2)`.
    [[nodiscard]] result<void> close() noexcept;

    /// Releases the descriptor to the caller, which then owns it.
    [[nodiscard]] native_handle release() noexcept { return std::exchange(native_, {}); }

    /// Returns the present path of the open file, which may differ from the path it was opened by:
    /// the kernel follows renames. Errors: ENOENT if it has been unlinked. Allocates: the string.
    [[nodiscard]] result<std::string> current_path() const;

protected:
    native_handle native_;

private:
    void close_ignoring_errors() noexcept;
};

}  // namespace sluice::io
