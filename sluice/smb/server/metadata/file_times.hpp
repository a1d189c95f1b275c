#pragma once

#include <expected>
#include <optional>

#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/nt_status.hpp"

// The file times that clients set, and how long they hold ([MS-FSCC] 2.4.7, [MS-FSA] 2.1.5.15.2).

namespace sluice::smb::server {

/// One time of a SET_INFO.
struct requested_time {
    enum class kind : std::uint8_t {
        leave,   ///< 0: as it is
        set,     ///< to `time`, and from then on as `freeze`
        freeze,  ///< -1: operations through this open no longer change it
        thaw,    ///< -2: they change it again
    };
    kind what = kind::leave;
    vfs::time_point time{};

    [[nodiscard]] friend bool operator==(const requested_time&, const requested_time&) noexcept = default;
};

/// Errors: INVALID_PARAMETER for other numbers below zero.
[[nodiscard]] std::expected<requested_time, wire::nt_status> requested_time_of(
    wire::filetime wanted) noexcept;

/// Returns the time that an open keeps after such a request; `present` is the file's time.
[[nodiscard]] std::optional<vfs::time_point> kept_after(const requested_time& wish,
                                                        std::optional<vfs::time_point> kept,
                                                        vfs::time_point present) noexcept;

/// Sets the access and write times back to those that are kept, after something that changed them.
/// Returns the change time that the host has then, if one is kept: for note_kept_change_time. A
/// failure is no reason to fail what was done. Touches only the node. Blocks: for the file system.
/// Thread safety: as node::change.
[[nodiscard]] std::optional<vfs::time_point> restore_times(vfs::node& node, const kept_times& kept) noexcept;

/// Has the kept change time of an open shown, `of_host` being what the host has. Does
/// nothing if there is none.
void note_kept_change_time(open& one, const std::optional<vfs::time_point>& of_host) noexcept;

}  // namespace sluice::smb::server
