#include "sluice/smb/wire/rpc/rpc_service.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint16_t net_wksta_get_info = 0;  // [MS-WKST] 3.2.4.1

constexpr std::uint32_t no_error = 0;
constexpr std::uint32_t error_invalid_level = 124;
constexpr std::uint32_t platform_nt = 500;

// Writes WKSTA_INFO_100, 101 or 102, [MS-WKST] 2.2.5.
rpc_fault wksta_get_info(const rpc_host& host, ndr_reader& in, ndr_writer& out) {
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
    out.u32(known ? no_error : error_invalid_level);
    return rpc_fault::none;
}

}  // namespace

rpc_fault call_wkssvc(const rpc_host& host, const rpc_call& call, ndr_writer& results) {
    if (call.operation != net_wksta_get_info) return rpc_fault::operation_range;
    ndr_reader arguments(call.arguments);
    return wksta_get_info(host, arguments, results);
}

}  // namespace sluice::smb::wire
