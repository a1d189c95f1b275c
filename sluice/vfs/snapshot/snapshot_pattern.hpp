#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::vfs {

/// The time that a snapshot shows, in seconds of UTC, which is what clients name snapshots by.
using snapshot_time = std::chrono::sys_seconds;

/// The paths of the snapshots of a directory, as a pattern: `/srv/.snapshots/%Y-%m-%d_%H%M/data`.
/// One component, the name, contains the time. The components before it lead to the directory that
/// contains the snapshots, and those after it from a snapshot to the directory that it shows. None
/// is "..".
///
/// The conversions are those of strftime(3), and the time is UTC, so that no time is ambiguous:
/// %Y (four digits), %m, %d, %H, %M, %S (two digits), %s (seconds since 1970), %% (a percent sign).
/// A pattern has %s alone, or %Y, %m, %d, and optionally %H, then %M, then %S; missing ones are
/// zero.
///
/// Immutable. Thread safety: any thread.
class snapshot_pattern {
public:
    /// Parses a pattern. Errors: a text that states the rule. Allocates: the pattern.
    [[nodiscard]] static std::expected<snapshot_pattern, std::string> parse(std::string_view text);

    /// Returns the time of a snapshot's name. Returns std::nullopt if the name does not match the
    /// pattern, has an invalid date, or is not the name that name_of() returns for that time.
    /// Allocates: the name that it compares.
    [[nodiscard]] std::optional<snapshot_time> time_of(std::string_view name) const;
    /// Returns the name of the snapshot of a time; std::nullopt if the pattern cannot express the
    /// time: it has seconds, but the pattern has not, or it is not from 1970 to 9999. Allocates:
    /// the name.
    [[nodiscard]] std::optional<std::string> name_of(snapshot_time when) const;

    /// Returns the latest time that the pattern can express and that is not after `when`: a
    /// pattern without %S has whole minutes.
    [[nodiscard]] snapshot_time round(snapshot_time when) const noexcept;

    /// Returns the path of the directory that contains the snapshots. Empty: the one that the
    /// pattern is relative to.
    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
    /// Returns the path from a snapshot to the directory that it shows. Empty: the snapshot itself.
    [[nodiscard]] const std::string& subpath() const noexcept { return subpath_; }
    [[nodiscard]] bool is_absolute() const noexcept { return directory_.starts_with('/'); }

private:
    /// A conversion, and the text before it.
    struct field {
        std::string before;
        char conversion = 0;
    };

    [[nodiscard]] std::string parse_name(std::string_view name);
    [[nodiscard]] std::string check() const;
    [[nodiscard]] bool has(char conversion) const noexcept;
    [[nodiscard]] std::string text_of(snapshot_time when) const;
    [[nodiscard]] std::optional<snapshot_time> parse_time(std::string_view name) const;

    std::string directory_;
    std::vector<field> fields_;
    std::string after_;  // the text after the last conversion
    std::string subpath_;
};

}  // namespace sluice::vfs
