#include "sluice/fat/codec/undo_format.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/codec/format_version.hpp"

namespace sluice::fat {
namespace {

constexpr std::string_view magic = "SLUICUND";
constexpr std::uint32_t version = 1;

template <wire_type T>
bytes_view view_of(const T& what, std::size_t bytes = sizeof(T)) noexcept {
    return {reinterpret_cast<const std::byte*>(&what), bytes};
}

std::uint32_t checksum_of(const undo_header& raw) noexcept {
    return crc32(view_of(raw, offsetof(undo_header, checksum)));
}

}  // namespace

undo_header encode(const undo_binding& binding) noexcept {
    undo_header raw{};
    std::ranges::copy(magic, raw.magic.begin());
    raw.version = le32(version);
    raw.state = le32(static_cast<std::uint32_t>(binding.state));
    raw.image_bytes = le64(binding.image_bytes);
    raw.volume_offset = le64(binding.volume.offset);
    raw.volume_bytes = le64(binding.volume.length);
    raw.id = binding.id;
    raw.fingerprint_bytes = le64(binding.fingerprint_bytes);
    raw.before = le32(binding.before);
    raw.after = le32(binding.after);
    raw.changed = le32(binding.changed);
    raw.log_bytes = le64(binding.log_bytes);
    raw.image_modified = le64(static_cast<std::uint64_t>(binding.image_modified));
    raw.checksum = le32(checksum_of(raw));
    return raw;
}

std::expected<undo_binding, std::string> decode(const undo_header& raw) {
    if (std::string_view(raw.magic.data(), raw.magic.size()) != magic)
        return std::unexpected("not an undo file");
    if (raw.version.value() != version)
        return std::unexpected(unsupported_version(raw.version.value(), version));
    if (raw.checksum.value() != checksum_of(raw))
        return std::unexpected("damaged: its header has a wrong checksum");
    undo_binding binding{.state = static_cast<undo_state>(raw.state.value()),
                         .image_bytes = raw.image_bytes.value(),
                         .volume = {.offset = raw.volume_offset.value(), .length = raw.volume_bytes.value()},
                         .id = raw.id,
                         .fingerprint_bytes = raw.fingerprint_bytes.value(),
                         .before = raw.before.value(),
                         .after = raw.after.value(),
                         .changed = raw.changed.value(),
                         .log_bytes = raw.log_bytes.value(),
                         .image_modified = static_cast<std::int64_t>(raw.image_modified.value())};
    // A valid checksum does not prove that the fields are valid.
    const bool is_state = binding.state >= undo_state::recording and binding.state <= undo_state::undone;
    const bool is_inside = binding.volume.offset <= binding.image_bytes and
                           binding.volume.length <= binding.image_bytes - binding.volume.offset;
    const bool has_end = binding.state == undo_state::recording or binding.log_bytes >= undo_records_offset;
    if (not is_state or not is_inside or not has_end or binding.image_bytes >> 63 != 0 or
        binding.fingerprint_bytes > binding.volume.length)
        return std::unexpected("damaged: the values of its header contradict each other");
    return binding;
}

std::uint32_t checksum_of(const undo_binding& of, std::uint64_t place, const undo_record& record,
                          bytes_view bytes) noexcept {
    std::uint32_t sum = crc32(bytes_view(of.id.data(), of.id.size()));
    sum = crc32(view_of(le64(place)), sum);
    sum = crc32(view_of(record, offsetof(undo_record, checksum)), sum);
    return crc32(bytes, sum);
}

result<std::uint32_t> volume_fingerprint(device& volume, std::uint64_t whole_bytes) {
    constexpr std::uint64_t samples = 64;
    constexpr std::uint64_t sample_bytes = 4096;
    constexpr std::uint64_t piece_bytes = 1 << 20;
    const std::uint64_t size = volume.size_bytes();
    std::vector<std::byte> room(std::min(piece_bytes, std::max(size, std::uint64_t{1})));
    std::uint32_t sum = 0;
    const auto add = [&](std::uint64_t offset, std::uint64_t bytes) {
        ENSURE(offset <= size, "a sample begins inside the volume");
        const auto piece = std::span(room).first(static_cast<std::size_t>(std::min(bytes, size - offset)));
        const auto read = volume.read_at(offset, piece);
        if (read) sum = crc32(bytes_view(piece.data(), piece.size()), sum);
        return read;
    };
    const std::uint64_t whole = std::min(whole_bytes, size);
    for (std::uint64_t at = 0; at < whole; at += piece_bytes)
        if (const auto read = add(at, std::min(piece_bytes, whole - at)); not read)
            return failure(read.error());
    for (std::uint64_t i = 0; i != samples; ++i)
        if (const auto read = add(size / samples * i, sample_bytes); not read) return failure(read.error());
    return sum;
}

}  // namespace sluice::fat
