#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_sam.hpp"

// Users, groups and aliases, [MS-SAMR] 3.1.5.

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t attributes_of_membership = 7;  // mandatory, by default, enabled
constexpr std::uint32_t normal_account = 0x00000010;
constexpr std::uint32_t password_never_expires = 0x00000200;
constexpr std::uint32_t user_control = normal_account | password_never_expires;

// Classes of information about a user, 2.2.6.28.
constexpr std::uint16_t general = 1;
constexpr std::uint16_t name = 6;
constexpr std::uint16_t account_name = 7;
constexpr std::uint16_t full_name = 8;
constexpr std::uint16_t primary_group = 9;
constexpr std::uint16_t control = 16;
constexpr std::uint16_t all = 21;

// In the order of their relative IDs.
constexpr std::array aliases_of_builtin{sid_administrators, sid_users, sid_guests};

std::uint32_t number_of(const sid& who) noexcept {
    return who.sub_authorities().empty() ? 0 : who.sub_authorities().back();
}

// Writes SAMPR_ULONG_ARRAY, 2.2.7.4.
void put_numbers(ndr_writer& out, std::span<const std::uint32_t> numbers) {
    const auto count = static_cast<std::uint32_t>(numbers.size());
    out.u32(count);
    out.pointer(count != 0);
    if (count != 0) out.u32(count);
    for (const std::uint32_t one : numbers)
        out.u32(one);
}

nt_status status_of_lookup(std::size_t found, std::size_t wanted) noexcept {
    if (found == wanted) return nt_status::success;
    return found == 0 ? nt_status::none_mapped : nt_status::some_not_mapped;
}

// Consumes the beginning of an array of which a part is sent: that part's number of elements.
std::optional<std::uint32_t> take_varying_count(ndr_reader& in, std::uint32_t count) noexcept {
    const auto room = in.u32();
    const auto offset = in.u32();
    const auto sent = in.array_count(count);
    if (!room or offset != 0u or !sent or *sent > *room) return std::nullopt;
    return sent;
}

// Writes a time that stands for none, or, as `high`, for never.
void put_time(ndr_writer& out, bool is_never) {
    out.u32(is_never ? 0xFFFFFFFF : 0);
    out.u32(is_never ? 0x7FFFFFFF : 0);
}

// Writes SAMPR_USER_ALL_INFORMATION, 2.2.6.6. Nothing about passwords is in it.
void put_all(ndr_writer& out, std::uint32_t number, const std::string& user) {
    // The control flags, the names, and the IDs.
    constexpr std::uint32_t fields_present = 0x00100000 | 0x1 | 0x2 | 0x4 | 0x8;
    constexpr int empty_texts_between = 8;
    for (int i = 0; i != 6; ++i)
        put_time(out, i == 3 or i == 5);  // the account and the password do not expire
    out.counted_text_head(user);
    out.counted_text_head(user);  // full name
    for (int i = 0; i != empty_texts_between; ++i)
        out.counted_text_head({});
    out.counted_text_head({});  // hash of the password for LAN Manager: none
    out.counted_text_head({});  // hash of the password: none
    out.counted_text_head({});  // private data
    out.u32(0);                 // security descriptor
    out.pointer(false);
    out.u32(number);
    out.u32(sam_group_of_users);
    out.u32(user_control);
    out.u32(fields_present);
    out.align(4);
    out.u16(0);  // hours of logons: no restriction
    out.pointer(false);
    for (int i = 0; i != 4; ++i)
        out.u16(0);  // counts of logons, country and code page
    out.u32(0);      // four flags about passwords
    out.counted_text(user);
    out.counted_text(user);
}

// Returns false, and writes nothing, for a class that this server does not have.
bool put_user(ndr_writer& out, std::uint16_t which, std::uint32_t number, const std::string& user) {
    constexpr std::uint16_t known[] = {general, name, account_name, full_name, primary_group, control, all};
    if (std::ranges::find(known, which) == std::end(known)) return false;
    out.pointer(true);
    out.u16(which);
    out.align(4);
    switch (which) {
        case general:
            out.counted_text_head(user);
            out.counted_text_head(user);
            out.u32(sam_group_of_users);
            out.counted_text_head({});
            out.counted_text_head({});
            out.counted_text(user);
            out.counted_text(user);
            break;
        case name:
            out.counted_text_head(user);
            out.counted_text_head(user);
            out.counted_text(user);
            out.counted_text(user);
            break;
        case account_name:
        case full_name:
            out.counted_text_head(user);
            out.counted_text(user);
            break;
        case primary_group:
            out.u32(sam_group_of_users);
            break;
        case control:
            out.u32(user_control);
            break;
        default:
            put_all(out, number, user);
    }
    return true;
}

// The group of all users, without which clients expect no domain.
sam_account group_of_users(const rpc_host& host) {
    const rpc_domain own = host.account_domain();
    std::vector<std::uint32_t> numbers(own.id.sub_authorities().begin(), own.id.sub_authorities().end());
    numbers.push_back(sam_group_of_users);
    return {.number = sam_group_of_users,
            .name = "None",
            .use = sid_use::group,
            .id = {own.id.authority(), numbers}};
}

