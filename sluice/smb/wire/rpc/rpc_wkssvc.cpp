#include <string>
#include <utility>

#include "sluice/smb/wire/rpc/rpc_srvsvc_lists.hpp"

namespace sluice::smb::wire {
namespace {

// Operations, [MS-WKST] 3.2.4.
constexpr std::uint16_t net_wksta_get_info = 0;
constexpr std::uint16_t net_wksta_user_enum = 2;

constexpr std::uint32_t platform_nt = 500;

// Writes WKSTA_INFO_100, 101 or 102, [MS-WKST] 2.2.5.
rpc_fault wksta_get_info(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto level = in.u32();
    if (!server or !level) return rpc_fault::bad_stub_data;
    const bool known = *level >= 100 and * level <= 102;
    out.u32(*level);
    out.pointer(known);
    if (known) {
        out.u32(platform_nt);
        out.pointer(true);
        out.pointer(true);
        out.u32(10);
        out.u32(0);
        if (*level != 100) out.pointer(true);
        if (*level == 102) out.u32(0);  // users logged on at the console
        out.text(host.name());
        out.text(host.domain());
        if (*level != 100) out.text("");
    }
    out.u32(known ? rpc_no_error : rpc_error_invalid_level);
    return rpc_fault::none;
}

// Writes the users who have sessions: WKSTA_USER_INFO_0 or WKSTA_USER_INFO_1, 2.2.5. A user is at
// the position of their first session, so that a list in parts has each once, also if they log on
// again; twice only if that session ends between two parts and they have another.
rpc_fault wksta_user_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto asked = server ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const auto refuse = [&](std::uint32_t why) { return put_no_list(out, *asked, why), rpc_fault::none; };
    if (asked->level > 1) return refuse(rpc_error_invalid_level);
    if (!host.caller().is_administrator) return refuse(rpc_error_access_denied);
    const std::string server_name = host.name();
    rpc_listing<rpc_logged_on> listing(*asked);
    for (rpc_logged_on& one : host.logged_on(asked->after)) {
        const std::size_t bytes = one.user.size() + 2 * server_name.size();
        if (!listing.add(one.id, std::move(one), bytes)) break;
    }
    listing.write(
        out,
        [&](const rpc_logged_on&) {
            for (int left = asked->level == 0 ? 1 : 4; left != 0; --left)
                out.pointer(true);
        },
        [&](const rpc_logged_on& one) {
            out.text(one.user);
            if (asked->level == 0) return;
            out.text(server_name);  // the domain of the user
            out.text("");           // other domains
            out.text(server_name);  // the server of the logon
        });
    return rpc_fault::none;
}

}  // namespace

rpc_fault call_wkssvc(rpc_host& host, const rpc_call& call, ndr_writer& results) {
    ndr_reader arguments(call.arguments);
    switch (call.operation) {
        case net_wksta_get_info:
            return wksta_get_info(host, arguments, results);
        case net_wksta_user_enum:
            return wksta_user_enum(host, arguments, results);
        default:
            return rpc_fault::operation_range;
    }
}

}  // namespace sluice::smb::wire
