#include "sluice/cli/serve/share_ownership.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

namespace sluice::cli {
namespace {

constexpr std::size_t entry_bytes_max = 1U << 20;
// The largest number means "unchanged" in chown(2).
constexpr std::uint32_t id_max = 0xffff'fffeU;
constexpr const char* remedy = "run the server as root, or remove the setting";

// Calls one of getpwnam_r and getgrnam_r with as much memory as the entry needs.
template <class Entry, class Call>
[[nodiscard]] std::optional<Entry> entry_of(const std::string& name, std::vector<char>& room, Call call) {
    Entry entry{};
    Entry* found = nullptr;
    room.resize(1U << 14);
    while (call(name.c_str(), &entry, room.data(), room.size(), &found) == ERANGE and
           room.size() < entry_bytes_max)
        room.resize(2 * room.size());
    return found != nullptr ? std::optional(entry) : std::nullopt;
}

[[nodiscard]] std::optional<std::uint32_t> user_named(const std::string& name) {
    std::vector<char> room;
    const auto entry = entry_of<passwd>(name, room, ::getpwnam_r);
    return entry ? std::optional<std::uint32_t>(entry->pw_uid) : std::nullopt;
}
[[nodiscard]] std::optional<std::uint32_t> group_named(const std::string& name) {
    std::vector<char> room;
    const auto entry = entry_of<::group>(name, room, ::getgrnam_r);
    return entry ? std::optional<std::uint32_t>(entry->gr_gid) : std::nullopt;
}

[[nodiscard]] bool is_number(const std::string& text) noexcept {
    return not text.empty() and std::ranges::all_of(text, [](char c) { return c >= '0' and c <= '9'; });
}

// Asks for the calling thread. The server keeps this capability when it confines itself.
[[nodiscard]] bool may_give_files_away() noexcept {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
    return (sets[CAP_TO_INDEX(CAP_CHOWN)].effective & CAP_TO_MASK(CAP_CHOWN)) != 0;
}

[[nodiscard]] bool is_own_group(std::uint32_t group) {
    if (group == ::getegid()) return true;
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(0, count)));
    return std::ranges::find(groups, group) != groups.end();
}

struct mode_rule {
    unsigned needed = 0;
    unsigned permitted = 0;
    const char* text = "";
};

[[nodiscard]] std::expected<std::uint16_t, std::string> parse_mode(const std::string& text,
                                                                   const mode_rule& rule) {
    unsigned bits = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bits, 8);
    const bool is_octal = parsed.ec == std::errc{} and parsed.ptr == text.data() + text.size();
    if (not is_octal or (bits & ~rule.permitted) != 0 or (bits & rule.needed) != rule.needed)
        return std::unexpected(rule.text);
    return static_cast<std::uint16_t>(bits);
}

}  // namespace

std::expected<std::uint32_t, std::string> named_accounts::number_of(const std::string& text,
                                                                    found (*look_up)(const std::string&),
                                                                    const char* kind) {
    const std::string rule = std::string("use the name or the number of an existing ") + kind;
    if (is_number(text)) {
        std::uint32_t number = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
        if (parsed.ec != std::errc{} or number > id_max) return std::unexpected(rule);
        return number;
    }
    const found now = text.empty() ? std::nullopt : look_up(text);
    const std::string key = std::string(kind) + ' ' + text;
    const std::lock_guard held(mutex_);
    if (now) return known_[key] = *now;
    const auto before = known_.find(key);
    if (before != known_.end()) return before->second;
    return std::unexpected(rule);
}

std::expected<std::uint32_t, std::string> named_accounts::user(const std::string& text) {
    return number_of(text, user_named, "user");
}

std::expected<std::uint32_t, std::string> named_accounts::group(const std::string& text) {
    return number_of(text, group_named, "group");
}

std::expected<std::uint16_t, std::string> parse_file_mode(const std::string& text) {
    return parse_mode(text, {.needed = 0600,
                             .permitted = 0777,
                             .text = "use an octal mode from \"0600\" to \"0777\" that lets the owner read "
                                     "and write"});
}

std::expected<std::uint16_t, std::string> parse_directory_mode(const std::string& text) {
    return parse_mode(text, {.needed = 0700,
                             .permitted = 03777,
                             .text = "use an octal mode from \"0700\" to \"3777\" that gives the owner all "
                                     "rights, without the set-user-ID bit"});
}

std::string why_not_owner(std::uint32_t user) {
    if (user == ::geteuid() or may_give_files_away()) return {};
    return std::string("only root can give files to another user; ") + remedy;
}

std::string why_not_group(std::uint32_t group) {
    if (is_own_group(group) or may_give_files_away()) return {};
    return "the account of the server is not a member of this group; add it to the group and start the "
           "server again, or remove the setting";
}

std::string why_not_inherit_owner() {
    if (may_give_files_away()) return {};
    return std::string("only root can give files to another user; ") + remedy;
}

}  // namespace sluice::cli
