#include "sluice/smb/wire/file/query_info.hpp"

#include <algorithm>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/command/info/file_information.hpp"
#include "sluice/smb/server/command/info/quota_handlers.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/default_security.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
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
    return most > bytes_max or not r.charge_covers(most) ? nt_status::invalid_parameter : nt_status::success;
}

[[nodiscard]] nt_status reply_with(request& r, bytes_view output, nt_status status) {
    byte_writer* const body = r.begin_reply(reply_fixed_bytes + output.size());
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::query_info_reply{.output = output});
    return status;
}

// Output that does not fit in the client's buffer is truncated. If not even the part that gives the
// rest its meaning fits, the reply is an error ([MS-SMB2] 3.3.5.20.1, 3.3.5.20.2).
[[nodiscard]] nt_status fit(request& r, const information& what, std::uint32_t bytes_max) {
    if (bytes_max < what.fixed_bytes) return nt_status::info_length_mismatch;
    const bool is_cut = what.bytes.size() > bytes_max;
    const bytes_view shown = is_cut ? *what.bytes.first(bytes_max) : what.bytes;
    return reply_with(r, shown,
                      is_cut or what.is_incomplete ? nt_status::buffer_overflow : nt_status::success);
}

[[nodiscard]] std::size_t room_for(const wire::query_info_args& args) noexcept {
    const bool lists_streams =
        args.type == wire::info_type::file and
        wire::file_information_class(args.information_class) == wire::file_information_class::stream;
    if (not lists_streams) return information_bytes_max;
    return std::clamp<std::size_t>(args.output_bytes_max, information_bytes_max, stream_list_bytes_max);
}

// Has an answer written, and replies with as much of it as the client has room for.
template <class Write>
[[nodiscard]] nt_status reply_with_information(request& r, const wire::query_info_args& args, Write write) {
    pool_buffer memory = r.answer.buffers().take(room_for(args));
    if (not memory) return nt_status::insufficient_resources;
    const auto encoded = write(mutable_bytes(memory.bytes()));
    return encoded ? fit(r, *encoded, args.output_bytes_max) : encoded.error();
}

[[nodiscard]] io::task<nt_status> query_file(request& r, open& one,
                                             const wire::query_info_args& args) noexcept {
    const auto what = wire::file_information_class(args.information_class);
    if (one.is_pipe()) {
        co_return reply_with_information(
            r, args, [&](mutable_bytes room) { return pipe_information(one, args, room); });
    }
    if (const nt_status refused = may_query(one, what); refused != nt_status::success) co_return refused;
    auto known = co_await r.call(one, [&] { return ask_file(*one.node, what); });
    if (not known) co_return known.error();
    one.file->show_change_time(known->status);
    co_return reply_with_information(
        r, args, [&](mutable_bytes room) { return file_information(r, one, args, *known, room); });
}

[[nodiscard]] io::task<nt_status> query_volume(request& r, const wire::query_info_args& args) noexcept {
    if (not r.tree->target->has_volume()) co_return nt_status::invalid_info_class;
    const auto what = wire::filesystem_information_class(args.information_class);
    vfs::volume& volume = r.files().volume();
    const std::uint64_t size_limit = r.tree->target->configuration().size_limit_bytes;
    const auto known = co_await r.call(volume.domain(), [&] { return ask_volume(volume, what, size_limit); });
    if (not known) co_return known.error();
    co_return reply_with_information(
        r, args, [&](mutable_bytes room) { return volume_information(r, args, *known, room); });
}

[[nodiscard]] access_mask needed_for(security_information parts) noexcept {
    using enum security_information;
    access_mask needed = access_mask::none;
    if (wire::has_any(parts, owner | group | dacl | label)) needed |= access_mask::read_control;
    if (wire::has(parts, sacl)) needed |= access_mask::access_system_security;
    return needed;
}

[[nodiscard]] nt_status reply_with_security(request& r, const wire::security_descriptor& what,
                                            std::uint32_t bytes_max) {
    std::vector<std::byte> room(wire::security_descriptor_bytes_max);
    byte_writer writer{mutable_bytes(room)};
    if (not encode(writer, what)) return nt_status::invalid_security_descr;
    const auto bytes = writer.finish();
    if (not bytes) return nt_status::insufficient_resources;
    if (bytes->size() <= bytes_max) return reply_with(r, bytes_view(*bytes), nt_status::success);
    // How much room it takes is the error's data ([MS-SMB2] 3.3.5.20.3).
    const le32 needed_bytes(static_cast<std::uint32_t>(bytes->size()));
    const bytes_view encoded = bytes_of(needed_bytes);
    r.error_data.assign(encoded.begin(), encoded.end());
    return nt_status::buffer_too_small;
}

[[nodiscard]] io::task<nt_status> query_security(request& r, open& one,
                                                 const wire::query_info_args& args) noexcept {
    if (one.is_pipe()) co_return nt_status::not_supported;
    const auto parts = wire::stored_parts(security_information(args.additional_information));
    if (not one.grants(needed_for(parts))) co_return nt_status::access_denied;
    using asked = std::expected<wire::security_descriptor, nt_status>;
    const asked stored = co_await r.call(one, [&] { return asked(security_of(r.accessor(), *one.node)); });
    if (not stored) co_return stored.error();
    co_return reply_with_security(r, selected(*stored, parts), args.output_bytes_max);
}

}  // namespace

io::task<nt_status> serve_query_info(request& r) {
    const auto args = wire::decode_query_info(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    const std::shared_ptr<open> one = r.find_open(args->file);
    if (one == nullptr) co_return nt_status::file_closed;
    switch (args->type) {
        case wire::info_type::file: {
            io::task<nt_status> querying = query_file(r, *one, *args);
            co_return co_await std::move(querying);
        }
        case wire::info_type::file_system: {
            io::task<nt_status> querying = query_volume(r, *args);
            co_return co_await std::move(querying);
        }
        case wire::info_type::security: {
            io::task<nt_status> querying = query_security(r, *one, *args);
            co_return co_await std::move(querying);
        }
        case wire::info_type::quota: {
            io::task<nt_status> querying = query_quotas(r, *one, *args);
            co_return co_await std::move(querying);
        }
        default:
            co_return nt_status::invalid_parameter;
    }
}

}  // namespace sluice::smb::server
