#include "sluice/fat/codec/journal_format.hpp"

#include <algorithm>

#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/codec/format_version.hpp"

namespace sluice::fat {
namespace {

constexpr std::string_view magic = "SLUICJNL";
constexpr std::uint32_t version = 1;

template <wire_type T>
bytes_view view_of(const T& what, std::size_t bytes = sizeof(T)) noexcept {
    return {reinterpret_cast<const std::byte*>(&what), bytes};
}

}  // namespace

bool has_magic(const journal_header& raw) noexcept {
    return std::string_view(raw.magic.data(), raw.magic.size()) == magic;
}

journal_header encode(const journal_binding& binding) noexcept {
    journal_header raw{};
    std::ranges::copy(magic, raw.magic.begin());
    raw.version = le32(version);
    raw.was_clean = le32(binding.was_clean ? 1 : 0);
    raw.volume_offset = le64(binding.volume.offset);
    raw.volume_bytes = le64(binding.volume.length);
    raw.generation = le64(binding.generation);
    raw.id = binding.id;
    raw.fingerprint = le32(binding.fingerprint);
    raw.checksum = le32(crc32(view_of(raw, offsetof(journal_header, checksum))));
    return raw;
}

std::expected<journal_binding, std::string> decode(const journal_header& raw) {
    if (not has_magic(raw)) return std::unexpected("not a journal");
    if (raw.version.value() != version)
        return std::unexpected(unsupported_version(raw.version.value(), version));
    if (raw.checksum.value() != crc32(view_of(raw, offsetof(journal_header, checksum))))
        return std::unexpected("damaged: its header has a wrong checksum");
    return journal_binding{.volume = {raw.volume_offset.value(), raw.volume_bytes.value()},
                           .was_clean = raw.was_clean.value() == 1,
                           .generation = raw.generation.value(),
                           .id = raw.id,
                           .fingerprint = raw.fingerprint.value()};
}

std::uint32_t checksum_of(const journal_binding& of, const journal_record& record,
                          std::uint64_t place) noexcept {
    std::uint32_t sum = crc32(bytes_view(of.id.data(), of.id.size()));
    sum = crc32(view_of(le64(place)), sum);
    return crc32(view_of(record, offsetof(journal_record, checksum)), sum);
}

}  // namespace sluice::fat
