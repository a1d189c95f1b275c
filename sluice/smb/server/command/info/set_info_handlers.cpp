#include "sluice/smb/server/command/info/set_info_handlers.hpp"

#include <optional>

#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/default_security.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/extended_attributes.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::file_attributes;
using wire::file_information_class;
using wire::nt_status;
using wire::security_information;

namespace {

[[nodiscard]] nt_status status_of(const result<void>& done) noexcept {
    return done ? nt_status::success : server::status_of(done.error());
}

// Bytes too few are one thing to a client, a value out of range another.
[[nodiscard]] nt_status status_of(wire::decode_error why) noexcept {
    return why == wire::decode_error::truncated ? nt_status::info_length_mismatch
                                                : nt_status::invalid_parameter;
}

[[nodiscard]] access_mask needed_for(file_information_class what) noexcept {
    switch (what) {
        case file_information_class::basic:
            return access_mask::write_attributes;
        case file_information_class::allocation:
        case file_information_class::end_of_file:
        case file_information_class::valid_data_length:
            return access_mask::write_data;
        case file_information_class::full_ea:
            return access_mask::write_ea;
        default:
            return access_mask::none;
    }
}

[[nodiscard]] bool may_have(const open& one, file_attributes wanted) noexcept {
    if (one.is_directory()) return not wire::has(wanted, file_attributes::temporary);
    return not wire::has(wanted, file_attributes::directory);
}

struct basic_change {
    requested_time born;
    requested_time accessed;
    requested_time modified;
    requested_time changed;
    file_attributes attributes = file_attributes::none;  // none: as they are