sam_account account_of_user(rpc_account user) {
    ENSURE(user.use == sid_use::user and number_of(user.id) != sam_group_of_users,
           "a host shows no user with the number of the group");
    return {.number = number_of(user.id), .name = std::move(user.name), .use = user.use, .id = user.id};
}

// Returns the user with that handle; std::nullopt for any other handle.
std::optional<std::uint32_t> user_of(const rpc_handle_table& open, const rpc_handle& handle) noexcept {
    const auto found = open.find(handle, rpc_object::kind::sam_user);
    return found ? std::optional(found->number) : std::nullopt;
}

}  // namespace

std::optional<sam_account> sam_account_numbered(rpc_host& host, rpc_object::kind domain,
                                                std::uint32_t number) {
    if (domain == rpc_object::kind::sam_builtin) {
        const auto who = std::ranges::find(aliases_of_builtin, number, number_of);
        auto alias = who != aliases_of_builtin.end() ? host.account_of(*who) : std::nullopt;
        if (!alias) return std::nullopt;
        return sam_account{
            .number = number, .name = std::move(alias->name), .use = sid_use::alias, .id = *who};
    }
    ENSURE(domain == rpc_object::kind::sam_domain, "only domains have accounts");
    if (number == sam_group_of_users) return group_of_users(host);
    auto user = host.user_numbered(number);
    if (!user) return std::nullopt;
    return account_of_user(*std::move(user));
}

std::optional<sam_account> sam_account_named(rpc_host& host, rpc_object::kind domain,
                                             std::string_view wanted) {
    if (domain == rpc_object::kind::sam_domain) {
        const auto user = host.user_named(wanted);
        auto numbered = user ? sam_account_numbered(host, domain, number_of(user->id)) : std::nullopt;
        // If two users have one number, one of them is shown.
        if (numbered and numbered->id == user->id) return numbered;
    }
    for (const sid_use use : {sid_use::group, sid_use::alias})
        for (sam_account& one : sam_accounts_after(host, domain, use, 0, aliases_of_builtin.size()))
            if (equal_ignoring_case(std::string_view(one.name), wanted)) return std::move(one);
    return std::nullopt;
}

std::vector<sam_account> sam_accounts_after(rpc_host& host, rpc_object::kind domain, sid_use wanted,
                                            std::uint32_t after, std::size_t most) {
    const bool is_builtin = domain == rpc_object::kind::sam_builtin;
    std::vector<sam_account> found;
    if (!is_builtin and wanted == sid_use::user)
        for (rpc_account& one : host.users_after(after, most))
            found.push_back(account_of_user(std::move(one)));
    if (!is_builtin and wanted == sid_use::group and after < sam_group_of_users)
        found.push_back(group_of_users(host));
    if (is_builtin and wanted == sid_use::alias)
        for (const sid& who : aliases_of_builtin)
            if (auto one = number_of(who) > after ? sam_account_numbered(host, domain, number_of(who))
                                                  : std::nullopt)
                found.push_back(*std::move(one));
    ENSURE(found.size() <= std::max<std::size_t>(most, aliases_of_builtin.size()), "a list has a bound");
    return found;
}

rpc_fault sam_enumerate(sam_call& call, sid_use wanted) {
    const auto handle = take_rpc_handle(call.in);
    const auto after = handle ? call.in.u32() : std::nullopt;
    if (!after or (wanted == sid_use::user and !call.in.u32()) or !call.in.u32())
        return rpc_fault::bad_stub_data;
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    // One more shows whether the list continues.
    constexpr std::size_t part_max = ndr_limits().elements_max;
    std::vector<sam_account> part = sam_accounts_after(call.host, *domain, wanted, *after, part_max + 1);
    const bool has_more = part.size() > part_max;
    if (has_more) part.pop_back();
    const auto count = static_cast<std::uint32_t>(part.size());
    call.out.u32(part.empty() ? *after : part.back().number);
    call.out.pointer(true);
    call.out.u32(count);
    call.out.pointer(count != 0);
    if (count != 0) call.out.u32(count);
    for (const sam_account& each : part) {
        call.out.u32(each.number);
        call.out.counted_text_head(each.name);
    }
    for (const sam_account& each : part)
        call.out.counted_text(each.name);
    call.out.u32(count);
    put_status(call.out, has_more ? nt_status::more_entries : nt_status::success);
    return rpc_fault::none;
}

