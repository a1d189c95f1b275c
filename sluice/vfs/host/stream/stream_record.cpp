#include "sluice/vfs/host/stream/stream_record.hpp"

#include <algorithm>
#include <cerrno>

#include "sluice/base/endian.hpp"
#include "sluice/io/path/xattr.hpp"

namespace sluice::vfs {
namespace {

struct record_bytes {
    le8 version;
    le8 kind;
    le16 unused;
    le32 owner;
    std::array<std::byte, 16> id;
    le64 inode;
    le64 born;
};
static_assert(sizeof(record_bytes) == stream_record_bytes and alignof(record_bytes) == 1);
static_assert(offsetof(record_bytes, id) == 8 and offsetof(record_bytes, born) == 32);

constexpr std::uint8_t version = 1;
constexpr std::string_view digits = "0123456789abcdef";

// Returns whether the file has no such attribute, or its kind or its file system has none at all.
bool means_none(int code) noexcept {
    return code == ENODATA or code == EOPNOTSUPP or code == EPERM or code == ELOOP;
}

}  // namespace

std::string stream_id::text() const {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte each : bytes) {
        text += digits[std::to_integer<unsigned>(each) >> 4];
        text += digits[std::to_integer<unsigned>(each) & 0xf];
    }
    return text;
}

std::optional<stream_id> stream_id::parse(std::string_view text) noexcept {
    stream_id parsed;
    if (text.size() != 2 * parsed.bytes.size()) return std::nullopt;
    for (std::size_t i = 0; i != text.size(); ++i) {
        const std::size_t value = digits.find(text[i]);
        if (value == digits.npos) return std::nullopt;
        std::byte& there = parsed.bytes[i / 2];
        there = there << 4 | std::byte(value);
    }
    return parsed;
}

std::array<std::byte, stream_record_bytes> encode(const stream_record& what) noexcept {
    const record_bytes record{.version = le8(version),
                              .kind = le8(static_cast<std::uint8_t>(what.kind)),
                              .unused = {},
                              .owner = le32(what.owner),
                              .id = what.id.bytes,
                              .inode = le64(what.inode),
                              .born = le64(what.born)};
    std::array<std::byte, stream_record_bytes> bytes;
    std::ranges::copy(bytes_of(record), bytes.begin());
    return bytes;
}

std::optional<stream_record> decode_stream_record(bytes_view bytes) noexcept {
    if (bytes.size() != stream_record_bytes) return std::nullopt;
    const auto record = bytes.take<record_bytes>();
    if (not record or record->version.value() != version) return std::nullopt;
    const auto kind = static_cast<stream_record_kind>(record->kind.value());
    if (kind != stream_record_kind::reference and kind != stream_record_kind::mark) return std::nullopt;
    return stream_record{.kind = kind,
                         .owner = record->owner.value(),
                         .id = stream_id{.bytes = record->id},
                         .inode = record->inode.value(),
                         .born = record->born.value()};
}

result<std::optional<stream_record>> load_stream_record(const io::handle& open) noexcept {
    std::array<std::byte, stream_record_bytes> storage;
    const auto bytes = io::fetch_xattr(open, streams_attribute, storage);
    if (bytes) return decode_stream_record(*bytes);
    const int code = bytes.error().code();
    if (means_none(code) or code == ERANGE) return std::nullopt;
    return failure(bytes.error());
}

result<void> store_stream_record(const io::handle& open, const stream_record& what,
                                 record_storing how) noexcept {
    const auto creation = how == record_storing::only_if_none ? io::xattr_creation::only_if_not_exist
                                                              : io::xattr_creation::if_needed;
    const auto done = io::store_xattr(open, streams_attribute, encode(what), creation);
    if (not done and (done.error().code() == E2BIG or done.error().code() == ERANGE))
        return failure({ENOSPC, "setxattr", open.descriptor()});
    return done;
}

}  // namespace sluice::vfs
