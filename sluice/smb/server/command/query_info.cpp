#include "sluice/smb/wire/file/query_info.hpp"

#include <algorithm>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/command/file_information.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/default_security.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;
using wire::security_information;

namespace {

constexpr std::size_t reply_fixed_bytes = 16;

[[nodiscard]] nt_status check(const request& r, const wire::query_info_args& args) noexcept {
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    const std::uint64_t most = std::max<std::uint64_t>(args.output_bytes_max, args.input.size());
    return most > bytes_max or not r.affords(most) ? nt_status::invalid_parameter : nt_status::success;
}

[[nodiscard]] nt_status reply_with(request& r, bytes_view output, nt_status status) {
    byte_writer* const body = r.begin_reply(reply_fixed_bytes + output.size());
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::query_info_reply{.output = output});
    return status;
}

// What the client has no room for is cut off, or, if it is the part that gives the rest its meaning, is no
// answer at all ([MS-SMB2] 3.3.5.20.1, 3.3.5.20.2).
[[nodiscard]] nt_status fit(request& r, const information& what, std::uint32_t bytes_max) {
    if (bytes_max < what.fixed_bytes) return nt_status::info_length_mismatch;
    const bool is_cut = what.bytes.size() > bytes_max;
    const bytes_view shown = is_cut ? *what.bytes.first(bytes_max) : what.bytes;
    return reply_with(r, shown,
                      is_cut or what.is_incomplete ? nt_status::buffer_overflow : nt_status::success);
}

[[nodiscard]] nt_status tell(request& r, open& one, const wire::query_info_args& args) {
    pool_buffer memory = r.answer.buffers().take(information_bytes_max);
    if (not memory) return nt_status::insufficient_resources;
    const mutable_bytes room(memory.bytes());
    const auto told = args.type == wire::info_type::file_system ? volume_information(r, args, room)
                      : one.is_pipe()                           ? pipe_information(one, args, room)
                                                                : file_information(r, one, args, room);
    return told ? fit(r, *told, args.output_bytes_max) : told.error();
}

[[nodiscard]] nt_status tell_security(request& r, open& one, const wire::query_info_args& args) {
    if (one.is_pipe()) return nt_status::not_supported;
    const auto parts = security_information(args.additional_information);
    access_mask needed = access_mask::none;
    if (wire::has_any(parts, security_information::owner | security_information::group |
                                 security_information::dacl | security_information::label))
        needed |= access_mask::read_control;
    if (wire::has(parts, security_information::sacl)) needed |= access_mask::access_system_security;
    if (not one.grants(needed)) return nt_status::access_denied;

    std::vector<std::byte> room(wire::security_descriptor_bytes_max);
    byte_writer writer{mutable_bytes(room)};
    if (not encode(writer, selected(security_of(r.accessor(), *one.node), parts)))
        return nt_status::invalid_security_descr;
    const auto bytes = writer.finish();
    if (not bytes) return nt_status::insufficient_resources;
    if (bytes->size() <= args.output_bytes_max) return reply_with(r, bytes_view(*bytes), nt_status::success);
    // How much room it takes is the error's data ([MS-SMB2] 3.3.5.20.3).
    const le32 needed_bytes(static_cast<std::uint32_t>(bytes->size()));
    const bytes_view told = bytes_of(needed_bytes);
    r.error_data.assign(told.begin(), told.end());
    return nt_status::buffer_too_small;
}

}  // namespace

io::task<nt_status> serve_query_info(request& r) {
    const auto args = wire::decode_query_info(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    const std::shared_ptr<open> one = r.find_open(args->file);
    if (one == nullptr) co_return nt_status::file_closed;
    switch (args->type) {
        case wire::info_type::file:
        case wire::info_type::file_system:
            co_return tell(r, *one, *args);
        case wire::info_type::security:
            co_return tell_security(r, *one, *args);
        case wire::info_type::quota:
            co_return nt_status::not_supported;  // no volume here keeps quotas
        default:
            co_return nt_status::invalid_parameter;
    }
}

}  // namespace sluice::smb::server
