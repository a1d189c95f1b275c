#include "sluice/vfs/host/host_metadata.hpp"

#include <algorithm>

#include "sluice/base/endian.hpp"
#include "sluice/io/path/xattr.hpp"

namespace sluice::vfs {
namespace {

struct metadata_record {
    le8 version;
    le8 dos;
    le8 flags;
    le8 unused;
    le32 reserved;
    le64 born_ns;  // since 1970, signed
};
static_assert(sizeof(metadata_record) == stored_metadata_bytes and alignof(metadata_record) == 1);

constexpr std::uint8_t version = 1;
constexpr std::uint8_t flag_sparse = 1;
constexpr std::uint8_t flag_born = 2;
constexpr auto dos_mask =
    dos_attributes::read_only | dos_attributes::hidden | dos_attributes::system | dos_attributes::archive;

// Returns whether the file has no such attribute, or does not support attributes because of its
// kind or its file system.
bool means_none(const error& why) noexcept {
    const int code = why.code();
    return code == ENODATA or code == EOPNOTSUPP or code == EPERM or code == EACCES or code == ELOOP;
}

}  // namespace

std::array<std::byte, stored_metadata_bytes> encode(const stored_metadata& what) noexcept {
    const auto ns = what.born ? what.born->time_since_epoch().count() : 0;
    const unsigned flags = (what.is_sparse ? flag_sparse : 0U) | (what.born ? flag_born : 0U);
    const metadata_record record{.version = le8(version),
                                 .dos = le8(static_cast<std::uint8_t>(what.dos & dos_mask)),
                                 .flags = le8(static_cast<std::uint8_t>(flags)),
                                 .unused = {},
                                 .reserved = {},
                                 .born_ns = le64(static_cast<std::uint64_t>(ns))};
    std::array<std::byte, stored_metadata_bytes> bytes;
    std::ranges::copy(bytes_of(record), bytes.begin());
    return bytes;
}

std::optional<stored_metadata> decode_stored_metadata(bytes_view bytes) noexcept {
    const auto record = bytes.take<metadata_record>();
    if (not record or record->version.value() != version) return std::nullopt;
    stored_metadata what{.dos = static_cast<dos_attributes>(record->dos.value()) & dos_mask,
                         .is_sparse = (record->flags.value() & flag_sparse) != 0,
                         .born = {}};
    if ((record->flags.value() & flag_born) != 0)
        what.born = time_point(time_point::duration(static_cast<std::int64_t>(record->born_ns.value())));
    return what;
}

result<std::optional<stored_metadata>> load_metadata(const io::handle& open) noexcept {
    std::array<std::byte, 64> storage;
    const auto bytes = io::fetch_xattr(open, metadata_attribute, storage);
    if (bytes) return decode_stored_metadata(*bytes);
    if (means_none(bytes.error()) or bytes.error().code() == ERANGE) return std::nullopt;
    return failure(bytes.error());
}

result<void> store_metadata(const io::handle& open, const stored_metadata& what) noexcept {
    return io::store_xattr(open, metadata_attribute, encode(what));
}

dos_attributes default_attributes(const io::file_status& status, std::string_view name,
                                  dot_names dots) noexcept {
    constexpr unsigned anybody_writes = 0222;
    dos_attributes found = dos_attributes::none;
    if (status.type == io::file_type::regular) {
        found = dos_attributes::archive;
        if ((status.permission_bits & anybody_writes) == 0) found = found | dos_attributes::read_only;
    }
    if (dots == dot_names::hidden and name.starts_with('.')) found = found | dos_attributes::hidden;
    return found;
}

node_kind kind_of(io::file_type type) noexcept {
    switch (type) {
        case io::file_type::regular:
            return node_kind::file;
        case io::file_type::directory:
            return node_kind::directory;
        case io::file_type::symlink:
            return node_kind::symlink;
        default:
            return node_kind::other;
    }
}

metadata metadata_of(const io::file_status& status, const std::optional<stored_metadata>& stored,
                     std::string_view name, dot_names dots) noexcept {
    // Without a time of birth, the oldest other time is the upper bound.
    const time_point oldest = std::min(status.modified, status.changed);
    const bool is_compressed = has(status.supported_attributes, io::file_attributes::compressed) and
                               has(status.attributes, io::file_attributes::compressed);
    return {.kind = kind_of(status.type),
            .id = status.inode,
            .volume = status.device,
            .size_bytes = status.type == io::file_type::directory ? 0 : status.size_bytes,
            .allocated_bytes = status.type == io::file_type::directory ? 0 : status.allocated_bytes,
            .links = status.links,
            .user_id = status.user_id,
            .group_id = status.group_id,
            .permission_bits = status.permission_bits,
            .dos = stored ? stored->dos : default_attributes(status, name, dots),
            .is_sparse = stored and stored->is_sparse,
            .is_compressed = is_compressed,
            .born = stored and stored->born ? *stored->born : status.born.value_or(oldest),
            .accessed = status.accessed,
            .modified = status.modified,
            .changed = status.changed};
}

}  // namespace sluice::vfs
