#include "sluice/cli/serve/host_accounts.hpp"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/user_groups.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t first_entry_bytes = 1U << 14;
constexpr std::size_t entry_bytes_max = 1U << 20;

// Calls a function of the C library with more and more memory, as long as it asks for that. Several
// threads call at once. Returns null if there is no such entry (getpwnam(3) lists its errors).
template <class Entry, class Call>
[[nodiscard]] result<Entry*> find_entry(std::vector<char>& memory, Call call) {
    Entry* found = nullptr;
    memory.resize(first_entry_bytes);
    int code = call(memory, &found);
    for (; code == EINTR or (code == ERANGE and memory.size() < entry_bytes_max); code = call(memory, &found))
        if (code == ERANGE) memory.resize(2 * memory.size());
    const bool is_answer = code == 0 or code == ENOENT or code == ESRCH or code == EBADF or code == EPERM;
    if (not is_answer) return failure({code, "look up an account or a group"});
    return found;
}

[[nodiscard]] result<std::optional<vfs::unix_account>> find_account(const std::string& user) {
    passwd entry{};
    std::vector<char> memory;
    const auto account = find_entry<passwd>(memory, [&](std::vector<char>& room, passwd** found) {
        return getpwnam_r(user.c_str(), &entry, room.data(), room.size(), found);
    });
    if (not account) return failure(account.error());
    if (*account == nullptr or (*account)->pw_uid == 0) return std::nullopt;
    vfs::unix_account made{.user_id = (*account)->pw_uid, .group_id = (*account)->pw_gid};
    int count = 0;
    (void)getgrouplist(user.c_str(), made.group_id, nullptr, &count);
    made.groups.resize(static_cast<std::size_t>(count));
    // The groups may change between the two calls.
    if (getgrouplist(user.c_str(), made.group_id, made.groups.data(), &count) < 0)
        return failure({EAGAIN, "look up the groups of an account"});
    made.groups.resize(static_cast<std::size_t>(count));
    return made;
}

[[nodiscard]] std::string unknown_group(std::string_view where, std::string_view name, bool is_confined) {
    if (is_confined)
        return fmt::format(
            "{}: unknown group '{}'; add it to [groups], or restart the server, which looks up groups of the "
            "host at startup only",
            where, name);
    return fmt::format("{}: unknown group '{}'; add it to [groups], or create it on this host", where, name);
}

// Users whose groups are not known may only read the shares that a group of the host may only read.
void restrict_users(serve_options& options, std::vector<std::string> users) {
    if (std::ranges::none_of(options.groups, &user_group::is_of_host)) return;
    const auto is_group_of_host = [&](const std::string& entry) {
        if (not entry.starts_with(group_mark)) return false;
        const user_group* const found = find_group(options.groups, std::string_view(entry).substr(1));
        return found != nullptr and found->is_of_host;
    };
    for (share_options& share : options.shares)
        if (std::ranges::any_of(share.read_only_users, is_group_of_host))
            share.read_only_users.insert(share.read_only_users.end(), users.begin(), users.end());
    options.users_without_groups = std::move(users);
}

}  // namespace

std::optional<vfs::unix_account> unix_account_of(const std::string& user) {
    auto found = find_account(user);
    return found ? *std::move(found) : std::nullopt;
}

void host_groups::begin_lookups(const serve_options& options) {
    numbers_.reset();
    names_ = users_.names();
    for (std::string& each : users_.found_names())
        names_.push_back(std::move(each));
    for (const std::string& each : options.users)
        names_.push_back(each.substr(0, each.find('%')));
    std::ranges::sort(names_);
    const auto repeated = std::ranges::unique(names_);
    names_.erase(repeated.begin(), repeated.end());
    if (is_confined_) return;
    known_.clear();
    std::ranges::transform(names_, std::back_inserter(known_),
                           [](const std::string& name) { return fold(name); });
    std::ranges::sort(known_);
}

