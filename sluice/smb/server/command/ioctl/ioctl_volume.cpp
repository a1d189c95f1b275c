// The volume of a file as NTFS describes it, and the file as its change journal does.

#include "sluice/smb/server/command/info/file_information.hpp"
#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/wire/fsctl/fsctl_volume.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The newest version of the record that the client understands, too.
[[nodiscard]] std::optional<std::uint16_t> common_version(const wire::read_usn_request& asked) noexcept {
    for (const std::uint16_t version : {std::uint16_t{3}, std::uint16_t{2}})
        if (asked.version_min <= version and version <= asked.version_max) return version;
    return std::nullopt;
}

// Touches only the node and its volume. A directory that cannot be found has no number.
[[nodiscard]] std::expected<wire::usn_record, nt_status> describe(vfs::volume& volume, vfs::node& node) {
    const auto status = asked_status(node);
    if (not status) return std::unexpected(status.error());
    const std::string path = node.path();
    const vfs::path_parts parts = vfs::split_path(path);
    wire::usn_record record{.is_version_3 = false,
                            .file = wide_file_number(status->id),
                            .directory = {},
                            .attributes = attributes_of(*status),
                            .name = std::string(parts.name)};
    if (path.empty()) return record;
    if (const auto directory = volume.find_directory(parts.parent))
        record.directory = wide_file_number(directory->status.id);
    return record;
}

}  // namespace

io::task<nt_status> get_ntfs_volume_data(control& c) {
    if (c.args.output_bytes_max < wire::ntfs_volume_data_bytes) co_return nt_status::buffer_too_small;
    vfs::volume& volume = c.r.files().volume();
    const std::uint64_t size_limit = c.r.tree->target->configuration().size_limit_bytes;
    const auto known = co_await c.r.call(volume.domain(), [&] {
        return ask_volume(volume, wire::filesystem_information_class::full_size, size_limit);
    });
    if (not known) co_return known.error();
    ENSURE(known->space.has_value(), "the class of sizes needs the space of the volume");
    const vfs::volume_space& space = *known->space;
    ENSURE(space.block_bytes >= space.sector_bytes, "a block consists of sectors");
    byte_writer* const output = c.begin_output(wire::ntfs_volume_data_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    encode(*output, wire::ntfs_volume_data{.serial_number = volume.identity().serial,
                                           .sectors = space.total_bytes / space.sector_bytes,
                                           .total_clusters = space.total_bytes / space.block_bytes,
                                           .free_clusters = space.free_bytes / space.block_bytes,
                                           .sector_bytes = space.sector_bytes,
                                           .cluster_bytes = space.block_bytes});
    co_return nt_status::success;
}

// No volume has a change journal: a record says what the file is, and of no change.
io::task<nt_status> read_file_usn_data(control& c) {
    const auto asked = wire::decode_read_usn_request(c.args.input);
    const auto version = asked ? common_version(*asked) : std::nullopt;
    if (not version) co_return nt_status::invalid_parameter;
    auto record = co_await c.r.call(*c.file, [&] { return describe(c.r.files().volume(), *c.file->node); });
    if (not record) co_return record.error();
    record->is_version_3 = *version == 3;
    const auto bytes = wire::usn_record_bytes(*record);
    if (not bytes) co_return nt_status::object_name_invalid;
    if (*bytes > c.args.output_bytes_max) co_return nt_status::buffer_too_small;
    byte_writer* const output = c.begin_output(*bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    const auto encoded = encode(*output, *record);
    ENSURE(encoded.has_value() and output->position() == *bytes, "a record has the length that was computed");
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
