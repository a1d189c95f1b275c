#include "sluice/smb/server/metadata/account_names.hpp"

#include <array>
#include <charconv>
#include <system_error>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"

namespace sluice::smb::server {

using wire::rpc_account;
using wire::rpc_domain;
using wire::sid;
using wire::sid_use;

namespace {

// An issuer of SIDs, of those in this table and of those of the host's users.
struct authority {
    std::string_view name;
    sid id;
};
constexpr authority no_authority{.name = {}, .id = {1, std::initializer_list<std::uint32_t>{}}};
constexpr authority creator{.name = {}, .id = {3, std::initializer_list<std::uint32_t>{}}};
constexpr authority nt_authority{.name = "NT AUTHORITY", .id = {5, std::initializer_list<std::uint32_t>{}}};
constexpr authority builtin{.name = "BUILTIN", .id = {5, {32}}};
constexpr authority unix_user{.name = "Unix User", .id = {22, {1}}};
constexpr authority unix_group{.name = "Unix Group", .id = {22, {2}}};
constexpr std::array named_authorities{nt_authority, builtin, unix_user, unix_group};

// Well-known SIDs, [MS-DTYP] 2.4.2.4.
struct well_known {
    sid id;
    std::string_view name;
    authority by;
    sid_use use;
};
constexpr std::array well_known_sids{
    well_known{wire::sid_everyone, "Everyone", no_authority, sid_use::well_known_group},
    well_known{wire::sid_creator_owner, "CREATOR OWNER", creator, sid_use::well_known_group},
    well_known{wire::sid_creator_group, "CREATOR GROUP", creator, sid_use::well_known_group},
    well_known{wire::sid_owner_rights, "OWNER RIGHTS", creator, sid_use::well_known_group},
    well_known{wire::sid_network, "NETWORK", nt_authority, sid_use::well_known_group},
    well_known{{5, {4}}, "INTERACTIVE", nt_authority, sid_use::well_known_group},
    well_known{wire::sid_anonymous, "ANONYMOUS LOGON", nt_authority, sid_use::well_known_group},
    well_known{wire::sid_authenticated_users, "Authenticated Users", nt_authority, sid_use::well_known_group},
    well_known{wire::sid_local_system, "SYSTEM", nt_authority, sid_use::well_known_group},
    well_known{{5, {19}}, "LOCAL SERVICE", nt_authority, sid_use::well_known_group},
    well_known{{5, {20}}, "NETWORK SERVICE", nt_authority, sid_use::well_known_group},
    well_known{wire::sid_administrators, "Administrators", builtin, sid_use::alias},
    well_known{wire::sid_users, "Users", builtin, sid_use::alias},
    well_known{wire::sid_guests, "Guests", builtin, sid_use::alias},
};

[[nodiscard]] rpc_domain domain_of(const authority& by) {
    return {.name = std::string(by.name), .id = by.id};
}

[[nodiscard]] rpc_account account_of(const well_known& one) {
    return {.id = one.id, .use = one.use, .name = std::string(one.name), .domain = domain_of(one.by)};
}

[[nodiscard]] rpc_account account_of_domain(const rpc_domain& one) {
    return {.id = one.id, .use = sid_use::domain, .name = {}, .domain = one};
}

[[nodiscard]] rpc_account account_of_unix(const authority& by, std::uint32_t number) {
    ENSURE(by.id.sub_authorities().size() == 1, "the host's accounts have one number after their kind");
    return {.id = {by.id.authority(), {by.id.sub_authorities().front(), number}},
            .use = by.id == unix_user.id ? sid_use::user : sid_use::group,
            .name = std::to_string(number),
            .domain = domain_of(by)};
}

[[nodiscard]] std::optional<rpc_account> unix_account_of(const sid& who) {
    const auto numbers = who.sub_authorities();
    if (who.authority() != unix_user.id.authority() or numbers.size() != 2) return std::nullopt;
    for (const authority& by : {unix_user, unix_group})
        if (numbers.front() == by.id.sub_authorities().front()) return account_of_unix(by, numbers.back());
    return std::nullopt;
}

[[nodiscard]] std::optional<rpc_account> unix_account_of(const authority& by, std::string_view number) {
    std::uint32_t id = 0;
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, id);
    if (error != std::errc() or rest != end) return std::nullopt;
    return account_of_unix(by, id);
}

// A name and its domain, which is empty if there is none.
struct split_name {
    std::string_view domain;
    std::string_view name;
};
[[nodiscard]] split_name split(std::string_view whole) noexcept {
    if (const std::size_t at = whole.find('\\'); at != std::string_view::npos)
        return {.domain = whole.substr(0, at), .name = whole.substr(at + 1)};
    if (const std::size_t at = whole.rfind('@'); at != std::string_view::npos)
        return {.domain = whole.substr(at + 1), .name = whole.substr(0, at)};
    return {.domain = {}, .name = whole};
}

// Returns the domain that a SID has as a user of this server; that SID without the last number.
[[nodiscard]] sid parent_of(const sid& who) noexcept {
    const auto numbers = who.sub_authorities();
    ENSURE(not numbers.empty(), "the SID of a user has a number in its domain");
    return {who.authority(), numbers.first(numbers.size() - 1)};
}

}  // namespace