std::vector<std::string> host_groups::users_without_groups() const {
    std::vector<std::string> missing;
    std::ranges::copy_if(names_, std::back_inserter(missing), [&](const std::string& name) {
        return not std::ranges::binary_search(known_, fold(name));
    });
    return missing;
}

std::expected<void, std::string> host_groups::look_up_users() {
    if (numbers_) return {};
    group_numbers found;
    for (const std::string& name : names_) {
        auto account = find_account(name);
        if (not account) return std::unexpected(account.error().message());
        if (*account) found.emplace_back(name, std::move((*account)->groups));
    }
    numbers_ = std::move(found);
    return {};
}

std::expected<std::optional<std::vector<std::string>>, std::string> host_groups::members_of(
    const std::string& group) {
    if (is_confined_) {
        const auto known = found_.find(group);
        return known != found_.end() ? std::optional(known->second) : std::nullopt;
    }
    struct group entry{};
    std::vector<char> memory;
    const auto found = find_entry<struct group>(memory, [&](std::vector<char>& room, struct group** to) {
        return getgrnam_r(group.c_str(), &entry, room.data(), room.size(), to);
    });
    if (not found) return std::unexpected(found.error().message());
    if (*found == nullptr) return std::nullopt;
    if (const auto done = look_up_users(); not done) return std::unexpected(done.error());
    std::vector<std::string> members;
    for (char** each = (*found)->gr_mem; *each != nullptr; ++each)
        members.emplace_back(*each);
    for (const auto& [name, numbers] : *numbers_)
        if (std::ranges::find(numbers, (*found)->gr_gid) != numbers.end()) members.push_back(name);
    std::ranges::sort(members);
    const auto repeated = std::ranges::unique(members);
    members.erase(repeated.begin(), repeated.end());
    if (members.size() > group_members_max)
        return std::unexpected(fmt::format("{} users; use at most {}", members.size(), group_members_max));
    return found_.insert_or_assign(group, std::move(members)).first->second;
}

std::vector<missing_group> add_known_host_groups(serve_options& options, host_groups& host) {
    std::vector<missing_group> missing;
    host.begin_lookups(options);
    const auto add = [&](const std::vector<std::string>& entries, const share_options* share) {
        const std::string where = share == nullptr ? "administrator" : fmt::format("share '{}'", share->name);
        for (const std::string& entry : entries) {
            if (not entry.starts_with(group_mark)) continue;
            std::string name = entry.substr(1);
            if (find_group(options.groups, name) != nullptr) continue;
            auto members = host.members_of(name);
            if (not members)
                missing.push_back(
                    {.share = share,
                     .entry = entry,
                     .text = fmt::format("{}: group '{}' of this host: {}", where, entry, members.error())});
            else if (not*members)
                missing.push_back({.share = share,
                                   .entry = entry,
                                   .text = unknown_group(where, entry, host.is_confined())});
            else
                options.groups.push_back(
                    {.name = std::move(name), .members = **std::move(members), .is_of_host = true});
        }
    };
    add(options.administrators, nullptr);
    for (const share_options& share : options.shares)
        for (const auto* const entries :
             {&share.users, &share.read_only_users, &share.write_users, &share.auditors})
            add(*entries, &share);
    return missing;
}

std::expected<void, std::string> add_host_groups(serve_options& options, host_groups& host) {
    auto missing = add_known_host_groups(options, host);
    if (not missing.empty()) return std::unexpected(std::move(missing.front().text));
    if (host.is_confined()) restrict_users(options, host.users_without_groups());
    return {};
}

// A list that names only groups without members admits no user; it is not the absence of a list.
void expand_users(serve_options& options) {
    const auto list_of = [&](const std::vector<std::string>& entries) {
        return entries.empty() ? smb::server::user_list()
                               : smb::server::user_list(users_of(entries, options.groups));
    };
    for (share_options& share : options.shares)
        share.expanded = {.connect = list_of(share.users),
                          .read_only = list_of(share.read_only_users),
                          .write = list_of(share.write_users),
                          .audit = list_of(share.auditors)};
}

}  // namespace sluice::cli
