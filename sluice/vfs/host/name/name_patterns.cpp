#include "sluice/vfs/host/name/name_patterns.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/glob.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {
namespace {

// The rule that a pattern violates; empty: none.
std::string rule_for(std::string_view pattern) {
    if (pattern.empty()) return "use at least one character";
    if (pattern.size() > limits::name_pattern_bytes_max)
        return "use at most " + std::to_string(limits::name_pattern_bytes_max) + " bytes";
    const auto is_excluded = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 or c == '/' or c == '\\';
    };
    if (std::ranges::any_of(pattern, is_excluded))
        return "use a pattern for one name, without slashes and control characters";
    if (std::ranges::all_of(pattern, [](char c) { return c == '*'; }))
        return "it matches every name; add other characters";
    return {};
}

// In matches_glob(), a bracket begins a set.
std::string glob_of(std::string_view pattern) {
    std::string glob;
    for (const char c : pattern) {
        if (c == '[') glob += '\\';
        // Several stars in sequence mean the same as one.
        if (c != '*' or not glob.ends_with('*')) glob += c;
    }
    return glob;
}

}  // namespace

std::expected<name_patterns, std::string> name_patterns::parse(std::span<const std::string> patterns) {
    if (patterns.size() > limits::name_patterns_max)
        return std::unexpected(std::to_string(patterns.size()) + " patterns; use at most " +
                               std::to_string(limits::name_patterns_max));
    name_patterns parsed;
    for (const std::string& each : patterns) {
        if (const std::string rule = rule_for(each); not rule.empty())
            return std::unexpected("'" + each + "': " + rule);
        parsed.patterns_.push_back(glob_of(fold(each)));
    }
    return parsed;
}

bool name_patterns::match(std::string_view host_name) const {
    if (patterns_.empty() or host_name.empty()) return false;
    const auto matches = [&](std::string_view name) {
        const std::string folded = fold(name);
        return std::ranges::any_of(patterns_,
                                   [&](const std::string& each) { return io::matches_glob(each, folded); });
    };
    std::string storage;
    const std::string_view shown = shown_name(host_name, storage);
    return matches(shown) or (shown != host_name and matches(host_name));
}

bool name_patterns::match_component(std::string_view host_path) const {
    if (patterns_.empty()) return false;
    for (;;) {
        const std::size_t slash = host_path.find('/');
        if (match(host_path.substr(0, slash))) return true;
        if (slash == host_path.npos) return false;
        host_path.remove_prefix(slash + 1);
    }
}

}  // namespace sluice::vfs
