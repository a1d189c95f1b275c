#include "sluice/cli/migration/smb_recycle.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sluice/cli/migration/smb_conf.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view usual_directory = ".recycle";
constexpr std::size_t patterns_max = 64;
constexpr std::size_t pattern_bytes_max = 255;

// Each user has a directory in the bin anyway.
void convert_repository(std::string_view given, std::string& directory, smb_recycle& to) {
    if (given.empty()) return;
    std::string_view name = given;
    for (const std::string_view per_user : {"/%U", "/%u"})
        if (name.ends_with(per_user)) name.remove_suffix(per_user.size());
    const bool is_name = not name.empty() and name != "." and name != ".." and
                         name.find_first_of("/\\%") == std::string_view::npos;
    if (is_name)
        directory = name;
    else
        to.remarks.push_back(
            {.parameter = "recycle:repository",
             .text = fmt::format("the bin is a directory in the root of the share; it is '{}'", directory)});
}

void convert_patterns(std::string_view parameter, std::string_view given, std::vector<std::string>& patterns,
                      smb_recycle& to) {
    std::size_t skipped = 0;
    for (std::string each : smb_list(given)) {
        if (parameter == "recycle:exclude_dir") each.erase(0, each.find_first_not_of('/'));
        const bool is_pattern = not each.empty() and each.size() <= pattern_bytes_max and
                                each.find('/') == std::string::npos and patterns.size() < patterns_max;
        if (is_pattern and std::ranges::find(patterns, each) == patterns.end())
            patterns.push_back(std::move(each));
        else if (not is_pattern)
            ++skipped;
    }
    if (skipped != 0)
        to.remarks.push_back(
            {.parameter = parameter,
             .text = fmt::format("elements of the list that are not converted: {}; complete 'exclude' of "
                                 "recycle",
                                 skipped)});
}

}  // namespace

smb_recycle converted_smb_recycle(const smb_recycle_values& from) {
    smb_recycle to;
    std::string directory(usual_directory);
    convert_repository(from.repository, directory, to);
    const bool keeps_versions = smb_boolean(from.versions).value_or(false);
    const bool keeps_tree = smb_boolean(from.keeptree).value_or(false);
    std::vector<std::string> patterns;
    convert_patterns("recycle:exclude", from.exclude, patterns, to);
    convert_patterns("recycle:exclude_dir", from.exclude_dir, patterns, to);
    if (not from.exclude_dir.empty())
        to.remarks.push_back(
            {.parameter = "recycle:exclude_dir", .differs = true, .text = "the names apply to files, too"});
    std::string text = "a bin of Samba that exists is not used: move it away";
    if (not keeps_tree) text += "; files keep their directories in the bin, as with 'keeptree'";
    to.remarks.push_back({.parameter = {}, .differs = true, .text = std::move(text)});
    std::string table;
    const auto add = [&](std::string_view key, const setting_value& value) {
        table += fmt::format("{}{} = {}", table.empty() ? "" : ", ", key, toml_text(value));
    };
    if (directory != usual_directory) add("directory", directory);
    if (not patterns.empty()) add("exclude", patterns);
    if (not keeps_versions) add("versions", false);
    if (table.empty())
        to.value = true;
    else
        to.value = toml_source{fmt::format("{{ {} }}", table)};
    return to;
}

}  // namespace sluice::cli
