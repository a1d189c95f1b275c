#include "sluice/cli/migration/smb_homes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "sluice/cli/migration/smb_rows.hpp"

namespace sluice::cli {
namespace {

constexpr std::array<std::string_view, 6> converted{"path",      "browseable", "readonly",
                                                    "available", "guestok",    "validusers"};
// With a setting of a share, which a share of a user cannot have.
constexpr std::array<std::string_view, 3> restricting{"invalidusers", "readlist", "vetofiles"};
// The server has those of [global].
constexpr std::array<std::string_view, 3> restricting_section{"hostsallow", "hostsdeny", "serversmbencrypt"};

// In [homes], these are the name of the user.
[[nodiscard]] bool is_user(std::string_view value) noexcept {
    return value == "%S" or value == "%U" or value == "%u";
}

[[nodiscard]] bool is_account(const smb_parameter* path) noexcept {
    return path == nullptr or path->value.empty() or path->value == "%H";
}

// Without a path, Samba uses the home directory of the account, which is usually in /home.
[[nodiscard]] std::optional<std::string> directory_in(const smb_parameter* path) {
    if (is_account(path)) return "/home";
    const std::size_t slash = path->value.rfind('/');
    if (slash == std::string::npos or not is_user(std::string_view(path->value).substr(slash + 1)))
        return std::nullopt;
    std::string before = path->value.substr(0, slash);
    if (not before.starts_with('/') or before.contains('%')) return std::nullopt;
    return before;
}

}  // namespace

std::expected<smb_homes, smb_homes_refusal> converted_smb_homes(const smb_draft& homes) {
    const auto refuse = [](const smb_place& place, std::string what, std::string text) {
        return std::unexpected(
            smb_homes_refusal{.place = place, .what = std::move(what), .text = std::move(text)});
    };
    const smb_parameter* const path = homes.effective("path");
    auto directory = directory_in(path);
    if (not directory)
        return refuse(path->place, " path",
                      "the directory of a user is not DIR/USER; move the directories, and set homes");
    const auto remedy = fmt::format("set homes = \"{}\" if they may", *directory);
    const smb_parameter* const is_read_only = homes.effective("readonly");
    if (is_read_only == nullptr or smb_boolean(is_read_only->value).value_or(true))
        return refuse(is_read_only == nullptr ? homes.section.place : is_read_only->place, "",
                      "users could write to their shares, unlike with Samba; " + remedy);
    const auto restricts = [](const smb_parameter* given) {
        return given != nullptr and not given->value.empty();
    };
    const smb_parameter* lost = nullptr;
    for (const std::string_view name : restricting)
        if (const auto* const given = homes.effective(name); restricts(given)) lost = given;
    for (const std::string_view name : restricting_section)
        if (const auto* const given = homes.effective(name);
            restricts(given) and not homes.is_of_server(name))
            lost = given;
    for (const smb_row& row : share_rows()) {
        if (row.rule != smb_rule::restricting) continue;
        const auto* const given = homes.effective(row.parameter);
        if (restricts(given) and smb_boolean(given->value).value_or(true)) lost = given;
    }
    const smb_parameter* const modules = homes.effective("vfsobjects");
    for (const std::string& name :
         modules != nullptr ? smb_list(modules->value) : std::vector<std::string>()) {
        const smb_row* const row = row_of(module_rows(), name);
        if (row == nullptr or row->rule == smb_rule::restricting) lost = modules;
    }
    if (lost != nullptr)
        return refuse(lost->place, " " + lost->shown,
                      "users could connect or write in spite of it; " + remedy);
    if (const smb_parameter* const users = homes.effective("validusers");
        users != nullptr and not users->value.empty() and not is_user(users->value))
        return refuse(users->place, " " + users->shown,
                      "users that are not in the list would have a share; " + remedy);
    smb_homes result{.directory = *std::move(directory), .is_of_accounts = is_account(path)};
    for (const smb_parameter& each : homes.section.parameters)
        if (std::ranges::find(converted, each.name) == converted.end()) result.unsupported.push_back(&each);
    if (modules != nullptr and homes.section.find("vfsobjects") == nullptr)
        result.unsupported.push_back(modules);
    return result;
}

}  // namespace sluice::cli
