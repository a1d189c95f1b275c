#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/vfs/host/creation_rules.hpp"

// The settings owner, group, file-mode, folder-mode and inherit-owner of a share.

namespace sluice::cli {

/// The accounts that the settings of shares name. The databases of the system may be out of reach
/// after the server has confined itself, or may not answer: a name that was found once keeps its
/// number.
///
/// Monitor: any thread; no thread waits for another's lookup. Blocks: for the databases.
class named_accounts {
public:
    /// Returns the number of a user, or of a group, from its name or its number in decimal. Errors:
    /// the rule that the text violates.
    [[nodiscard]] std::expected<std::uint32_t, std::string> user(const std::string& text);
    [[nodiscard]] std::expected<std::uint32_t, std::string> group(const std::string& text);

private:
    using found = std::optional<std::uint32_t>;
    [[nodiscard]] std::expected<std::uint32_t, std::string> number_of(const std::string& text,
                                                                      found (*look_up)(const std::string&),
                                                                      const char* kind);

    std::mutex mutex_;                            // guards the map
    std::map<std::string, std::uint32_t> known_;  // by the kind of account and its name
};

/// Parses the mode of new files, or of new directories: octal digits. Its owner can read and write.
/// Errors: the rule that the text violates.
[[nodiscard]] std::expected<std::uint16_t, std::string> parse_file_mode(const std::string& text);
[[nodiscard]] std::expected<std::uint16_t, std::string> parse_directory_mode(const std::string& text);

/// Returns the reason why this process may not create files with this owner, or this group; empty
/// if it may.
[[nodiscard]] std::string why_not_owner(std::uint32_t user);
[[nodiscard]] std::string why_not_group(std::uint32_t group);
[[nodiscard]] std::string why_not_inherit_owner();

}  // namespace sluice::cli
