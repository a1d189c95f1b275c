#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb::wire {
namespace {

// Operations, [MS-SRVS] 3.1.4.
constexpr std::uint16_t net_connection_enum = 8;
constexpr std::uint16_t net_file_enum = 9;
constexpr std::uint16_t net_file_get_info = 10;
constexpr std::uint16_t net_file_close = 11;
constexpr std::uint16_t net_session_enum = 12;
constexpr std::uint16_t net_session_del = 13;
constexpr std::uint16_t net_share_enum = 15;
constexpr std::uint16_t net_share_get_info = 16;
constexpr std::uint16_t net_share_set_info = 17;
constexpr std::uint16_t net_server_get_info = 21;
constexpr std::uint16_t net_remote_tod = 28;
constexpr std::uint16_t net_share_enum_sticky = 36;

constexpr std::uint32_t platform_nt = 500;
constexpr std::uint32_t version_major = 10;
constexpr std::uint32_t version_minor = 0;
constexpr std::uint32_t server_type = 0x00009003;  // workstation, server, NT, NT server
constexpr std::uint32_t uses_unlimited = 0xFFFFFFFF;

bool is_share_level(std::uint32_t level) noexcept {
    constexpr std::array<std::uint32_t, 6> levels = {0, 1, 2, 501, 502, 1005};
    return std::ranges::find(levels, level) != levels.end();
}

// Returns the self-relative descriptor of a share: everyone has the rights that the share permits.
// The lists of users and the descriptors of the files permit less.
std::vector<std::byte> descriptor_of(const rpc_share& share) {
    const security_descriptor everyone{
        .control = descriptor_control::self_relative | descriptor_control::dacl_present,
        .owner = sid_administrators,
        .group = sid_administrators,
        .dacl = acl{.entries = {ace{.rights = share.access_max, .who = sid_everyone}}}};
    std::vector<std::byte> bytes(encoded_bytes(everyone));
    byte_writer writer(bytes);
    ENSURE(encode(writer, everyone).has_value() and writer.position() == bytes.size(),
           "the descriptor of a share has one entry");
    return bytes;
}

// Writes the fixed part of a SHARE_INFO structure, [MS-SRVS] 2.2.4.22 and following.
void put_share(ndr_writer& out, std::uint32_t level, const rpc_share& share) {
    if (level == 1005) {
        out.u32(share.flags);
        return;
    }
    out.pointer(true);
    if (level == 0) return;
    out.u32(share.type);
    out.pointer(true);
    if (level == 501) out.u32(0);
    if (level != 2 and level != 502) return;
    out.u32(0);  // permissions, unused because shares have descriptors
    out.u32(uses_unlimited);
    out.u32(0);
    out.pointer(true);   // path
    out.pointer(false);  // password
    if (level == 502) {
        out.u32(static_cast<std::uint32_t>(descriptor_of(share).size()));
        out.pointer(true);
    }
}

// Writes the referents of its pointers. The path stays empty, because it would be a path of the
// host.
void put_share_texts(ndr_writer& out, std::uint32_t level, const rpc_share& share) {
    if (level == 1005) return;
    out.text(share.name);
    if (level == 0) return;
    out.text(share.comment);
    if (level == 2 or level == 502) out.text("C:\\" + share.name);
    if (level == 502) out.byte_array(descriptor_of(share));
}

rpc_fault share_enum(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto asked = server ? take_rpc_enum(in) : std::nullopt;
    if (!asked) return rpc_fault::bad_stub_data;
    const std::uint32_t level = asked->level;
    out.u32(level);
    out.u32(level);
    const bool known = is_share_level(level) and level != 1005;
    const std::vector<rpc_share> shares = known ? host.shares() : std::vector<rpc_share>();
    const auto count = static_cast<std::uint32_t>(shares.size());
    out.pointer(known);
    if (known) {
        out.u32(count);
        out.pointer(true);
        out.u32(count);
        for (const rpc_share& share : shares)
            put_share(out, level, share);
        for (const rpc_share& share : shares)
            put_share_texts(out, level, share);
    }
    out.u32(count);
    out.pointer(asked->resumes);
    if (asked->resumes) out.u32(0);
    out.u32(known ? rpc_no_error : rpc_error_invalid_level);
    return rpc_fault::none;
}

rpc_fault share_get_info(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    if (!server) return rpc_fault::bad_stub_data;
    const auto name = in.text();
    const auto level = in.u32();
    if (!name or !level) return rpc_fault::bad_stub_data;
    const std::vector<rpc_share> shares = host.shares();
    const auto share = std::ranges::find_if(shares, [&](const rpc_share& candidate) {
        return equal_ignoring_case(std::string_view(candidate.name), std::string_view(*name));
    });
    const bool found = is_share_level(*level) and share != shares.end();
    out.u32(*level);
    out.pointer(found);
    if (found) {
        put_share(out, *level, *share);
        put_share_texts(out, *level, *share);
    }
    out.u32(found                    ? rpc_no_error
            : is_share_level(*level) ? rpc_error_share_not_found
                                     : rpc_error_invalid_level);
    return rpc_fault::none;
}

// Shares are set in the configuration only. No parameter is named as wrong.
rpc_fault share_set_info(ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    if (!server) return rpc_fault::bad_stub_data;
    const auto name = in.text();
    const auto level = in.u32();
    if (!name or !level) return rpc_fault::bad_stub_data;
    out.pointer(false);
    out.u32(rpc_error_access_denied);
    return rpc_fault::none;
}

// Writes SERVER_INFO_100, 101 or 102, [MS-SRVS] 2.2.4.40 and following.
rpc_fault server_get_info(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    const auto server = in.pointed_text();
    const auto level = in.u32();
    if (!server or !level) return rpc_fault::bad_stub_data;
    const bool known = *level >= 100 and * level <= 102;
    out.u32(*level);
    out.pointer(known);
    if (known) {
        out.u32(platform_nt);
        out.pointer(true);
        if (*level != 100) {
            out.u32(version_major);
            out.u32(version_minor);
            out.u32(server_type);
            out.pointer(true);
        }
        if (*level == 102) {
            out.u32(uses_unlimited);  // users
            out.u32(15);              // minutes until an idle session is disconnected
            out.u32(0);               // not hidden
            out.u32(240);             // seconds between announcements, which are never sent
            out.u32(3000);
            out.u32(0);  // licences
            out.pointer(true);
        }
        out.text(host.name());
        if (*level != 100) out.text(host.comment());
        if (*level == 102) out.text("C:\\");
    }
    out.u32(known ? rpc_no_error : rpc_error_invalid_level);
    return rpc_fault::none;
}

// Writes TIME_OF_DAY_INFO, [MS-SRVS] 2.2.4.105, in UTC.
rpc_fault remote_tod(rpc_host& host, ndr_reader& in, ndr_writer& out) {
    if (!in.pointed_text()) return rpc_fault::bad_stub_data;
    using namespace std::chrono;
    const unix_time now = host.now();
    // The call counts seconds in 32 bits, which also bounds the range of the calendar conversion.
    const auto seconds_32 = static_cast<std::uint32_t>(now.seconds);
    const sys_seconds moment{seconds(seconds_32)};
    const sys_days day = floor<days>(moment);
    const year_month_day date(day);
    const hh_mm_ss time(moment - day);
    out.pointer(true);
    out.u32(seconds_32);
    out.u32(0);  // milliseconds since an arbitrary time
    out.u32(static_cast<std::uint32_t>(time.hours().count()));
    out.u32(static_cast<std::uint32_t>(time.minutes().count()));
    out.u32(static_cast<std::uint32_t>(time.seconds().count()));
    out.u32(now.nanoseconds / 10'000'000);
    out.u32(0);    // minutes west of UTC
    out.u32(310);  // tenths of milliseconds per tick
    out.u32(static_cast<unsigned>(date.day()));
    out.u32(static_cast<unsigned>(date.month()));
    out.u32(static_cast<std::uint32_t>(static_cast<int>(date.year())));
    out.u32(weekday(day).c_encoding());
    out.u32(rpc_no_error);
    return rpc_fault::none;
}

}  // namespace

