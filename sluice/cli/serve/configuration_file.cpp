#include "sluice/cli/serve/configuration_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"

namespace sluice::cli {
namespace {

// Returns the last name of a path, without a call of its file system, which may not answer.
[[nodiscard]] std::string last_name_of(const std::string& path) {
    std::error_code unknown;  // where the program was started
    const std::filesystem::path whole = std::filesystem::absolute(path, unknown).lexically_normal();
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// Gives every share a name: that of its directory, made unique.
void name_shares(std::vector<share_options>& shares) {
    std::vector<std::string> taken;
    for (share_options& share : shares) {
        if (share.name.empty()) share.name = last_name_of(share.path);
        if (share.name.empty()) share.name = "root";
        const std::string wanted = share.name;
        for (int number = 2; std::ranges::find(taken, fold(share.name)) != taken.end(); ++number)
            share.name = fmt::format("{}-{}", wanted, number);
        taken.push_back(fold(share.name));
    }
}

}  // namespace

std::expected<void, std::string> complete_shares(serve_options& options, const std::string& file) {
    if (options.shares.empty())
        return std::unexpected(file + ": no shares; add a table [[share]] with a path or a referral");
    name_shares(options.shares);
    for (share_options& share : options.shares) {
        share.hide_unreadable = share.hide_unreadable or options.hide_unreadable;
        share.read_only_users.insert(share.read_only_users.end(), options.read_only_users.begin(),
                                     options.read_only_users.end());
        share.auditors.insert(share.auditors.end(), options.auditors.begin(), options.auditors.end());
    }
    return {};
}

std::expected<serve_options, std::string> with_file(serve_options options, const std::string& file) {
    if (not file.empty()) {
        const auto read = read_configuration(file, options);
        if (not read) return std::unexpected(read.error());
    }
    if (const auto complete = complete_shares(options, file); not complete)
        return std::unexpected(complete.error());
    return options;
}

std::string default_configuration_path() {
    const char* const configured = std::getenv("XDG_CONFIG_HOME");
    const char* const home = std::getenv("HOME");
    if (configured != nullptr and *configured == '/') return std::string(configured) + "/sluice/sluice.toml";
    if (home != nullptr and *home == '/' and std::string_view(home) != "/root")
        return std::string(home) + "/.config/sluice/sluice.toml";
    return "/etc/sluice/sluice.toml";
}

}  // namespace sluice::cli
