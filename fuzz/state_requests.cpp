#include "fuzz/state_requests.hpp"

#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/flush.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/message/tree_disconnect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::fuzz {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

namespace {

constexpr std::array names{"",       "a",   "b",      "d",        "d\\c",    "d\\e",
                           "a:s",    "a:t", "d:s",    "l",        "l\\c",    "d\\l",
                           "A",      "B",   "d\\C:s", "a::$DATA", "..\\a",   "d\\..\\b",
                           "srvsvc", "l:s", "e",      "e\\f",     "e\\f\\g", "long name.with extension"};

[[nodiscard]] std::string name_of(unsigned choice) {
    return names[choice % names.size()];
}
[[nodiscard]] bytes_view view(const std::string& text) {
    return std::as_bytes(std::span(text));
}

// Small offsets overlap in a file; large ones overflow in sums.
[[nodiscard]] std::uint64_t number_of(unsigned choice) {
    constexpr std::array<std::uint64_t, 8> far{1ULL << 16, 1ULL << 20, (1ULL << 31) - 1, 1ULL << 32,
                                               1ULL << 62, ~0ULL >> 1, ~0ULL - 1,        ~0ULL};
    return choice < 248 ? choice : far[choice - 248];
}

[[nodiscard]] wire::guid guid_of(unsigned choice) {
    wire::guid made;
    made.bytes[3] = static_cast<std::byte>(choice % 4);
    return made;
}

void take_lease(wire::create_args& args, unsigned bits) {
    args.oplock_level = wire::oplock_level::lease;
    wire::lease& lease = args.contexts.lease.emplace();
    lease.key.bytes[0] = static_cast<std::byte>(bits & 3U);
    lease.state = wire::lease_state((bits >> 2) & 7U);
    if ((bits & 32U) == 0) return;
    lease.v2.emplace();
    lease.v2->epoch = static_cast<std::uint16_t>(bits >> 6);
    if ((bits & 64U) != 0) lease.flags |= wire::lease_flags::parent_key_set;
}

void take_contexts(wire::create_args& args, client& by, const envelope& how, program& script) {
    const unsigned bits = script.byte();
    const unsigned which = script.byte();
    if ((bits & 1U) != 0) args.contexts.durable = true;
    if ((bits & 2U) != 0)
        args.contexts.durable_v2 = wire::durable_request_v2{.timeout_ms = (which & 1U) * 1000,
                                                            .flags = wire::durable_flags(which & 2U),
                                                            .create_guid = guid_of(which >> 2)};
    if ((bits & 4U) != 0) args.contexts.durable_reconnect = by.some_file(how, which & 15U);
    if ((bits & 8U) != 0)
        args.contexts.durable_reconnect_v2 = wire::durable_reconnect_v2{.file = by.some_file(how, which & 3U),
                                                                        .create_guid = guid_of(which >> 2)};
    if ((bits & 16U) != 0) args.contexts.app_instance_id = guid_of(which >> 4);
    if ((bits & 32U) != 0)
        args.contexts.app_instance_version =
            wire::app_instance_version{.high = which & 1U, .low = which >> 6};
    if ((bits & 64U) != 0) {
        args.contexts.maximal_access.emplace();
        args.contexts.on_disk_id = true;
        args.contexts.posix_mode = 0644;
    }
    if ((bits & 128U) == 0) return;
    args.contexts.allocation_bytes = number_of(which);
    // Two times have a snapshot, and one has none.
    const auto when = std::chrono::sys_seconds(std::chrono::seconds(which & 3U));
    if (which >= 192) args.contexts.timewarp = wire::filetime_of(wire::tick_time(when));
}

void send_create(client& by, const envelope& how, program& script) {
    const unsigned what = script.byte();
    const unsigned bits = script.byte();
    const unsigned more = script.byte();
    constexpr std::array<std::uint32_t, 8> accesses{0x001f01ff, 0x0012019f, 0x00120089, 0x80,
                                                    0x00010080, 0x02000000, 0x001f01ff, 0x00060080};
    const std::string name = wire::utf16_of(name_of(what)).value();
    wire::create_args args{.desired_access = wire::access_mask(accesses[bits & 7U]),
                           .share_access = wire::share_access((bits >> 3) & 7U),
                           .disposition = wire::create_disposition(more & 7U),
                           .name = view(name)};
    if ((bits & 64U) != 0) args.share_access = wire::share_access(7);
    if ((more & 8U) != 0) args.options |= wire::create_options::directory_file;
    if ((more & 16U) != 0) args.options |= wire::create_options::delete_on_close;
    if ((more & 32U) != 0) args.options |= wire::create_options::open_reparse_point;
    if ((more & 64U) != 0) {
        constexpr std::array levels{wire::oplock_level::batch, wire::oplock_level::exclusive,
                                    wire::oplock_level::level_2};
        const unsigned caching = script.byte();
        if (caching >= 128)
            take_lease(args, caching);
        else
            args.oplock_level = levels[caching % levels.size()];
    }
    std::string extended;
    if ((more & 128U) != 0) take_contexts(args, by, how, script);
    if ((bits & 128U) != 0) {
        const bytes_view bytes = script.take(script.byte() % 64);
        if ((what & 1U) != 0)
            args.contexts.extended_attributes = bytes;
        else
            args.contexts.security_descriptor = bytes;
        return by.send(how, command::create, args);
    }
    by.send(how, command::create, args);
}

void send_lock(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    const unsigned bits = script.byte();
    std::vector<wire::raw_lock_element> elements;
    constexpr std::array<std::uint32_t, 8> kinds{1, 2, 17, 18, 4, 2, 5, 0};
    for (unsigned left = bits % 4 + (bits < 252 ? 1 : 0); left != 0; --left) {
        const unsigned kind = script.byte();
        const std::uint64_t offset = number_of(script.byte());
        elements.push_back(
            wire::encode_lock_element({.offset_bytes = offset,
                                       .length_bytes = number_of(script.byte()),
                                       .flags = wire::lock_flags(kinds[kind % kinds.size()])}));
    }
    by.send(how, command::lock,
            wire::lock_args{.file = file,
                            .sequence_number = static_cast<std::uint8_t>(bits >> 4),
                            .sequence_index = (bits >> 2) & 3U,
                            .elements = wire::lock_list(std::span(std::as_const(elements)))});
}

void send_data(client& by, const envelope& how, program& script, bool writes) {
    const wire::file_id file = by.some_file(how, script.byte());
    const std::uint64_t offset = number_of(script.byte());
    const unsigned length = script.byte();
    if (not writes)
        return by.send(how, command::read,
                       wire::read_args{.file = file,
                                       .offset_bytes = offset,
                                       .length_bytes = static_cast<std::uint32_t>(number_of(length)),
                                       .minimum_bytes = length & 1U});
    const std::vector<std::byte> data(length >= 248 ? 4000 : length, static_cast<std::byte>(length));
    by.send(how, command::write, wire::write_args{.file = file, .offset_bytes = offset, .data = data});
}

// The input of SET_INFO: encoded if the class is known, otherwise bytes of the program.
[[nodiscard]] std::vector<std::byte> input_of(unsigned information_class, program& script) {
    std::vector<std::byte> room(512);
    byte_writer writer{mutable_bytes(room)};
    const unsigned choice = script.byte();
    constexpr unsigned rename = 10;
    constexpr unsigned link = 11;
    constexpr unsigned end_of_file = 20;
    constexpr unsigned allocation = 19;
    constexpr unsigned disposition = 13;
    const bool is_name = information_class == rename or information_class == link;
    if (is_name) {
        std::string target = name_of(choice);
        if ((choice & 64U) != 0 and target.contains(':')) target = target.substr(target.find(':'));
        (void)encode(writer,
                     wire::rename_information{.replace_if_exists = (choice & 128U) != 0, .target = target});
    } else if (information_class == end_of_file or information_class == allocation) {
        writer.put(le64(number_of(choice)));
    } else if (information_class == disposition) {
        writer.put(le8(static_cast<std::uint8_t>(choice & 1U)));
    } else {
        writer.put_bytes(script.take(choice % 128));
    }
    const auto done = writer.finish();
    room.resize(done ? done->size() : 0);
    return room;
}

void send_set_info(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    constexpr std::array<std::uint8_t, 16> classes{10, 11, 20, 19, 13, 4,  15, 14,
                                                   16, 39, 40, 64, 65, 72, 22, 255};
    const unsigned choice = script.byte();
    const std::uint8_t wanted = classes[choice % classes.size()];
    const std::vector<std::byte> input = input_of(wanted, script);
    by.send(how, command::set_info,
            wire::set_info_args{.type = choice < 192 ? wire::info_type::file : wire::info_type(choice & 7U),
                                .information_class = wanted,
                                .additional_information = choice,
                                .file = file,
                                .input = input});
}

void send_query_info(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    const unsigned type = script.byte();
    const unsigned wanted = script.byte();
    by.send(how, command::query_info,
            wire::query_info_args{.type = wire::info_type(type & 7U),
                                  .information_class = static_cast<std::uint8_t>(wanted),
                                  .output_bytes_max = (type & 64U) != 0 ? type : 4096,
                                  .additional_information = wanted,
                                  .file = file});
}

void send_query_directory(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    const unsigned bits = script.byte();
    constexpr std::array<std::uint8_t, 8> classes{1, 2, 3, 12, 37, 38, 60, 100};
    constexpr std::array patterns{"*", "a", "?", "*.*", "", "<", "a\"b", "no such name"};
    const std::string pattern = wire::utf16_of(patterns[(bits >> 3) % patterns.size()]).value();
    by.send(
        how, command::query_directory,
        wire::query_directory_args{.information_class = wire::directory_class(classes[bits % classes.size()]),
                                   .flags = wire::query_directory_flags(script.byte() & 23U),
                                   .file = file,
                                   .pattern = view(pattern),
                                   .output_bytes_max = bits >= 192 ? bits : 4096});
}

constexpr std::array controls{wire::control_code::set_reparse_point,
                              wire::control_code::get_reparse_point,
                              wire::control_code::delete_reparse_point,
                              wire::control_code::srv_copychunk,
                              wire::control_code::srv_copychunk_write,
                              wire::control_code::srv_request_resume_key,
                              wire::control_code::set_zero_data,
                              wire::control_code::set_sparse,
                              wire::control_code::query_allocated_ranges,
                              wire::control_code::file_level_trim,
                              wire::control_code::duplicate_extents_to_file,
                              wire::control_code::lmr_request_resiliency,
                              wire::control_code::query_network_interface_info,
                              wire::control_code::validate_negotiate_info,
                              wire::control_code::pipe_transceive,
                              wire::control_code::pipe_wait,
                              wire::control_code::create_or_get_object_id,
                              wire::control_code::set_compression,
                              wire::control_code::get_compression,
                              wire::control_code::query_file_regions,
                              wire::control_code::set_integrity_information,
                              wire::control_code::pipe_peek,
                              wire::control_code::dfs_get_referrals,
                              wire::control_code::offload_read,
                              wire::control_code::offload_write,
                              wire::control_code::mark_handle,
                              wire::control_code::get_ntfs_volume_data,
                              wire::control_code::read_file_usn_data,
                              wire::control_code::get_object_id,
                              wire::control_code::refs_stream_snapshot_management,
                              wire::control_code::srv_enumerate_snapshots};

void encode_input(byte_writer& writer, client& by, const envelope& how, wire::control_code code,
                  program& script) {
    using wire::control_code;
    const unsigned a = script.byte();
    const unsigned b = script.byte();
    switch (code) {
        case control_code::set_reparse_point:
            (void)encode(writer, wire::reparse_point(wire::reparse_symlink{
                                     .substitute = name_of(a), .print = name_of(b), .relative = b < 128}));
            return;
        case control_code::srv_copychunk:
        case control_code::srv_copychunk_write: {
            wire::copy_chunk_request request;
            const wire::file_id source = by.some_file(how, a);
            std::memcpy(&request.source, &source, std::min(sizeof source, sizeof request.source));
            request.chunks.push_back({.source_offset = number_of(b),
                                      .target_offset = number_of(script.byte()),
                                      .length = static_cast<std::uint32_t>(number_of(script.byte()))});
            encode(writer, request);
            return;
        }
        case control_code::offload_read:
            encode(writer, wire::offload_read_request{.offset = number_of(a), .length = number_of(b)});
            return;
        case control_code::offload_write: {
            wire::offload_write_request request{.offset = number_of(a), .length = number_of(b)};
            const unsigned change = script.byte();  // 0: none
            if (by.last_token()) request.token = *by.last_token();
            request.token.id[0] ^= static_cast<std::byte>(change);
            encode(writer, request);
            return;
        }
        case control_code::duplicate_extents_to_file:
            encode(writer, wire::duplicate_extents_request{.source = by.some_file(how, a),
                                                           .source_offset = number_of(b),
                                                           .target_offset = number_of(script.byte()),
                                                           .byte_count = number_of(script.byte())});
            return;
        case control_code::set_zero_data:
        case control_code::query_allocated_ranges:
        case control_code::query_file_regions:
            writer.put(le64(number_of(a)));
            writer.put(le64(number_of(b)));
            return;
        case control_code::lmr_request_resiliency:
            encode(writer, wire::resiliency_request{.timeout_ms = a * 1000});
            return;
        default:
            writer.put_bytes(script.take(a % 128));
    }
}

void send_ioctl(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    const unsigned choice = script.byte();
    const wire::control_code code = controls[choice % controls.size()];
    std::vector<std::byte> room(4096);
    byte_writer writer{mutable_bytes(room)};
    encode_input(writer, by, how, code, script);
    const auto done = writer.finish();
    room.resize(done ? done->size() : 0);
    by.send(how, command::ioctl,
            wire::ioctl_args{.code = code,
                             .file = choice < 240 ? file : wire::file_id_of_no_file,
                             .output_bytes_max = choice < 200 ? 1024U : choice - 200,
                             .input = room});
}

void send_notify(client& by, const envelope& how, program& script) {
    const wire::file_id file = by.some_file(how, script.byte());
    const unsigned bits = script.byte();
    by.send(how, command::change_notify,
            wire::change_notify_args{.flags = wire::change_notify_flags(bits & 1U),
                                     .output_bytes_max = (bits & 2U) != 0 ? bits : 1024,
                                     .file = file,
                                     .filter = wire::completion_filter(bits < 128 ? 0xfffU : bits)});
}

void send_tree_connect(client& by, const envelope& how, program& script) {
    constexpr std::array shares{"files", "again", "fixed", "sealed", "ours", "image", "IPC$", "none"};
    const std::string path =
        wire::utf16_of("\\\\s\\" + std::string(shares[script.byte() % shares.size()])).value();
    by.send(how, command::tree_connect, wire::tree_connect_args{.path = view(path)});
}

void send_cancel(client& by, const envelope& how, program& script) {
    // The odd envelope names an async ID; otherwise the last request is cancelled.
    (void)script;
    by.send(how, command::cancel, wire::cancel_args{});
}

void send_break(client& by, const envelope& how, program& script) {
    const unsigned choice = script.byte();
    auto last = by.some_break();
    if (not last) {
        if (choice < 128)
            last = wire::oplock_break_args{
                .acknowledged = wire::oplock_break{.oplock_level = wire::oplock_level(choice & 9U),
                                                   .file = by.some_file(how, choice >> 4)}};
        else
            last = wire::oplock_break_args{
                .acknowledged = wire::lease_break{.key = {.bytes = {static_cast<std::byte>(choice & 3U)}},
                                                  .state = wire::lease_state((choice >> 2) & 7U)}};
    }
    by.send(how, command::oplock_break, *last);
}

}  // namespace