account_names::account_names(std::string server, std::string domain, user_names* users)
    : own_{.name = std::move(server), .id = {}}, workgroup_(std::move(domain)), users_(users) {
    own_.id = sid_of_server(own_.name);
    ENSURE(not own_.name.empty(), "the accounts of a server have its name as their domain");
}

std::optional<rpc_account> account_names::of(const sid& who) const {
    for (const well_known& one : well_known_sids)
        if (one.id == who) return account_of(one);
    if (const auto found = unix_account_of(who)) return found;
    for (const authority& one : named_authorities)
        if (one.id == who) return account_of_domain(domain_of(one));
    if (own_.id == who) return account_of_domain(own_);
    if (users_ == nullptr) return std::nullopt;
    const auto known = users_->current();
    if (const auto found = known->by_sid.find(text_of(who)); found != known->by_sid.end())
        return user(found->second);
    if (who.sub_authorities().size() < 2 or parent_of(who) != own_.id) return std::nullopt;
    const auto numbered = known->by_number.find(who.sub_authorities().back());
    if (numbered == known->by_number.end()) return std::nullopt;
    rpc_account found = user(numbered->second);
    found.id = who;
    found.domain = own_;
    return found;
}

std::optional<rpc_account> account_names::named(std::string_view name) const {
    const auto [domain, alone] = split(name);
    for (const well_known& one : well_known_sids)
        if (equal_ignoring_case(one.name, alone) and
            (domain.empty() or equal_ignoring_case(one.by.name, domain)))
            return account_of(one);
    for (const authority& one : {unix_user, unix_group})
        if (equal_ignoring_case(one.name, domain)) return unix_account_of(one, alone);
    if (users_ != nullptr and (domain.empty() or is_own(domain))) {
        const auto known = users_->current();
        if (const auto found = known->by_name.find(fold(alone)); found != known->by_name.end())
            return user(found->second);
    }
    // A domain, alone or with nothing after it.
    if (not domain.empty() and not alone.empty()) return std::nullopt;
    const std::string_view only = domain.empty() ? alone : domain;
    if (only.empty()) return std::nullopt;
    for (const authority& one : named_authorities)
        if (equal_ignoring_case(one.name, only)) return account_of_domain(domain_of(one));
    return is_own(only) ? std::optional(account_of_domain(own_)) : std::nullopt;
}

std::optional<rpc_account> account_names::user_numbered(std::uint32_t number) const {
    if (users_ == nullptr) return std::nullopt;
    const auto known = users_->current();
    const auto found = known->by_number.find(number);
    return found == known->by_number.end() ? std::nullopt : std::optional(user(found->second));
}

std::optional<rpc_account> account_names::user_named(std::string_view name) const {
    if (users_ == nullptr) return std::nullopt;
    const auto known = users_->current();
    const auto found = known->by_name.find(fold(name));
    ENSURE(known->by_number.size() <= known->by_name.size(), "each number is one of a user");
    return found == known->by_name.end() ? std::nullopt : std::optional(user(found->second));
}

std::vector<rpc_account> account_names::users_after(std::uint32_t after, std::size_t most) const {
    std::vector<rpc_account> some;
    if (users_ == nullptr) return some;
    const auto known = users_->current();
    for (auto next = known->by_number.upper_bound(after);
         next != known->by_number.end() and some.size() != most; ++next)
        some.push_back(user(next->second));
    ENSURE(some.size() <= most, "a part of the users has a bound");
    return some;
}

std::size_t account_names::user_count() const {
    return users_ == nullptr ? 0 : users_->current()->by_number.size();
}

rpc_account account_names::user(const std::string& name) const {
    const sid id = sid_of({.name = name, .domain = {}});
    ENSURE(id != wire::sid_anonymous and not name.empty(), "a user has a name and a SID of their own");
    return {.id = id, .use = sid_use::user, .name = name, .domain = {.name = own_.name, .id = parent_of(id)}};
}

bool account_names::is_own(std::string_view domain) const {
    return equal_ignoring_case(domain, std::string_view(own_.name)) or
           equal_ignoring_case(domain, std::string_view(workgroup_));
}

}  // namespace sluice::smb::server
