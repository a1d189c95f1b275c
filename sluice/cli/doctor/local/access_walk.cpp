#include "sluice/cli/doctor/local/access_walk.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sluice::cli::doctor {
namespace {

constexpr unsigned execute = 1;
constexpr int groups_max = 65536;

[[nodiscard]] bool has_acl(const std::string& path) noexcept {
    return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

// Returns the barrier that this component is, if it is one.
[[nodiscard]] std::optional<path_barrier> judge(const server_account& account, const std::string& path,
                                                unsigned wanted, bool is_last) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0)
        return path_barrier{.component = path, .code = errno, .missing = 0, .has_acl = false};
    if (not is_last and not S_ISDIR(status.st_mode))
        return path_barrier{.component = path, .code = ENOTDIR, .missing = 0, .has_acl = false};
    const unsigned missing = missing_bits(
        account, {.user_id = status.st_uid, .group_id = status.st_gid, .mode = status.st_mode}, wanted);
    if (missing == 0) return std::nullopt;
    return path_barrier{.component = path, .code = 0, .missing = missing, .has_acl = has_acl(path)};
}

}  // namespace

server_account server_account::of_user(std::uint32_t user_id) {
    server_account account{.user_id = user_id, .groups = {}};
    const passwd* const known = ::getpwuid(user_id);
    if (known == nullptr) return account;
    const std::string name = known->pw_name;
    const gid_t first = known->pw_gid;
    int count = 64;
    account.groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(name.c_str(), first, account.groups.data(), &count) < 0) {
        count = std::clamp(count, 0, groups_max);
        account.groups.resize(static_cast<std::size_t>(count));
        if (::getgrouplist(name.c_str(), first, account.groups.data(), &count) < 0) count = 0;
    }
    account.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return account;
}

std::optional<std::uint32_t> server_account::user_id_of(const std::string& name) {
    const passwd* const known = ::getpwnam(name.c_str());
    if (known == nullptr) return std::nullopt;
    return known->pw_uid;
}

server_account server_account::of_this_process() {
    server_account account{.user_id = ::geteuid(), .groups = {}};
    const int count = ::getgroups(0, nullptr);
    account.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    const int got = ::getgroups(count, account.groups.data());
    account.groups.resize(static_cast<std::size_t>(std::max(got, 0)));
    account.groups.push_back(::getegid());
    return account;
}

unsigned missing_bits(const server_account& account, const file_rights& of, unsigned wanted) noexcept {
    constexpr unsigned owner_shift = 6;
    constexpr unsigned group_shift = 3;
    if (account.user_id == 0) return 0;
    unsigned granted = of.mode;
    if (account.user_id == of.user_id)
        granted >>= owner_shift;
    else if (std::ranges::find(account.groups, of.group_id) != account.groups.end())
        granted >>= group_shift;
    return wanted & ~granted & 7U;
}

std::optional<path_barrier> walk(const server_account& account, const std::string& path, unsigned wanted) {
    std::size_t end = 0;
    for (;;) {
        const std::size_t next = path.find_first_not_of('/', end);
        const std::string component = end == 0 ? "/" : path.substr(0, end);
        const bool is_last = next == std::string::npos;
        if (auto barrier = judge(account, component, is_last ? wanted : execute, is_last); barrier)
            return barrier;
        if (is_last) return std::nullopt;
        end = std::min(path.find('/', next), path.size());
    }
}

std::string bits_text(unsigned bits) {
    std::string text;
    text += (bits & 4U) != 0 ? 'r' : '-';
    text += (bits & 2U) != 0 ? 'w' : '-';
    text += (bits & 1U) != 0 ? 'x' : '-';
    return text;
}

}  // namespace sluice::cli::doctor