void send_request(client& by, program& script, unsigned code) {
    const envelope how = by.take_envelope();
    switch (code % 20) {
        case 0:
            return send_tree_connect(by, how, script);
        case 1:
        case 2:
        case 3:
        case 4:
            return send_create(by, how, script);
        case 5:
            return by.send(how, command::close,
                           wire::close_args{.flags = wire::close_flags(code & 1U),
                                            .file = by.some_file(how, script.byte())});
        case 6:
            return send_data(by, how, script, false);
        case 7:
            return send_data(by, how, script, true);
        case 8:
        case 9:
            return send_lock(by, how, script);
        case 10:
            return send_notify(by, how, script);
        case 11:
            return send_query_directory(by, how, script);
        case 12:
            return send_query_info(by, how, script);
        case 13:
        case 14:
            return send_set_info(by, how, script);
        case 15:
            return send_ioctl(by, how, script);
        case 16:
            return send_cancel(by, how, script);
        case 17:
            return send_break(by, how, script);
        case 18:
            return by.send(how, command::flush, wire::flush_args{.file = by.some_file(how, script.byte())});
        default:
            if (code < 100) return by.send(how, command::echo, wire::echo_args{});
            if (code < 180) return by.send(how, command::tree_disconnect, wire::tree_disconnect_args{});
            return by.send(how, command::logoff, wire::logoff_args{});
    }
}

}  // namespace sluice::fuzz
