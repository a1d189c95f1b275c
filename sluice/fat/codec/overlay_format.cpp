#include "sluice/fat/codec/overlay_format.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/codec/format_version.hpp"

namespace sluice::fat {
namespace {

constexpr std::string_view magic = "SLUICOVL";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t start_bytes = 64U << 10;
constexpr std::uint64_t sample_bytes = 4096;
constexpr std::uint64_t samples = 64;

template <wire_type T>
bytes_view view_of(const T& what, std::size_t bytes = sizeof(T)) noexcept {
    return {reinterpret_cast<const std::byte*>(&what), bytes};
}

std::uint32_t checksum_of(const overlay_header& raw) noexcept {
    return crc32(view_of(raw, offsetof(overlay_header, checksum)));
}

}  // namespace

overlay_layout overlay_layout::for_image(std::uint64_t image_bytes) noexcept {
    overlay_layout layout{.image_bytes = image_bytes};
    while (image_bytes / layout.block_bytes >= blocks_max and layout.block_bytes < block_bytes_max)
        layout.block_bytes *= 2;
    return layout;
}

bool has_magic(const overlay_header& raw) noexcept {
    return std::string_view(raw.magic.data(), raw.magic.size()) == magic;
}

overlay_header encode(const overlay_binding& binding) noexcept {
    overlay_header raw{};
    std::ranges::copy(magic, raw.magic.begin());
    raw.version = le32(version);
    raw.state = le32(static_cast<std::uint32_t>(binding.state));
    raw.block_bytes = le32(binding.layout.block_bytes);
    raw.fingerprint = le32(binding.fingerprint);
    raw.image_bytes = le64(binding.layout.image_bytes);
    raw.image_modified = le64(static_cast<std::uint64_t>(binding.image_modified));
    raw.id = binding.id;
    raw.checksum = le32(checksum_of(raw));
    return raw;
}

std::expected<overlay_binding, std::string> decode(const overlay_header& raw) {
    if (not has_magic(raw)) return std::unexpected("not an overlay");
    if (raw.version.value() != version)
        return std::unexpected(unsupported_version(raw.version.value(), version));
    if (raw.checksum.value() != checksum_of(raw))
        return std::unexpected("damaged: its header has a wrong checksum");
    overlay_binding binding{
        .layout = {.image_bytes = raw.image_bytes.value(), .block_bytes = raw.block_bytes.value()},
        .state = static_cast<overlay_state>(raw.state.value()),
        .fingerprint = raw.fingerprint.value(),
        .image_modified = static_cast<std::int64_t>(raw.image_modified.value()),
        .id = raw.id};
    const overlay_layout& layout = binding.layout;
    const bool is_state =
        binding.state == overlay_state::collecting or binding.state == overlay_state::committing;
    // A valid checksum does not prove that the fields are valid.
    if (not is_state or not std::has_single_bit(layout.block_bytes) or
        layout.block_bytes < overlay_layout::block_bytes_min or
        layout.block_bytes > overlay_layout::block_bytes_max or
        layout.image_bytes / layout.block_bytes >= overlay_layout::blocks_max)
        return std::unexpected("damaged: the values of its header contradict each other");
    return binding;
}

overlay_entry encode_entry(const overlay_binding& of, std::uint32_t slot, std::uint32_t block) noexcept {
    overlay_entry entry{.block_plus_one = le32(block + 1), .checksum = {}};
    std::uint32_t sum = crc32(bytes_view(of.id.data(), of.id.size()));
    sum = crc32(view_of(le64(slot)), sum);
    entry.checksum = le32(crc32(view_of(entry.block_plus_one), sum));
    return entry;
}

result<std::uint32_t> fingerprint_of(device& image) {
    const std::uint64_t size = image.size_bytes();
    std::vector<std::byte> room(start_bytes);
    std::uint32_t sum = 0;
    const auto add = [&](std::uint64_t offset, std::uint64_t bytes) {
        ENSURE(offset <= size and bytes <= room.size(), "a sample begins inside the image");
        const auto piece = std::span(room).first(static_cast<std::size_t>(std::min(bytes, size - offset)));
        const auto read = image.read_at(offset, piece);
        if (read) sum = crc32(bytes_view(piece.data(), piece.size()), sum);
        return read;
    };
    if (const auto read = add(0, start_bytes); not read) return failure(read.error());
    for (std::uint64_t i = 0; i < samples; ++i)
        if (const auto read = add(size / samples * i, sample_bytes); not read) return failure(read.error());
    return sum;
}

}  // namespace sluice::fat
