#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::vfs {

/// Patterns for names of files: `*` is any sequence of characters, `?` one character, and all
/// others are themselves, in any case. A pattern is compared with one component of a path.
///
/// Immutable. Thread safety: any thread.
class name_patterns {
public:
    name_patterns() = default;

    /// Parses patterns. Errors: a text with the pattern, the rule that it violates, and the remedy.
    /// Allocates: the patterns.
    [[nodiscard]] static std::expected<name_patterns, std::string> parse(
        std::span<const std::string> patterns);

    [[nodiscard]] bool is_empty() const noexcept { return patterns_.empty(); }

    /// Returns whether a pattern matches a host's name, or the name that clients see. Allocates:
    /// the folded names. Complexity: for each pattern, its length times that of the name.
    [[nodiscard]] bool match(std::string_view host_name) const;
    /// Returns whether a pattern matches a component of a host's path.
    [[nodiscard]] bool match_component(std::string_view host_path) const;

    [[nodiscard]] friend bool operator==(const name_patterns&, const name_patterns&) noexcept = default;

private:
    std::vector<std::string> patterns_;  // folded, for matches_glob()
};

}  // namespace sluice::vfs