    [[nodiscard]] vfs::metadata_change on_disk() const noexcept {
        const auto given = [](const requested_time& wish) {
            return wish.what == requested_time::kind::set ? std::optional(wish.time) : std::nullopt;
        };
        vfs::metadata_change change{.born = given(born),
                                    .accessed = given(accessed),
                                    .modified = given(modified),
                                    .changed = given(changed)};
        if (attributes != file_attributes::none) change.dos = dos_attributes_of(attributes);
        return change;
    }
};

[[nodiscard]] std::expected<basic_change, nt_status> basic_change_of(const open& one, bytes_view input) {
    const auto wanted = wire::decode_basic_information(input);
    if (not wanted) return std::unexpected(status_of(wanted.error()));
    if (not may_have(one, wanted->attributes)) return std::unexpected(nt_status::invalid_parameter);
    const auto born = requested_time_of(wanted->created);
    const auto accessed = requested_time_of(wanted->accessed);
    const auto modified = requested_time_of(wanted->written);
    const auto changed = requested_time_of(wanted->changed);
    if (not born or not accessed or not modified or not changed)
        return std::unexpected(nt_status::invalid_parameter);
    return basic_change{.born = *born,
                        .accessed = *accessed,
                        .modified = *modified,
                        .changed = *changed,
                        .attributes = wanted->attributes};
}

// The change time that such a request leaves as it is, or sets ([MS-FSA] 2.1.5.15.2). `left`: the
// status afterwards, if the open keeps times.
[[nodiscard]] nt_status carry_out(vfs::node& node, const basic_change& wanted, const sticky_times& after,
                                  time_preserver& change_time, std::optional<vfs::metadata>& left) noexcept {
    if (change_time.is_needed()) change_time.ask();
    const nt_status status = status_of(node.change(wanted.on_disk()));
    change_time.restore();
    if (status != nt_status::success) return status;
    if (const auto data = vfs::data_of(node)) (*data)->keep_access_time(after.accessed);
    if (not after.any()) return status;
    if (const result<vfs::metadata> found = node.status()) left = *found;
    return status;
}

// The times that such a request leaves. A write in progress may have changed the status, but not
// what was set.
[[nodiscard]] sticky_times::values times_left(const basic_change& wanted,
                                              const vfs::metadata& left) noexcept {
    const auto set_or = [](const requested_time& wish, vfs::time_point found) {
        return wish.what == requested_time::kind::set ? wish.time : found;
    };
    return {.accessed = set_or(wanted.accessed, left.accessed),
            .written = set_or(wanted.modified, left.modified),
            .changed = set_or(wanted.changed, left.changed)};
}

[[nodiscard]] io::task<nt_status> change_basic_in_turn(request& r, open& one, basic_change wanted) noexcept {
    const sticky_times before = one.kept();
    sticky_times after{.accessed = keeps_after(wanted.accessed, before.accessed),
                       .written = keeps_after(wanted.modified, before.written),
                       .changed = keeps_after(wanted.changed, before.changed)};
    time_preserver change_time(one, {.changed = after.changed});
    if (wanted.changed.what == requested_time::kind::set) change_time.set_change_time(wanted.changed.time);
    // Before the call: a write in progress that the file system carries out after it checks this,
    // and waits for the turn.
    if (before.any() or after.any())
        one.keep({.accessed = before.accessed or after.accessed,
                  .written = before.written or after.written,
                  .changed = before.changed or after.changed});
    std::optional<vfs::metadata> left;
    own_change seen(r.host());
    const nt_status status = co_await r.call(one, [&] {
        seen.begin(*one.node, one.shows_end.load(std::memory_order_relaxed));
        const nt_status done = carry_out(*one.node, wanted, after, change_time, left);
        seen.end(done == nt_status::success, one.node.get());
        return done;
    });
    if (status != nt_status::success) {
        one.keep(before);
        co_return status;
    }
    change_time.record();
    seen.break_leases(one);
    if (left) {
        one.file->show_change_time(*left);
        after.left = times_left(wanted, *left);
    }
    one.keep(after);
    co_return nt_status::success;
}

[[nodiscard]] io::task<nt_status> change_basic(request& r, open& one, bytes_view input) noexcept {
    const auto wanted = basic_change_of(one, input);
    if (not wanted) co_return wanted.error();
    change_turn turn(r, *one.file);
    if (not turn.is_taken()) {
        const nt_status refused = co_await turn.wait();
        if (refused != nt_status::success) co_return refused;
    }
    io::task<nt_status> change = change_basic_in_turn(r, one, *wanted);
    co_return co_await std::move(change);
}

// Changes a file's data in another way than WRITE does: `how` is the call.
template <class How>
[[nodiscard]] io::task<nt_status> change_data(request& r, std::shared_ptr<open> one, How how) noexcept {
    const pending_write before_its_end(r.host(), one, pending_write::shown::at_once);
    if (not before_its_end) co_return nt_status::file_closed;
    co_return co_await change_in_turn(r, *one, [&] {
        const auto data = vfs::data_of(*one->node);
        return data ? status_of(how(**data)) : server::status_of(data.error());
    });
}

[[nodiscard]] io::task<nt_status> change_end_of_file(request& r, std::shared_ptr<open> one,
                                                     bytes_view input) noexcept {
    const auto wanted = wire::decode_end_of_file_information(input);
    if (not wanted) co_return status_of(wanted.error());
    if (one->is_directory()) co_return nt_status::invalid_parameter;
    const std::uint64_t size = wanted->end_of_file;
    co_return co_await change_data(r, one, [size](vfs::node_data& data) { return data.truncate(size); });
}

[[nodiscard]] io::task<nt_status> change_allocation(request& r, std::shared_ptr<open> one,
                                                    bytes_view input) noexcept {
    const auto wanted = wire::decode_allocation_information(input);
    if (not wanted) co_return status_of(wanted.error());
    if (one->is_directory()) co_return nt_status::invalid_parameter;
    const std::uint64_t bytes = wanted->allocation_bytes;
    co_return co_await change_data(r, one, [bytes, one](vfs::node_data& data) -> result<void> {
        const result<vfs::metadata> before = one->node->status();
        if (not before) return failure(before.error());
        if (bytes < before->size_bytes) {
            if (const result<void> cut = data.truncate(bytes); not cut) return cut;
        }
        return data.allocate(bytes);
    });
}

// Bytes that were never written read as zeros here, so nothing is hidden behind the valid length.
[[nodiscard]] io::task<nt_status> change_valid_data_length(request& r, open& one, bytes_view input) noexcept {
    const auto wanted = wire::decode_valid_data_length_information(input);
    if (not wanted) co_return status_of(wanted.error());
    if (one.is_directory()) co_return nt_status::invalid_parameter;
    const auto status = co_await r.call(one, [&] { return asked_status(*one.node); });
    if (not status) co_return status.error();
    co_return wanted->valid_bytes <= status->size_bytes ? nt_status::success : nt_status::invalid_parameter;
}

[[nodiscard]] nt_status change_position(open& one, bytes_view input) {
    const auto wanted = wire::decode_position_information(input);
    if (not wanted) return status_of(wanted.error());
    one.position.store(wanted->offset, std::memory_order_relaxed);
    return nt_status::success;
}

// Which of the create options can be changed while open ([MS-FSCC] 2.4, FileModeInformation).
[[nodiscard]] nt_status change_mode(open& one, bytes_view input) {
    using wire::create_options;
    constexpr std::uint32_t changeable =
        bits_of(create_options::write_through | create_options::sequential_only |
                create_options::synchronous_io_alert | create_options::synchronous_io_nonalert);
    const auto wanted = wire::decode_mode_information(input);
    if (not wanted) return status_of(wanted.error());
    if ((wanted->mode & ~changeable) != 0) return nt_status::invalid_parameter;
    // The later one of two simultaneous changes wins.
    one.mode.store((one.mode.load(std::memory_order_relaxed) & ~changeable) | wanted->mode,
                   std::memory_order_relaxed);
    return nt_status::success;
}

// In the order of [MS-FSA] 2.1.5.15.14. A user who opens files to restore them has the privilege.
[[nodiscard]] nt_status may_change_short_name(const request& r, open& one, std::string_view wanted) {
    const vfs::volume_features& volume = r.files().volume().features();
    if (volume.is_read_only) return nt_status::media_write_protected;
    if (not one.node->stream_name().empty()) return nt_status::invalid_parameter;
    if (not wanted.empty() and not vfs::is_short_name(wanted)) return nt_status::invalid_parameter;
    if (not one.grants(access_mask::write_data) and not one.grants(access_mask::write_attributes))
        return nt_status::access_denied;
    {
        const file_section held(*one.file);
        if (one.file->is_delete_pending(held) or one.in_file(held).deletes_on_close)
            return nt_status::access_denied;
    }
    if (not wire::has(one.create_options, wire::create_options::open_for_backup_intent))
        return nt_status::privilege_not_held;
    return volume.has_short_names ? nt_status::success : nt_status::short_names_not_enabled_on_volume;
}

[[nodiscard]] nt_status set_short_name(vfs::node& node, const vfs::short_name& name) noexcept {
    if (node.path().empty()) return nt_status::invalid_parameter;  // the share's root
    const auto names = vfs::names_of(node);
    if (not names) return server::status_of(names.error());
    const result<void> done = (*names)->set_alternate_name(name);
    const bool has_fixed_ones = not done and done.error() == std::errc::operation_not_supported;
    return has_fixed_ones ? nt_status::invalid_parameter : status_of(done);
}

[[nodiscard]] io::task<nt_status> change_short_name(request& r, open& one, bytes_view input) noexcept {
    const auto wanted = wire::decode_name_information(input);
    if (not wanted) co_return status_of(wanted.error());
    const nt_status refused = may_change_short_name(r, one, *wanted);
    if (refused != nt_status::success) co_return refused;
    const vfs::short_name name(*wanted);
    co_return co_await change_in_turn(r, one, [&] { return set_short_name(*one.node, name); });
}

// [MS-SMB2] 3.3.5.21.3.
[[nodiscard]] access_mask needed_for(security_information parts) noexcept {
    using enum security_information;
    access_mask needed = access_mask::none;
    if (wire::has_any(parts, owner | group | label)) needed |= access_mask::write_owner;
    if (wire::has_any(parts, dacl | attribute)) needed |= access_mask::write_dac;
    if (wire::has_any(parts, sacl | scope)) needed |= access_mask::access_system_security;
    return needed;
}

}  // namespace

