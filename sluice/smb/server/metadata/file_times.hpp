#pragma once

#include <expected>
#include <optional>

#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/nt_status.hpp"

// What clients say of a file's times, and how long it holds ([MS-FSCC] 2.4.7, [MS-FSA] 2.1.5.15.2).

namespace sluice::smb::server {

/// One time of a SET_INFO.
struct time_wish {
    enum class kind : std::uint8_t {
        leave,   ///< 0: as it is
        set,     ///< to `time`, and from then on as `freeze`
        freeze,  ///< -1: what is done through this open no longer changes it
        thaw,    ///< -2: it does again
    };
    kind what = kind::leave;
    vfs::time_point time{};

    [[nodiscard]] friend bool operator==(const time_wish&, const time_wish&) noexcept = default;
};

/// Errors: INVALID_PARAMETER for other numbers below zero.
[[nodiscard]] std::expected<time_wish, wire::nt_status> time_wish_of(wire::filetime wanted) noexcept;

/// What an open keeps of a time after such a wish; `present` is what the file has.
[[nodiscard]] std::optional<vfs::time_point> kept_after(const time_wish& wish,
                                                        std::optional<vfs::time_point> kept,
                                                        vfs::time_point present) noexcept;

/// Puts the change time that was set while the file has been open into what the volume says of it; `file` is
/// null if it is not open.
void show_change_time(vfs::metadata& status, file_state* file) noexcept;

/// What clients are told of an open file: what the volume says, with the change time that was set meanwhile.
/// Errors: those of node::status. Blocks: for the file system.
[[nodiscard]] result<vfs::metadata> shown_status(open& one) noexcept;

/// Has the change time an open keeps shown as the present one. Blocks: for the file system.
void restore_change_time(open& one) noexcept;

/// Sets the times an open keeps back to what they were, after something was done through it that changed
/// them. Failing is no reason to fail what was done. Blocks: for the file system.
void restore_kept_times(open& one) noexcept;

}  // namespace sluice::smb::server