rpc_fault sam_lookup_names(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto count = handle ? call.in.u32() : std::nullopt;
    const ndr_level inside(call.in);
    if (!inside or !count or !take_varying_count(call.in, *count)) return rpc_fault::bad_stub_data;
    const auto names = take_counted_texts(call.in, *count);
    if (!names) return rpc_fault::bad_stub_data;
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint32_t> uses;
    std::size_t found = 0;
    for (const std::string& wanted : *names) {
        const auto known = sam_account_named(call.host, *domain, wanted);
        found += known ? 1 : 0;
        numbers.push_back(known ? known->number : 0);
        uses.push_back(static_cast<std::uint32_t>(known ? known->use : sid_use::unknown));
    }
    put_numbers(call.out, numbers);
    put_numbers(call.out, uses);
    put_status(call.out, status_of_lookup(found, names->size()));
    return rpc_fault::none;
}

rpc_fault sam_lookup_ids(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto count = handle ? call.in.u32() : std::nullopt;
    const ndr_level inside(call.in);
    if (!inside or !count or !take_varying_count(call.in, *count)) return rpc_fault::bad_stub_data;
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t left = *count; left != 0; --left) {
        const auto number = call.in.u32();
        if (!number) return rpc_fault::bad_stub_data;
        numbers.push_back(*number);
    }
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    std::vector<std::string> names;
    std::vector<std::uint32_t> uses;
    std::size_t found = 0;
    for (const std::uint32_t number : numbers) {
        auto known = sam_account_numbered(call.host, *domain, number);
        found += known ? 1 : 0;
        uses.push_back(static_cast<std::uint32_t>(known ? known->use : sid_use::unknown));
        names.push_back(known ? std::move(known->name) : std::string());
    }
    call.out.u32(*count);
    call.out.pointer(*count != 0);
    if (*count != 0) call.out.u32(*count);
    for (const std::string& one : names)
        call.out.counted_text_head(one);
    for (const std::string& one : names)
        call.out.counted_text(one);
    put_numbers(call.out, uses);
    put_status(call.out, status_of_lookup(found, numbers.size()));
    return rpc_fault::none;
}

rpc_fault sam_alias_membership(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto sids = handle ? take_sid_array(call.in) : std::nullopt;
    if (!sids) return rpc_fault::bad_stub_data;
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    std::vector<std::uint32_t> aliases;
    if (*domain == rpc_object::kind::sam_builtin) {
        for (const sid& who : *sids)
            for (const std::uint32_t one : call.host.aliases_of(who))
                if (std::ranges::find(aliases, one) == aliases.end()) aliases.push_back(one);
    }
    put_numbers(call.out, aliases);
    put_status(call.out, nt_status::success);
    return rpc_fault::none;
}

rpc_fault sam_open_user(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto rights = handle ? call.in.u32() : std::nullopt;
    const auto number = rights ? call.in.u32() : std::nullopt;
    if (!number) return rpc_fault::bad_stub_data;
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    const auto known = sam_account_numbered(call.host, *domain, *number);
    rpc_handle opened;
    nt_status status = nt_status::no_such_user;
    if (known and known->use == sid_use::user) {
        const auto fresh =
            call.open.add(call.host.new_handle_id(), {.is = rpc_object::kind::sam_user, .number = *number});
        status = fresh ? nt_status::success : nt_status::insufficient_resources;
        opened = fresh.value_or(rpc_handle{});
    }
    put_rpc_handle(call.out, opened);
    put_status(call.out, status);
    return rpc_fault::none;
}

rpc_fault sam_query_user(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto which = handle ? call.in.u16() : std::nullopt;
    if (!which) return rpc_fault::bad_stub_data;
    const auto number = user_of(call.open, *handle);
    if (!number) return rpc_fault::context_mismatch;
    const auto known = sam_account_numbered(call.host, rpc_object::kind::sam_domain, *number);
    // The user may have been removed since.
    nt_status status = nt_status::no_such_user;
    if (known)
        status = put_user(call.out, *which, *number, known->name) ? nt_status::success
                                                                  : nt_status::invalid_info_class;
    if (status != nt_status::success) call.out.pointer(false);
    put_status(call.out, status);
    return rpc_fault::none;
}

rpc_fault sam_groups_for_user(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    if (!handle) return rpc_fault::bad_stub_data;
    if (!user_of(call.open, *handle)) return rpc_fault::context_mismatch;
    call.out.pointer(true);
    call.out.u32(1);
    call.out.pointer(true);
    call.out.u32(1);
    call.out.u32(sam_group_of_users);
    call.out.u32(attributes_of_membership);
    put_status(call.out, nt_status::success);
    return rpc_fault::none;
}

rpc_fault sam_rid_to_sid(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto number = handle ? call.in.u32() : std::nullopt;
    if (!number) return rpc_fault::bad_stub_data;
    auto domain = sam_domain_of(call.open, *handle);
    if (!domain and user_of(call.open, *handle)) domain = rpc_object::kind::sam_domain;
    if (!domain) return rpc_fault::context_mismatch;
    const auto known = sam_account_numbered(call.host, *domain, *number);
    call.out.pointer(known.has_value());
    if (known) call.out.sid_referent(known->id);
    put_status(call.out, known ? nt_status::success : nt_status::no_such_user);
    return rpc_fault::none;
}

}  // namespace sluice::smb::wire