nt_status may_remove(vfs::node& node, bool ignores_read_only) noexcept {
    const result<vfs::metadata> status = node.status();
    if (not status) return server::status_of(status.error());
    if (vfs::has(status->dos, vfs::dos_attributes::read_only) and not ignores_read_only)
        return nt_status::cannot_delete;
    if (node.kind() != vfs::node_kind::directory) return nt_status::success;
    if (node.path().empty()) return nt_status::cannot_delete;  // the share's root
    const auto listing = vfs::list(node);
    if (not listing) return server::status_of(listing.error());
    const auto first = (*listing)->next();
    if (not first) return server::status_of(first.error());
    return *first == nullptr ? nt_status::success : nt_status::directory_not_empty;
}

io::task<nt_status> change_security(request& r, open& one, const wire::set_info_args& args) noexcept {
    const auto parts = wire::stored_parts(security_information(args.additional_information));
    if (not one.grants(needed_for(parts))) co_return nt_status::access_denied;
    if (not r.files().volume().features().has_security) co_return nt_status::not_supported;
    const auto given = wire::decode_security_descriptor(args.input);
    if (not given) co_return nt_status::invalid_security_descr;
    // Without a part that is kept there is nothing to store. Storing the rest would turn a default
    // that follows the file's mode into one that does not, and needs no right.
    using enum security_information;
    if (not wire::has_any(parts, owner | group | dacl | sacl)) co_return nt_status::success;
    co_return co_await change_in_turn(r, one, [&] {
        const wire::security_descriptor before = security_of(r.accessor(), *one.node);
        return store_security(*one.node, merged(before, *given, parts));
    });
}

io::task<nt_status> change_file(request& r, std::shared_ptr<open> one,
                                const wire::set_info_args& args) noexcept {
    const auto what = file_information_class(args.information_class);
    if (not one->grants(needed_for(what))) co_return nt_status::access_denied;
    switch (what) {
        case file_information_class::basic:
            co_return co_await change_basic(r, *one, args.input);
        case file_information_class::end_of_file:
            co_return co_await change_end_of_file(r, one, args.input);
        case file_information_class::allocation:
            co_return co_await change_allocation(r, one, args.input);
        case file_information_class::valid_data_length:
            co_return co_await change_valid_data_length(r, *one, args.input);
        case file_information_class::position:
            co_return change_position(*one, args.input);
        case file_information_class::mode:
            co_return change_mode(*one, args.input);
        case file_information_class::full_ea:
            co_return co_await change_in_turn(
                r, *one, [&] { return change_extended_attributes(*one->node, args.input); });
        case file_information_class::short_name:
            co_return co_await change_short_name(r, *one, args.input);
        default:
            co_return nt_status::invalid_info_class;
    }
}

}  // namespace sluice::smb::server
