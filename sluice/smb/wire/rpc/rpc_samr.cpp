#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_sam.hpp"

// The server and its domains, [MS-SAMR] 3.1.5.1 to 3.1.5.5. Nothing can be changed.

namespace sluice::smb::wire {
namespace {

constexpr std::uint16_t samr_connect = 0;
constexpr std::uint16_t samr_close_handle = 1;
constexpr std::uint16_t samr_lookup_domain = 5;
constexpr std::uint16_t samr_enumerate_domains = 6;
constexpr std::uint16_t samr_open_domain = 7;
constexpr std::uint16_t samr_query_domain = 8;
constexpr std::uint16_t samr_enumerate_groups = 11;
constexpr std::uint16_t samr_enumerate_users = 13;
constexpr std::uint16_t samr_enumerate_aliases = 15;
constexpr std::uint16_t samr_get_alias_membership = 16;
constexpr std::uint16_t samr_lookup_names = 17;
constexpr std::uint16_t samr_lookup_ids = 18;
constexpr std::uint16_t samr_open_user = 34;
constexpr std::uint16_t samr_query_user = 36;
constexpr std::uint16_t samr_get_groups_for_user = 39;
constexpr std::uint16_t samr_query_domain_2 = 46;
constexpr std::uint16_t samr_query_user_2 = 47;
constexpr std::uint16_t samr_connect_2 = 57;
constexpr std::uint16_t samr_connect_4 = 62;
constexpr std::uint16_t samr_connect_5 = 64;
constexpr std::uint16_t samr_rid_to_sid = 65;

constexpr std::uint32_t status_no_such_domain = 0xC00000DF;
constexpr sid builtin{5, {32}};
constexpr const char* builtin_name = "Builtin";

// Classes of information about a domain, 2.2.3.16.
constexpr std::uint16_t password_information = 1;
constexpr std::uint16_t general_information = 2;
constexpr std::uint16_t name_information = 5;

constexpr std::uint32_t server_enabled = 1;
constexpr std::uint32_t role_primary = 3;
constexpr std::uint32_t never = 0x80000000;  // the upper half of the smallest time

// Opens the server for a caller, and writes its handle and the status. Guests and the anonymous
// must not learn who the users are.
void put_server(sam_call& call) {
    const rpc_caller who = call.host.caller();
    rpc_handle opened;
    nt_status status = nt_status::access_denied;
    if (!who.is_guest and !who.is_anonymous) {
        const auto fresh = call.open.add(call.host.new_handle_id(), {.is = rpc_object::kind::sam_server});
        status = fresh ? nt_status::success : nt_status::insufficient_resources;
        opened = fresh.value_or(rpc_handle{});
    }
    put_rpc_handle(call.out, opened);
    put_status(call.out, status);
}

rpc_fault connect(sam_call& call) {
    // One character in place of the server's name.
    const auto name = call.in.pointer();
    if (!name or (*name and !call.in.u16()) or !call.in.u32()) return rpc_fault::bad_stub_data;
    put_server(call);
    return rpc_fault::none;
}

rpc_fault connect_by_name(sam_call& call, bool has_revision) {
    if (!call.in.pointed_text()) return rpc_fault::bad_stub_data;
    if (has_revision and !call.in.u32()) return rpc_fault::bad_stub_data;
    if (!call.in.u32()) return rpc_fault::bad_stub_data;
    put_server(call);
    return rpc_fault::none;
}

rpc_fault connect_5(sam_call& call) {
    constexpr std::uint32_t version = 1;
    constexpr std::uint32_t revision = 3;
    if (!call.in.pointed_text() or !call.in.u32() or call.in.u32() != version or call.in.u32() != version or
        !call.in.u32() or !call.in.u32())
        return rpc_fault::bad_stub_data;
    call.out.u32(version);
    call.out.u32(version);
    call.out.u32(revision);
    call.out.u32(0);  // features
    put_server(call);
    return rpc_fault::none;
}

rpc_fault lookup_domain(sam_call& call) {
    const auto server = take_rpc_handle(call.in);
    const auto head = server ? call.in.counted_text_head() : std::nullopt;
    const auto name = head ? call.in.counted_text(*head) : std::nullopt;
    if (!name) return rpc_fault::bad_stub_data;
    if (!call.open.find(*server, rpc_object::kind::sam_server)) return rpc_fault::context_mismatch;
    const rpc_domain own = call.host.account_domain();
    std::optional<sid> found;
    if (equal_ignoring_case(std::string_view(*name), std::string_view(own.name))) found = own.id;
    if (equal_ignoring_case(std::string_view(*name), std::string_view(builtin_name))) found = builtin;
    call.out.pointer(found.has_value());
    if (found) call.out.sid_referent(*found);
    call.out.u32(found ? 0 : status_no_such_domain);
    return rpc_fault::none;
}

rpc_fault enumerate_domains(sam_call& call) {
    const auto server = take_rpc_handle(call.in);
    if (!server or !call.in.u32() or !call.in.u32()) return rpc_fault::bad_stub_data;
    if (!call.open.find(*server, rpc_object::kind::sam_server)) return rpc_fault::context_mismatch;
    const std::string names[] = {call.host.account_domain().name, builtin_name};
    constexpr std::uint32_t count = 2;
    call.out.u32(count);  // where a longer list would continue
    call.out.pointer(true);
    call.out.u32(count);
    call.out.pointer(true);
    call.out.u32(count);
    for (const std::string& name : names) {
        call.out.u32(0);
        call.out.counted_text_head(name);
    }
    for (const std::string& name : names)
        call.out.counted_text(name);
    call.out.u32(count);
    put_status(call.out, nt_status::success);
    return rpc_fault::none;
}

rpc_fault open_domain(sam_call& call) {
    const auto server = take_rpc_handle(call.in);
    const auto rights = server ? call.in.u32() : std::nullopt;
    const auto which = rights ? call.in.sid_referent() : std::nullopt;
    if (!which) return rpc_fault::bad_stub_data;
    if (!call.open.find(*server, rpc_object::kind::sam_server)) return rpc_fault::context_mismatch;
    const bool is_builtin = *which == builtin;
    rpc_handle opened;
    std::uint32_t status = status_no_such_domain;
    if (is_builtin or *which == call.host.account_domain().id) {
        const auto is = is_builtin ? rpc_object::kind::sam_builtin : rpc_object::kind::sam_domain;
        const auto fresh = call.open.add(call.host.new_handle_id(), {.is = is});
        status = static_cast<std::uint32_t>(fresh ? nt_status::success : nt_status::insufficient_resources);
        opened = fresh.value_or(rpc_handle{});
    }
    put_rpc_handle(call.out, opened);
    call.out.u32(status);
    return rpc_fault::none;
}

// Writes DOMAIN_GENERAL_INFORMATION, 2.2.3.10.
void put_general(sam_call& call, rpc_object::kind which, const std::string& name) {
    const bool is_own = which == rpc_object::kind::sam_domain;
    const auto count = [&](sid_use use) {
        return static_cast<std::uint32_t>(sam_accounts_after(call.host, which, use, 0, 1).size());
    };
    const std::size_t users = is_own ? call.host.user_count() : 0;
    const std::string server = call.host.name();
    call.out.u32(0);
    call.out.u32(never);  // when users must log off
    call.out.counted_text_head({});
    call.out.counted_text_head(name);
    call.out.counted_text_head(server);
    call.out.u32(0);  // number of changes
    call.out.u32(0);
    call.out.u32(server_enabled);
    call.out.u32(role_primary);
    call.out.u32(0);  // not for LAN Manager; a byte and its padding
    call.out.u32(static_cast<std::uint32_t>(users));
    call.out.u32(count(sid_use::group));
    call.out.u32(count(sid_use::alias));
    call.out.counted_text(name);
    call.out.counted_text(server);
}

// Writes DOMAIN_PASSWORD_INFORMATION, 2.2.3.5: no rules, because clients set no passwords.
void put_password_rules(ndr_writer& out) {
    out.u16(0);
    out.u16(0);
    out.u32(0);
    out.u32(0);
    out.u32(never);
    out.u32(0);
    out.u32(0);
}

rpc_fault query_domain(sam_call& call) {
    const auto handle = take_rpc_handle(call.in);
    const auto which = handle ? call.in.u16() : std::nullopt;
    if (!which) return rpc_fault::bad_stub_data;
    const auto domain = sam_domain_of(call.open, *handle);
    if (!domain) return rpc_fault::context_mismatch;
    const bool is_known =
        *which == password_information or * which == general_information or * which == name_information;
    call.out.pointer(is_known);
    if (is_known) {
        const std::string name =
            *domain == rpc_object::kind::sam_builtin ? builtin_name : call.host.account_domain().name;
        call.out.u16(*which);
        call.out.align(8);  // the widest arm has a time in it
        if (*which == password_information) put_password_rules(call.out);
        if (*which == general_information) put_general(call, *domain, name);
        if (*which == name_information) {
            call.out.counted_text_head(name);
            call.out.counted_text(name);
        }
    }
    put_status(call.out, is_known ? nt_status::success : nt_status::invalid_info_class);
    return rpc_fault::none;
}

rpc_fault execute_in_domain(sam_call& call, std::uint16_t operation) {
    switch (operation) {
        case samr_enumerate_groups:
            return sam_enumerate(call, sid_use::group);
        case samr_enumerate_users:
            return sam_enumerate(call, sid_use::user);
        case samr_enumerate_aliases:
            return sam_enumerate(call, sid_use::alias);
        case samr_get_alias_membership:
            return sam_alias_membership(call);
        case samr_lookup_names:
            return sam_lookup_names(call);
        case samr_lookup_ids:
            return sam_lookup_ids(call);
        case samr_open_user:
            return sam_open_user(call);
        case samr_query_user:
        case samr_query_user_2:
            return sam_query_user(call);
        case samr_get_groups_for_user:
            return sam_groups_for_user(call);
        case samr_rid_to_sid:
            return sam_rid_to_sid(call);
        default:
            return rpc_fault::operation_range;
    }
}

}  // namespace

std::optional<rpc_object::kind> sam_domain_of(const rpc_handle_table& open,
                                              const rpc_handle& handle) noexcept {
    const auto found = open.find(handle);
    if (!found) return std::nullopt;
    const bool is_domain =
        found->is == rpc_object::kind::sam_domain or found->is == rpc_object::kind::sam_builtin;
    return is_domain ? std::optional(found->is) : std::nullopt;
}

rpc_fault call_samr(rpc_host& host, rpc_handle_table& open, const rpc_call& call, ndr_writer& results) {
    ndr_reader arguments(call.arguments);
    sam_call state{.host = host, .open = open, .in = arguments, .out = results};
    switch (call.operation) {
        case samr_connect:
            return connect(state);
        case samr_connect_2:
            return connect_by_name(state, false);
        case samr_connect_4:
            return connect_by_name(state, true);
        case samr_connect_5:
            return connect_5(state);
        case samr_close_handle:
            return close_rpc_handle(open, arguments, results);
        case samr_lookup_domain:
            return lookup_domain(state);
        case samr_enumerate_domains:
            return enumerate_domains(state);
        case samr_open_domain:
            return open_domain(state);
        case samr_query_domain:
        case samr_query_domain_2:
            return query_domain(state);
        default:
            return execute_in_domain(state, call.operation);
    }
}

}  // namespace sluice::smb::wire
