#include "sluice/smb/server/command/set_info_handlers.hpp"

#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/default_security.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/extended_attributes.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"

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

[[nodiscard]] nt_status change_basic(open& one, bytes_view input) {
    const auto wanted = wire::decode_basic_information(input);
    if (not wanted) return status_of(wanted.error());
    if (not may_have(one, wanted->attributes)) return nt_status::invalid_parameter;
    const auto born = time_wish_of(wanted->created);
    const auto accessed = time_wish_of(wanted->accessed);
    const auto modified = time_wish_of(wanted->written);
    const auto changed = time_wish_of(wanted->changed);
    if (not born or not accessed or not modified or not changed) return nt_status::invalid_parameter;
    const result<vfs::metadata> before = shown_status(one);
    if (not before) return server::status_of(before.error());

    const auto given = [](const time_wish& wish) {
        return wish.what == time_wish::kind::set ? std::optional(wish.time) : std::nullopt;
    };
    vfs::metadata_change change{
        .born = given(*born), .accessed = given(*accessed), .modified = given(*modified)};
    if (wanted->attributes != file_attributes::none) change.dos = dos_attributes_of(wanted->attributes);
    if (const nt_status status = status_of(one.node->change(change)); status != nt_status::success)
        return status;
    one.kept_access_time = kept_after(*accessed, one.kept_access_time, before->accessed);
    one.kept_write_time = kept_after(*modified, one.kept_write_time, before->modified);
    one.kept_change_time = kept_after(*changed, one.kept_change_time, before->changed);
    restore_change_time(one);
    return nt_status::success;
}

[[nodiscard]] nt_status change_end_of_file(request& r, open& one, bytes_view input) {
    const auto wanted = wire::decode_end_of_file_information(input);
    if (not wanted) return status_of(wanted.error());
    if (one.is_directory()) return nt_status::invalid_parameter;
    end_read_caching(r.host(), *one.file, &one);
    const nt_status status = status_of(one.node->truncate(wanted->end_of_file));
    restore_kept_times(one);
    return status;
}

[[nodiscard]] nt_status change_allocation(request& r, open& one, bytes_view input) {
    const auto wanted = wire::decode_allocation_information(input);
    if (not wanted) return status_of(wanted.error());
    if (one.is_directory()) return nt_status::invalid_parameter;
    const result<vfs::metadata> before = one.node->status();
    if (not before) return server::status_of(before.error());
    end_read_caching(r.host(), *one.file, &one);
    result<void> done{};
    if (wanted->allocation_bytes < before->size_bytes) done = one.node->truncate(wanted->allocation_bytes);
    if (done) done = one.node->allocate(wanted->allocation_bytes);
    restore_kept_times(one);
    return status_of(done);
}

// Bytes that were never written read as zeros here, so nothing is hidden behind the valid length.
[[nodiscard]] nt_status change_valid_data_length(open& one, bytes_view input) {
    const auto wanted = wire::decode_valid_data_length_information(input);
    if (not wanted) return status_of(wanted.error());
    const result<vfs::metadata> status = one.node->status();
    if (not status) return server::status_of(status.error());
    return wanted->valid_bytes <= status->size_bytes ? nt_status::success : nt_status::invalid_parameter;
}

[[nodiscard]] nt_status change_position(open& one, bytes_view input) {
    const auto wanted = wire::decode_position_information(input);
    if (not wanted) return status_of(wanted.error());
    one.position = wanted->offset;
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
    one.mode = (one.mode & ~changeable) | wanted->mode;
    return nt_status::success;
}

// [MS-SMB2] 3.3.5.21.3; for BACKUP_SECURITY_INFORMATION, which stands for all parts, the rights to all of
// them.
[[nodiscard]] access_mask needed_for(security_information parts) noexcept {
    using enum security_information;
    access_mask needed = access_mask::none;
    if (wire::has_any(parts, owner | group | label | backup)) needed |= access_mask::write_owner;
    if (wire::has_any(parts, dacl | attribute | backup)) needed |= access_mask::write_dac;
    if (wire::has_any(parts, sacl | scope | backup)) needed |= access_mask::access_system_security;
    return needed;
}

}  // namespace

nt_status may_remove(open& one, bool ignores_read_only) {
    if (not one.grants(access_mask::delete_object)) return nt_status::access_denied;
    const result<vfs::metadata> status = one.node->status();
    if (not status) return server::status_of(status.error());
    if (vfs::has(status->dos, vfs::dos_attributes::read_only) and not ignores_read_only)
        return nt_status::cannot_delete;
    if (not one.is_directory()) return nt_status::success;
    if (one.node->path().empty()) return nt_status::cannot_delete;  // the share's root
    const auto listing = one.node->list();
    if (not listing) return server::status_of(listing.error());
    const auto first = (*listing)->next();
    if (not first) return server::status_of(first.error());
    return *first == nullptr ? nt_status::success : nt_status::directory_not_empty;
}

nt_status change_security(request& r, open& one, const wire::set_info_args& args) {
    const auto parts = security_information(args.additional_information);
    if (not one.grants(needed_for(parts))) return nt_status::access_denied;
    if (not r.tree->volume().features().has_security) return nt_status::not_supported;
    const auto given = wire::decode_security_descriptor(args.input);
    if (not given) return nt_status::invalid_security_descr;
    // Without a part that is kept there is nothing to store. Storing the rest would turn a default that
    // follows the file's mode into one that does not, and needs no right.
    using enum security_information;
    if (not wire::has_any(parts, owner | group | dacl | sacl)) return nt_status::success;
    return status_of(store_security(*one.node, merged(security_of(r.accessor(), *one.node), *given, parts)));
}

nt_status change_file(request& r, open& one, const wire::set_info_args& args) {
    const auto what = file_information_class(args.information_class);
    if (not one.grants(needed_for(what))) return nt_status::access_denied;
    switch (what) {
        case file_information_class::basic:
            return change_basic(one, args.input);
        case file_information_class::end_of_file:
            return change_end_of_file(r, one, args.input);
        case file_information_class::allocation:
            return change_allocation(r, one, args.input);
        case file_information_class::valid_data_length:
            return change_valid_data_length(one, args.input);
        case file_information_class::position:
            return change_position(one, args.input);
        case file_information_class::mode:
            return change_mode(one, args.input);
        case file_information_class::full_ea:
            return change_extended_attributes(*one.node, args.input);
        case file_information_class::short_name:
            return nt_status::not_supported;  // no volume here has short names beside the long ones
        default:
            return nt_status::invalid_info_class;
    }
}

}  // namespace sluice::smb::server
