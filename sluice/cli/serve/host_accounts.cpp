#include "sluice/cli/serve/host_accounts.hpp"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/user_groups.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t first_entry_bytes = 1U << 14;
constexpr std::size_t entry_bytes_max = 1U << 20;

// Calls a function of the C library with more and more memory, as long as it asks for that. Several
// threads call at once.
template <class Entry, class Call>
[[nodiscard]] Entry* find_entry(std::vector<char>& memory, Call call) {
    Entry* found = nullptr;
    memory.resize(first_entry_bytes);
    while (call(memory, &found) == ERANGE and memory.size() < entry_bytes_max)
        memory.resize(2 * memory.size());
    return found;
}

[[nodiscard]] std::string unknown_group(std::string_view where, std::string_view name, bool is_confined) {
    if (is_confined)
        return fmt::format(
            "{}: unknown group '{}'; add it to [groups], or restart the server, which looks up groups of the "
            "host at startup only",
            where, name);
    return fmt::format("{}: unknown group '{}'; add it to [groups], or create it on this host", where, name);
}

}  // namespace

std::optional<vfs::unix_account> unix_account_of(const std::string& user) {
    passwd entry{};
    std::vector<char> memory;
    const passwd* const account = find_entry<passwd>(memory, [&](std::vector<char>& room, passwd** found) {
        return getpwnam_r(user.c_str(), &entry, room.data(), room.size(), found);
    });
    if (account == nullptr or account->pw_uid == 0) return std::nullopt;
    vfs::unix_account made{.user_id = account->pw_uid, .group_id = account->pw_gid};
    int count = 0;
    (void)getgrouplist(user.c_str(), account->pw_gid, nullptr, &count);
    made.groups.resize(static_cast<std::size_t>(count));
    // The groups may change between the two calls.
    if (getgrouplist(user.c_str(), account->pw_gid, made.groups.data(), &count) < 0) return std::nullopt;
    made.groups.resize(static_cast<std::size_t>(count));
    return made;
}

const host_groups::group_numbers& host_groups::numbers_of_users() {
    if (numbers_) return *numbers_;
    numbers_.emplace();
    for (const std::string& name : users_.found_names())
        if (auto account = unix_account_of(name)) numbers_->emplace_back(name, std::move(account->groups));
    return *numbers_;
}

std::optional<std::vector<std::string>> host_groups::members_of(const std::string& group) {
    if (is_confined_) {
        const auto known = found_.find(group);
        return known != found_.end() ? std::optional(known->second) : std::nullopt;
    }
    struct group entry{};
    std::vector<char> memory;
    const struct group* const found =
        find_entry<struct group>(memory, [&](std::vector<char>& room, struct group** to) {
            return getgrnam_r(group.c_str(), &entry, room.data(), room.size(), to);
        });
    if (found == nullptr) return std::nullopt;
    std::vector<std::string> members;
    for (char** each = found->gr_mem; *each != nullptr; ++each)
        members.emplace_back(*each);
    for (const auto& [name, numbers] : numbers_of_users())
        if (std::ranges::find(numbers, found->gr_gid) != numbers.end()) members.push_back(name);
    if (members.size() > group_members_max) members.resize(group_members_max);
    return found_.insert_or_assign(group, std::move(members)).first->second;
}

std::expected<void, std::string> add_host_groups(serve_options& options, host_groups& host) {
    std::string problem;
    host.begin_lookups();
    const auto add = [&](const std::vector<std::string>& entries, const std::string& where) {
        for (const std::string& entry : entries) {
            if (not entry.starts_with(group_mark) or not problem.empty()) continue;
            std::string name = entry.substr(1);
            if (find_group(options.groups, name) != nullptr) continue;
            auto members = host.members_of(name);
            if (not members)
                problem = unknown_group(where, entry, host.is_confined());
            else
                options.groups.push_back(
                    {.name = std::move(name), .members = *std::move(members), .is_of_host = true});
        }
    };
    add(options.administrators, "administrator");
    for (const share_options& share : options.shares) {
        const std::string where = fmt::format("share '{}'", share.name);
        for (const auto* const entries :
             {&share.users, &share.read_only_users, &share.write_users, &share.auditors})
            add(*entries, where);
    }
    if (not problem.empty()) return std::unexpected(std::move(problem));
    return {};
}

}  // namespace sluice::cli
