#include <array>

#include "sluice/smb/wire/rpc/rpc_lsa.hpp"

namespace sluice::smb::wire {
namespace {

// Operations, [MS-LSAD] 3.1.4 and [MS-LSAT] 3.1.4.
constexpr std::uint16_t lsar_close = 0;
constexpr std::uint16_t lsar_open_policy = 6;
constexpr std::uint16_t lsar_query_information_policy = 7;
constexpr std::uint16_t lsar_lookup_names = 14;
constexpr std::uint16_t lsar_lookup_sids = 15;
constexpr std::uint16_t lsar_open_policy_2 = 44;
constexpr std::uint16_t lsar_get_user_name = 45;
constexpr std::uint16_t lsar_query_information_policy_2 = 46;
constexpr std::uint16_t lsar_lookup_sids_2 = 57;
constexpr std::uint16_t lsar_lookup_names_2 = 58;
constexpr std::uint16_t lsar_lookup_names_3 = 68;

// The rights that a client can have: to read, and to look names up.
constexpr std::uint32_t read_control = 0x00020000;
constexpr std::uint32_t maximum_allowed = 0x02000000;
constexpr std::uint32_t generic_execute = 0x20000000;
constexpr std::uint32_t generic_read = 0x80000000;
constexpr std::uint32_t grantable = policy_view_local_information | policy_lookup_names | read_control;

// Classes of information, [MS-LSAD] 2.2.4.1.
enum class policy_class : std::uint16_t {
    primary_domain = 3,
    account_domain = 5,
    server_role = 6,
    dns_domain = 12,
    local_account_domain = 14,
};
constexpr std::uint16_t role_primary = 3;

// Consumes LSAPR_OBJECT_ATTRIBUTES, [MS-LSAD] 2.2.2.4. Clients set nothing in it but the quality of
// service, which is ignored. Returns whether it is well-formed and names no object.
bool take_attributes(ndr_reader& in) noexcept {
    const auto length = in.u32();
    const auto directory = in.pointer();
    const auto name = in.pointer();
    const auto attributes = in.u32();
    const auto descriptor = in.pointer();
    const auto quality = in.pointer();
    if (!length or !directory or !name or !attributes or !descriptor or !quality) return false;
    if (*directory or *name or *descriptor) return false;
    constexpr std::size_t two_flags = 2;
    return !*quality or (in.u32() and in.u16() and in.raw(two_flags));
}

// Returns the granted part of the wanted rights; std::nullopt if others are wanted, too.
std::optional<std::uint32_t> granted_of(std::uint32_t wanted) noexcept {
    constexpr std::uint32_t all = maximum_allowed | generic_execute | generic_read;
    if ((wanted & ~(grantable | all)) != 0) return std::nullopt;
    return (wanted & all) != 0 ? grantable : wanted;
}

rpc_fault open_policy(rpc_host& host, rpc_handle_table& policies, bool has_name, ndr_reader& in,
                      ndr_writer& out) {
    // The older call has one character in place of the server's name.
    const auto name = in.pointer();
    if (!name or (*name and (has_name ? !in.text() : !in.u16()))) return rpc_fault::bad_stub_data;
    if (!take_attributes(in)) return rpc_fault::bad_stub_data;
    const auto wanted = in.u32();
    if (!wanted) return rpc_fault::bad_stub_data;
    const auto granted = granted_of(*wanted);
    nt_status status = nt_status::access_denied;
    rpc_handle opened;
    if (granted and !host.caller().is_anonymous) {
        const auto fresh =
            policies.add(host.new_handle_id(), {.is = rpc_object::kind::policy, .granted = *granted});
        status = fresh ? nt_status::success : nt_status::insufficient_resources;
        opened = fresh.value_or(rpc_handle{});
    }
    put_rpc_handle(out, opened);
    put_status(out, status);
    return rpc_fault::none;
}

// Writes a pointer to LSAPR_POLICY_INFORMATION, [MS-LSAD] 2.2.4.2. Returns false, and writes
// nothing, for a class that this server does not have.
bool put_information(rpc_host& host, policy_class which, ndr_writer& out) {
    const auto begin = [&] {
        out.pointer(true);
        out.u16(static_cast<std::uint16_t>(which));
        out.align(8);  // the widest arm has a time in it
    };
    switch (which) {
        case policy_class::primary_domain: {
            // The workgroup, which has no SID.
            const std::string name = host.domain();
            begin();
            out.counted_text_head(name);
            out.pointer(false);
            out.counted_text(name);
            return true;
        }
        case policy_class::account_domain:
        case policy_class::local_account_domain: {
            const rpc_domain own = host.account_domain();
            begin();
            out.counted_text_head(own.name);
            out.pointer(true);
            out.counted_text(own.name);
            out.sid_referent(own.id);
            return true;
        }
        case policy_class::server_role:
            begin();
            out.u16(role_primary);
            return true;
        case policy_class::dns_domain: {
            const std::string name = host.domain();
            const guid none;
            begin();
            out.counted_text_head(name);
            out.counted_text_head({});
            out.counted_text_head({});
            out.raw(bytes_of(none));
            out.pointer(false);
            out.counted_text(name);
            return true;
        }
    }
    return false;
}

rpc_fault query_policy(rpc_host& host, const rpc_handle_table& policies, ndr_reader& in, ndr_writer& out) {
    const auto policy = take_rpc_handle(in);
    const auto which = policy ? in.u16() : std::nullopt;
    if (!which) return rpc_fault::bad_stub_data;
    auto status = use_of_policy(policies, *policy, policy_view_local_information);
    if (!status) return rpc_fault::context_mismatch;
    if (*status == nt_status::success and !put_information(host, policy_class(*which), out))
        status = nt_status::invalid_parameter;
    if (*status != nt_status::success) out.pointer(false);
    put_status(out, *status);
    return rpc_fault::none;
}

// Consumes a pointer to an RPC_UNICODE_STRING. Returns whether it is well-formed.
bool take_pointed_name(ndr_reader& in) noexcept {
    const auto present = in.pointer();
    if (!present) return false;
    if (!*present) return true;
    const auto head = in.counted_text_head();
    return head and in.counted_text(*head);
}

// LsarGetUserName, [MS-LSAT] 3.1.4.4: who the caller is.
rpc_fault get_user_name(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    if (!in.pointed_text() or !take_pointed_name(in)) return rpc_fault::bad_stub_data;
    const auto wants_domain = in.pointer();
    if (!wants_domain or (*wants_domain and !take_pointed_name(in))) return rpc_fault::bad_stub_data;
    const rpc_caller who = host.caller();
    out.pointer(true);
    out.counted_text_head(who.name);
    out.counted_text(who.name);
    out.pointer(*wants_domain);
    if (*wants_domain) {
        out.pointer(true);
        out.counted_text_head(who.domain);
        out.counted_text(who.domain);
    }
    put_status(out, nt_status::success);
    return rpc_fault::none;
}

}  // namespace

std::optional<rpc_handle> take_rpc_handle(ndr_reader& in) noexcept {
    const auto bytes = in.raw(sizeof(rpc_handle));
    if (!bytes) return std::nullopt;
    return bytes->take<rpc_handle>();
}

void put_rpc_handle(ndr_writer& out, const rpc_handle& one) {
    out.raw(bytes_of(one));
}

rpc_fault close_rpc_handle(rpc_handle_table& open, ndr_reader& in, ndr_writer& out) {
    const auto closed = take_rpc_handle(in);
    if (!closed) return rpc_fault::bad_stub_data;
    if (!open.remove(*closed)) return rpc_fault::context_mismatch;
    put_rpc_handle(out, {});
    put_status(out, nt_status::success);
    return rpc_fault::none;
}

std::optional<nt_status> use_of_policy(const rpc_handle_table& policies, const rpc_handle& policy,
                                       std::uint32_t right) noexcept {
    ENSURE(right != 0, "a call needs a right to a policy");
    const auto found = policies.find(policy, rpc_object::kind::policy);
    if (!found) return std::nullopt;
    return (found->granted & right) != 0 ? nt_status::success : nt_status::access_denied;
}

void put_status(ndr_writer& out, nt_status status) {
    out.u32(static_cast<std::uint32_t>(status));
}

rpc_fault call_lsarpc(rpc_host& host, rpc_handle_table& policies, const rpc_call& call, ndr_writer& results) {
    ndr_reader in(call.arguments);
    switch (call.operation) {
        case lsar_close:
            return close_rpc_handle(policies, in, results);
        case lsar_open_policy:
            return open_policy(host, policies, false, in, results);
        case lsar_open_policy_2:
            return open_policy(host, policies, true, in, results);
        case lsar_query_information_policy:
        case lsar_query_information_policy_2:
            return query_policy(host, policies, in, results);
        case lsar_get_user_name:
            return get_user_name(host, in, results);
        case lsar_lookup_sids:
            return look_up_sids(host, policies, sid_lookup::plain, in, results);
        case lsar_lookup_sids_2:
            return look_up_sids(host, policies, sid_lookup::with_flags, in, results);
        case lsar_lookup_names:
            return look_up_names(host, policies, name_lookup::plain, in, results);
        case lsar_lookup_names_2:
            return look_up_names(host, policies, name_lookup::with_flags, in, results);
        case lsar_lookup_names_3:
            return look_up_names(host, policies, name_lookup::with_sids, in, results);
        default:
            return rpc_fault::operation_range;
    }
}

}  // namespace sluice::smb::wire
