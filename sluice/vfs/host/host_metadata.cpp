#include "sluice/vfs/host/host_metadata.hpp"

#include <algorithm>
#include <limits>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/path/xattr.hpp"

namespace sluice::vfs {
namespace {

struct metadata_record {
    le8 version;
    le8 dos;
    le8 flags;
    le8 parts;  // that follow
    le32 reserved;
    le64 born_ns;  // since 1970, signed
};
static_assert(sizeof(metadata_record) == stored_metadata_bytes_min and alignof(metadata_record) == 1);

// The parts, in this order. Times are in units of 100 ns since 1970, signed.
struct times_part {
    le64 modified;
    le64 accessed;
    le64 changed;
    le64 stored;
};
static_assert(sizeof(times_part) == 32 and alignof(times_part) == 1);
// The times that the file system reports in place of those outside its range.
struct limits_part {
    le64 modified;
    le64 accessed;
};
static_assert(sizeof(limits_part) == 16 and alignof(limits_part) == 1);
static_assert(sizeof(metadata_record) + sizeof(le64) + sizeof(times_part) + sizeof(limits_part) ==
              stored_metadata_bytes_max);

constexpr std::uint8_t version = 1;
constexpr std::uint8_t flag_sparse = 1;
constexpr std::uint8_t flag_born = 2;
constexpr std::uint8_t part_born = 1;  // the exact time of birth, which `born_ns` cannot represent
constexpr std::uint8_t part_times = 2;
constexpr std::uint8_t part_limits = 4;
constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();
constexpr auto dos_mask =
    dos_attributes::read_only | dos_attributes::hidden | dos_attributes::system | dos_attributes::archive;

// Returns whether the file has no such attribute, or does not support attributes because of its
// kind or its file system.
bool means_none(const error& why) noexcept {
    const int code = why.code();
    return code == ENODATA or code == EOPNOTSUPP or code == EPERM or code == EACCES or code == ELOOP;
}

le64 ticks_of(const std::optional<time_point>& when) noexcept {
    return le64(static_cast<std::uint64_t>(when ? when->time_since_epoch().count() : no_time));
}

std::optional<time_point> time_from(le64 ticks) noexcept {
    const auto count = static_cast<std::int64_t>(ticks.value());
    if (count == no_time) return std::nullopt;
    return time_point(time_point::duration(count));
}

bool is_system_time(time_point when) noexcept {
    return time_of(system_time_of(when)) == when;
}

// Other programs may write the attribute, too: its times may be any numbers. The time of storing is
// compared with a distance, so it must be in the range of the clock that it was read from.
std::optional<stored_times> decode_times(const times_part& part) noexcept {
    const auto modified = time_from(part.modified);
    const time_point stored = time_from(part.stored).value_or(time_point{});
    if (not modified or not is_system_time(stored)) return std::nullopt;
    return stored_times{.modified = *modified,
                        .accessed = time_from(part.accessed),
                        .changed = time_from(part.changed),
                        .stored = stored};
}

}  // namespace

encoded_metadata::encoded_metadata(const stored_metadata& what) noexcept {
    const auto put = [this](const auto& part) {
        ENSURE(size_ + sizeof part <= bytes_.size(), "the record has room for all of its parts");
        std::ranges::copy(bytes_of(part), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += sizeof part;
    };
    const bool is_born_far = what.born and not is_system_time(*what.born);
    const auto ns = what.born ? system_time_of(*what.born).time_since_epoch().count() : 0;
    const unsigned flags = (what.is_sparse ? flag_sparse : 0U) | (what.born ? flag_born : 0U);
    const bool has_limits = what.times and (what.times->modified_limit or what.times->accessed_limit);
    const unsigned parts =
        (is_born_far ? part_born : 0U) | (what.times ? part_times : 0U) | (has_limits ? part_limits : 0U);
    put(metadata_record{.version = le8(version),
                        .dos = le8(static_cast<std::uint8_t>(what.dos & dos_mask)),
                        .flags = le8(static_cast<std::uint8_t>(flags)),
                        .parts = le8(static_cast<std::uint8_t>(parts)),
                        .reserved = {},
                        .born_ns = le64(static_cast<std::uint64_t>(ns))});
    if (is_born_far) put(ticks_of(what.born));
    if (what.times)
        put(times_part{.modified = ticks_of(what.times->modified),
                       .accessed = ticks_of(what.times->accessed),
                       .changed = ticks_of(what.times->changed),
                       .stored = ticks_of(what.times->stored)});
    if (has_limits)
        put(limits_part{.modified = ticks_of(what.times->modified_limit),
                        .accessed = ticks_of(what.times->accessed_limit)});
}

std::optional<stored_metadata> decode_stored_metadata(bytes_view bytes) noexcept {
    const auto record = bytes.take<metadata_record>();
    if (not record or record->version.value() != version) return std::nullopt;
    stored_metadata what{.dos = static_cast<dos_attributes>(record->dos.value()) & dos_mask,
                         .is_sparse = (record->flags.value() & flag_sparse) != 0,
                         .born = {},
                         .times = {}};
    if ((record->flags.value() & flag_born) != 0) {
        const std::chrono::nanoseconds since_1970(static_cast<std::int64_t>(record->born_ns.value()));
        what.born = time_of(std::chrono::system_clock::time_point(since_1970));
    }
    std::size_t at = sizeof(metadata_record);
    if ((record->parts.value() & part_born) != 0) {
        const auto born = bytes.take_at<le64>(at);
        if (not born) return what;
        if (what.born) what.born = time_from(*born);
        at += sizeof(le64);
    }
    if ((record->parts.value() & part_times) != 0) {
        if (const auto times = bytes.take_at<times_part>(at)) what.times = decode_times(*times);
        at += sizeof(times_part);
    }
    if ((record->parts.value() & part_limits) != 0 and what.times) {
        const auto reported = bytes.take_at<limits_part>(at);
        if (not reported) return what;
        what.times->modified_limit = time_from(reported->modified);
        what.times->accessed_limit = time_from(reported->accessed);
    }
    return what;
}

bool is_change_time_of_storing(time_point stored, time_point of_host) noexcept {
    constexpr std::chrono::milliseconds distance_max(10);
    return of_host >= stored - distance_max and of_host <= stored + distance_max;
}

std::optional<stored_times> times_that_hold(const std::optional<stored_metadata>& stored,
                                            const io::file_status& status) noexcept {
    if (not stored or not stored->times) return std::nullopt;
    stored_times held = *stored->times;
    if (held.modified_of_host() != time_of(status.modified)) return std::nullopt;
    if (not is_change_time_of_storing(held.stored, time_of(status.changed))) held.changed.reset();
    return held;
}

result<std::optional<stored_metadata>> load_metadata(const io::handle& open) noexcept {
    std::array<std::byte, stored_metadata_storage_bytes> storage;
    const auto bytes = io::fetch_xattr(open, metadata_attribute, storage);
    if (bytes) return decode_stored_metadata(*bytes);
    if (means_none(bytes.error()) or bytes.error().code() == ERANGE) return std::nullopt;
    return failure(bytes.error());
}

result<void> store_metadata(const io::handle& open, const stored_metadata& what) noexcept {
    const encoded_metadata encoded(what);
    return io::store_xattr(open, metadata_attribute, encoded.bytes().span());
}

dos_attributes default_attributes(const io::file_status& status, std::string_view name,
                                  dot_names dots) noexcept {
    constexpr unsigned any_write_bits = 0222;
    dos_attributes found = dos_attributes::none;
    if (status.type == io::file_type::regular) {
        found = dos_attributes::archive;
        if ((status.permission_bits & any_write_bits) == 0) found = found | dos_attributes::read_only;
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

namespace {

// On Windows, a modification is an access ([MS-FSA] 2.1.4.17). Hosts update the time of access only
// when they read, and seldom then.
time_point access_time_of(const io::file_status& status, const std::optional<stored_times>& set) noexcept {
    const time_point of_host = time_of(status.accessed);
    if (not set) return std::max(of_host, time_of(status.modified));
    if (not set->accessed) return std::max(of_host, set->modified);
    // Read since it was set, or not.
    return of_host == set->accessed_of_host() ? *set->accessed : of_host;
}

}  // namespace

metadata metadata_of(const io::file_status& status, const std::optional<stored_metadata>& stored,
                     std::string_view name, dot_names dots) noexcept {
    // Without a time of birth, the oldest other time is the upper bound.
    const auto oldest = std::min(status.modified, status.changed);
    const bool is_compressed = has(status.supported_attributes, io::file_attributes::compressed) and
                               has(status.attributes, io::file_attributes::compressed);
    const std::optional<stored_times> set = times_that_hold(stored, status);
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
            .born = stored and stored->born ? *stored->born : time_of(status.born.value_or(oldest)),
            .accessed = access_time_of(status, set),
            .modified = set ? set->modified : time_of(status.modified),
            .changed = set and set->changed ? *set->changed : time_of(status.changed)};
}

}  // namespace sluice::vfs
