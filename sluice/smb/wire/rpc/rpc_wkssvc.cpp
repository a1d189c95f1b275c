#include <set>
#include <string>
#include <utility>

#include "sluice/base/case_fold.hpp"
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

// Writes the users who have sessions, each once: WKSTA_USER_INFO_0 or WKSTA_USER_INFO_1, 2.2.5.
rpc_fault wksta_user_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto asked = server ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const auto refuse = [&](std::uint32_t why) { return put_no_list(out, *asked, why), rpc_fault::none; };
    if (asked->level > 1) return refuse(rpc_error_invalid_level);
    if (!host.caller().is_administrator) return refuse(rpc_error_access_denied);
    rpc_listing<rpc_session> listing(*asked);
    std::set<std::string> listed;
    for (rpc_session& one : host.sessions()) {
        if (one.id <= asked->after or !listed.insert(fold(one.user)).second) continue;
        const std::size_t bytes = one.user.size() + 2 * host.name().size();
        if (!listing.add(std::move(one), bytes)) break;
    }
    listing.write(
        out,
        [&](const rpc_session&) {
            for (int left = asked->level == 0 ? 1 : 4; left != 0; --left)
                out.pointer(true);
        },
        [&](const rpc_session& one) {
            out.text(one.user);
            if (asked->level == 0) return;
            out.text(host.name());  // the domain of the user
            out.text("");           // other domains
            out.text(host.name());  // the server of the logon
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