std::optional<rpc_enum> take_rpc_enum(ndr_reader& in) noexcept {
    const auto level = in.u32();
    const auto branch = in.u32();
    const auto container = in.pointer();
    if (!level or branch != level or !container) return std::nullopt;
    if (*container) {
        const auto entries = in.u32();
        const auto array = in.pointer();
        // Some clients send an empty array; one with results has no place in a request.
        if (!entries or !array or *entries != 0 or (*array and in.u32() != 0u)) return std::nullopt;
    }
    const auto preferred_length = in.u32();
    const auto resumes = in.pointer();
    if (!preferred_length or !resumes) return std::nullopt;
    const auto after = *resumes ? in.u32() : 0;
    if (!after) return std::nullopt;
    return rpc_enum{.level = *level, .bytes_max = *preferred_length, .resumes = *resumes, .after = *after};
}

rpc_fault call_srvsvc(rpc_host& host, const rpc_call& call, ndr_writer& results) {
    ndr_reader arguments(call.arguments);
    switch (call.operation) {
        case net_connection_enum:
            return connection_enum(host, arguments, results);
        case net_file_enum:
            return file_enum(host, arguments, results);
        case net_file_get_info:
            return file_get_info(host, arguments, results);
        case net_file_close:
            return file_close(host, arguments, results);
        case net_session_enum:
            return session_enum(host, arguments, results);
        case net_session_del:
            return session_del(host, arguments, results);
        case net_share_enum:
        case net_share_enum_sticky:
            return share_enum(host, arguments, results);
        case net_share_get_info:
            return share_get_info(host, arguments, results);
        case net_share_set_info:
            return share_set_info(arguments, results);
        case net_server_get_info:
            return server_get_info(host, arguments, results);
        case net_remote_tod:
            return remote_tod(host, arguments, results);
        default:
            return rpc_fault::operation_range;
    }
}

}  // namespace sluice::smb::wire
