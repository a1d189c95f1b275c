#include <algorithm>

#include "sluice/smb/server/command/info/file_information.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"

namespace sluice::smb::server {

using wire::filesystem_attributes;
using wire::nt_status;
using answer = std::expected<information, nt_status>;

namespace {

// A structure with a text behind its fixed part, as Windows rounds that up ([MS-FSCC] 2.5).
constexpr std::size_t volume_fixed_bytes = 24;
constexpr std::size_t attribute_fixed_bytes = 16;

template <class Information>
[[nodiscard]] answer encoded(mutable_bytes room, const Information& what, std::size_t fixed_bytes = 0) {
    byte_writer writer(room);
    if constexpr (std::is_void_v<decltype(encode(writer, what))>) {
        encode(writer, what);
    } else {
        if (not encode(writer, what)) return std::unexpected(nt_status::unsuccessful);
    }
    const auto bytes = writer.finish();
    if (not bytes) return std::unexpected(nt_status::insufficient_resources);
    return information{.bytes = bytes_view(*bytes),
                       .fixed_bytes = fixed_bytes == 0 ? bytes->size() : fixed_bytes};
}

[[nodiscard]] filesystem_attributes attributes_of(const vfs::volume_features& features,
                                                  const vfs::quota_state& quotas) noexcept {
    auto found = filesystem_attributes::case_preserved_names | filesystem_attributes::unicode_on_disk |
                 filesystem_attributes::object_ids;
    const auto add = [&](bool has, filesystem_attributes what) {
        if (has) found |= what;
    };
    add(features.is_read_only, filesystem_attributes::read_only_volume);
    add(features.has_security, filesystem_attributes::persistent_acls);
    add(features.has_streams, filesystem_attributes::named_streams);
    add(features.has_extended_attributes, filesystem_attributes::extended_attributes);
    add(features.has_hard_links, filesystem_attributes::hard_links);
    add(features.has_symlinks, filesystem_attributes::reparse_points);
    add(features.has_sparse_files, filesystem_attributes::sparse_files);
    add(features.has_block_sharing, filesystem_attributes::block_refcounting);
    add(features.has_compression, filesystem_attributes::file_compression);
    add(quotas.is_counted, filesystem_attributes::volume_quotas);
    return found;
}

// A host has no limits for users in general.
[[nodiscard]] std::uint32_t control_flags_of(const vfs::quota_state& quotas) noexcept {
    ENSURE(quotas.is_counted or not quotas.is_enforced, "quotas that are enforced are counted");
    if (quotas.is_enforced) return wire::fs_control_information::quota_enforced;
    return quotas.is_counted ? wire::fs_control_information::quota_tracked : 0U;
}

[[nodiscard]] answer size_of(const vfs::volume_space& space, bool is_full, mutable_bytes room) {
    ENSURE(space.block_bytes >= space.sector_bytes, "a block consists of sectors");
    const std::uint64_t unit = space.block_bytes;
    const std::uint32_t sectors = space.block_bytes / space.sector_bytes;
    if (is_full)
        return encoded(
            room, wire::fs_full_size_information{.total_units = space.total_bytes / unit,
                                                 .available_to_caller_units = space.available_bytes / unit,
                                                 .available_units = space.free_bytes / unit,
                                                 .sectors_per_unit = sectors,
                                                 .bytes_per_sector = space.sector_bytes});
    return encoded(room, wire::fs_size_information{.total_units = space.total_bytes / unit,
                                                   .available_units = space.available_bytes / unit,
                                                   .sectors_per_unit = sectors,
                                                   .bytes_per_sector = space.sector_bytes});
}

[[nodiscard]] answer sectors_of(const vfs::volume_space& space, mutable_bytes room) {
    return encoded(
        room, wire::fs_sector_size_information{.logical_bytes = space.sector_bytes,
                                               .physical_bytes_for_atomicity = space.block_bytes,
                                               .physical_bytes_for_performance = space.block_bytes,
                                               .effective_physical_bytes_for_atomicity = space.block_bytes});
}

// A volume is as large as the quota of its user, and has as much room as that leaves ([MS-FSA]
// 2.1.5.13.8).
void apply_quota(vfs::volume& volume, vfs::volume_space& space) noexcept {
    vfs::volume_quotas* const quotas = volume.quotas();
    const auto& acts_as = volume.identity().acts_as;
    if (quotas == nullptr or not acts_as or not quotas->state().is_enforced) return;
    const result<vfs::user_quota> its = quotas->of(acts_as->id);
    if (not its) return;
    const auto& limit = its->hard_limit_bytes ? its->hard_limit_bytes : its->soft_limit_bytes;
    if (not limit) return;
    // At least one unit, because some clients divide by their number.
    space.total_bytes =
        std::min<std::uint64_t>(space.total_bytes, std::max<std::uint64_t>(*limit, space.block_bytes));
    space.available_bytes = std::min(space.available_bytes, *limit - std::min(*limit, its->used_bytes));
}

// Other data on the file system are not counted, because they do not belong to the share.
void apply_size_limit(std::uint64_t limit, vfs::volume_space& space) noexcept {
    if (limit == 0) return;
    space.total_bytes = std::min(space.total_bytes, limit);
    space.free_bytes = std::min(space.free_bytes, limit);
    space.available_bytes = std::min(space.available_bytes, limit);
}

}  // namespace

std::expected<volume_facts, nt_status> ask_volume(vfs::volume& volume,
                                                  wire::filesystem_information_class what,
                                                  std::uint64_t size_limit_bytes) noexcept {
    using what_kind = wire::filesystem_information_class;
    volume_facts known;
    const bool needs_state = what == what_kind::attribute or what == what_kind::control;
    if (needs_state and volume.quotas() != nullptr) known.quotas = volume.quotas()->state();
    const bool needs_space =
        what == what_kind::size or what == what_kind::full_size or what == what_kind::sector_size;
    if (not needs_space) return known;
    result<vfs::volume_space> space = volume.space();
    if (not space) return std::unexpected(status_of(space.error()));
    // A file system in user space may report any size, also 0.
    space->block_bytes = std::max(space->block_bytes, space->sector_bytes);
    apply_quota(volume, *space);
    apply_size_limit(size_limit_bytes, *space);
    known.space = *space;
    return known;
}

answer volume_information(const request& r, const wire::query_info_args& args, const volume_facts& known,
                          mutable_bytes room) {
    const vfs::volume& volume = r.files().volume();
    switch (wire::filesystem_information_class(args.information_class)) {
        case wire::filesystem_information_class::volume:
            return encoded(room,
                           wire::fs_volume_information{
                               .created = wire::filetime_of(volume.identity().created),
                               .serial_number = static_cast<std::uint32_t>(volume.identity().serial),
                               .label = volume.identity().label},
                           volume_fixed_bytes);
        case wire::filesystem_information_class::size:
            return size_of(*known.space, false, room);
        case wire::filesystem_information_class::full_size:
            return size_of(*known.space, true, room);
        case wire::filesystem_information_class::device: {
            wire::fs_device_information device;
            if (volume.features().is_read_only)
                device.characteristics |= wire::fs_device_information::read_only;
            return encoded(room, device);
        }
        case wire::filesystem_information_class::attribute:
            // Programs that judge by the name of the file system know no other
            // with streams and ACLs.
            return encoded(
                room,
                wire::fs_attribute_information{.attributes = attributes_of(volume.features(), known.quotas),
                                               .name_units_max = volume.features().name_units_max,
                                               .filesystem_name = "NTFS"},
                attribute_fixed_bytes);
        case wire::filesystem_information_class::control:
            return encoded(room, wire::fs_control_information{.flags = control_flags_of(known.quotas)});
        case wire::filesystem_information_class::object_id:
            return encoded(room,
                           wire::fs_object_id_information{.object_id = object_id_of(volume.identity())});
        case wire::filesystem_information_class::sector_size:
            return sectors_of(*known.space, room);
        default:
            return std::unexpected(nt_status::invalid_info_class);
    }
}

}  // namespace sluice::smb::server
