#pragma once

#include <expected>
#include <optional>

#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/server/open/sticky_times.hpp"
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

/// Returns whether an open keeps a time after such a request; `keeps`: before it.
[[nodiscard]] bool keeps_after(const requested_time& wish, bool keeps) noexcept;

/// Preserves times of a file during a change of it: call ask() before the change, restore() after
/// it, and record() last. A failure to preserve them does not fail the change.
///
/// ask() and restore() access only the node, and block for the file system. Call the other
/// functions on the loop. A change of the content or the attributes holds the file's turn from the
/// constructor to the end, because other turns change the times, and the set of times that are
/// kept. Lifetime: the open outlives it. Thread safety: one call at a time; restore() as
/// node::change.
class time_preserver {
public:
    /// Preserves the times that SET_INFO has set or frozen through the open.
    explicit time_preserver(open& of) noexcept : time_preserver(of, of.kept()) {}
    time_preserver(open& of, const sticky_times& kept) noexcept;
    time_preserver(const time_preserver&) = delete;
    time_preserver& operator=(const time_preserver&) = delete;

    /// Returns whether there is anything to keep.
    [[nodiscard]] bool is_needed() const noexcept { return kept_.any(); }
    /// Records that the change sets this change time. A file system that cannot store it ignores
    /// it.
    void set_change_time(vfs::time_point wanted) noexcept { wanted_ = wanted; }

    void ask() noexcept;
    /// In place of ask(), for a change that began before a SET_INFO set or froze the times:
    /// restore() sets them to the values of the SET_INFO.
    void go_by_set_times() noexcept;
    void restore() noexcept;
    /// Makes the kept change time visible to clients, until the end of the open `until_end_of`;
    /// null: as long as the file is open.
    void record(const open* until_end_of = nullptr) noexcept;

private:
    open& of_;
    const sticky_times kept_;
    std::optional<set_change_times::shown_time> shown_;  // before the change
    std::optional<vfs::time_point> wanted_;
    std::optional<vfs::metadata> before_;
    std::optional<vfs::time_point> changed_after_;
};

}  // namespace sluice::smb::server
