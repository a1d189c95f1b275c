#include "sluice/smb/server/command/info/set_info_handlers.hpp"

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
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"

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
        vfs::metadata_change change{
            .born = given(born), .accessed = given(accessed), .modified = given(modified)};
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

// A file's status before a change, and, if it was asked for, its change time after it.
struct status_around {
    vfs::metadata before;
    std::optional<vfs::time_point> changed_after;
};

[[nodiscard]] std::expected<status_around, nt_status> carry_out(vfs::node& node, const basic_change& wanted,
                                                                bool asks_after) noexcept {
    const result<vfs::metadata> before = node.status();
    if (not before) return std::unexpected(server::status_of(before.error()));
    if (const result<void> done = node.change(wanted.on_disk()); not done)
        return std::unexpected(server::status_of(done.error()));
    status_around around{.before = *before, .changed_after = {}};
    if (asks_after) {
        if (const result<vfs::metadata> after = node.status()) around.changed_after = after->changed;
    }
    return around;
}

[[nodiscard]] io::task<nt_status> change_basic(request& r, open& one, bytes_view input) noexcept {
    const auto wanted = basic_change_of(one, input);
    if (not wanted) co_return wanted.error();
    const kept_times kept = one.kept();
    const bool keeps_change_time = kept_after(wanted->changed, kept.changed, {}).has_value();
    const auto done =
        co_await call_in_turn(r, one, [&] { return carry_out(*one.node, *wanted, keeps_change_time); });
    if (not done) co_return done.error();
    // Ended during the call: it keeps no times, and its file may be gone.
    if (one.has_ended()) co_return nt_status::success;
    vfs::metadata before = done->before;
    one.file->show_change_time(before);
    one.keep({.accessed = kept_after(wanted->accessed, kept.accessed, before.accessed),
              .written = kept_after(wanted->modified, kept.written, before.modified),
              .changed = kept_after(wanted->changed, kept.changed, before.changed)});
    note_kept_change_time(one, done->changed_after);
    co_return nt_status::success;
}

// Changes a file's data in another way than WRITE does: `how` is the call. Times that the open
// keeps are set back in the same call.
template <class How>
[[nodiscard]] io::task<nt_status> change_data(request& r, std::shared_ptr<open> one, How how) noexcept {
    struct outcome {
        nt_status status = nt_status::success;
        std::optional<vfs::time_point> changed_on_host;
    };
    const pending_write before_its_end(r.host(), one);
    if (not before_its_end) co_return nt_status::file_closed;
    const kept_times kept = one->kept();
    const auto done = co_await call_in_turn(r, *one, [&]() -> std::expected<outcome, nt_status> {
        const auto data = vfs::data_of(*one->node);
        const nt_status status = data ? status_of(how(**data)) : server::status_of(data.error());
        return outcome{.status = status, .changed_on_host = restore_times(*one->node, kept)};
    });
    if (not done) co_return done.error();
    note_kept_change_time(*one, done->changed_on_host);
    co_return done->status;
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

// [MS-SMB2] 3.3.5.21.3; for BACKUP_SECURITY_INFORMATION, which stands for all parts, the
// rights to all of them.
[[nodiscard]] access_mask needed_for(security_information parts) noexcept {
    using enum security_information;
    access_mask needed = access_mask::none;
    if (wire::has_any(parts, owner | group | label | backup)) needed |= access_mask::write_owner;
    if (wire::has_any(parts, dacl | attribute | backup)) needed |= access_mask::write_dac;
    if (wire::has_any(parts, sacl | scope | backup)) needed |= access_mask::access_system_security;
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
    const auto parts = security_information(args.additional_information);
    if (not one.grants(needed_for(parts))) co_return nt_status::access_denied;
    if (not r.tree->volume().features().has_security) co_return nt_status::not_supported;
    const auto given = wire::decode_security_descriptor(args.input);
    if (not given) co_return nt_status::invalid_security_descr;
    // Without a part that is kept there is nothing to store. Storing the rest would turn a default
    // that follows the file's mode into one that does not, and needs no right.
    using enum security_information;
    if (not wire::has_any(parts, owner | group | dacl | sacl)) co_return nt_status::success;
    co_return co_await call_in_turn(r, one, [&] {
        const wire::security_descriptor before = security_of(r.accessor(), *one.node);
        return status_of(store_security(*one.node, merged(before, *given, parts)));
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
            co_return co_await call_in_turn(
                r, *one, [&] { return change_extended_attributes(*one->node, args.input); });
        case file_information_class::short_name:
            co_return nt_status::not_supported;  // no volume here has short names in
                                                 // addition to the long ones
        default:
            co_return nt_status::invalid_info_class;
    }
}

}  // namespace sluice::smb::server
