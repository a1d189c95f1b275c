#include "sluice/fat/edit/set_label.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/fat/edit/directory_slots.hpp"

namespace sluice::fat {
namespace {

result<void> set_in_root(device& image, const geometry& shape, directory_entry fresh) {
    auto table = table_editor::load(image, shape);
    if (not table) return failure(table.error());
    directory_slots root(image, shape, *table);
    std::optional<std::uint64_t> place;
    const auto found = root.find([&](std::uint64_t offset, const directory_entry& entry) {
        if (kind_of(entry) == slot_kind::label) place = offset;
        return place.has_value();
    });
    if (not found) return failure(found.error());
    if (fresh.name[0] == free_mark and not place) return {};
    if (not place) {
        const auto taken = root.take();
        if (not taken) return failure(taken.error());
        place = *taken;
    }
    if (not place) return failure({ENOSPC, "make a label in a root directory that is full"});
    return write_slot(image, *place, fresh);
}

result<void> set_in_boot_sector(device& image, const geometry& shape, std::uint64_t offset,
                                const label_bytes& label) {
    ENSURE(offset % shape.sector_bytes == 0, "a boot sector begins where a sector does");
    std::array<std::byte, sizeof(boot_sector)> bytes{};
    if (const auto done = image.read_at(offset, std::span<std::byte>(bytes)); not done) return done;
    auto sector = *bytes_view(bytes).take<boot_sector>();
    extended_fields fields = extended_fields_of(sector, shape.type);
    if (fields.signature.value() != 0x29) return {};  // has no field for a label
    fields.label = label;
    set_extended_fields(sector, shape.type, fields);
    return image.write_at(offset, bytes_of(sector).span());
}

}  // namespace

result<void> set_label(device& image, const geometry& shape, const label_bytes& label, std::uint16_t date,
                       std::uint16_t time) {
    directory_entry fresh{};
    std::memcpy(fresh.name.data(), label.data(), label.size());
    if (label == no_label) fresh.name[0] = free_mark;
    fresh.attribute_bits = le8(static_cast<std::uint8_t>(attributes::label));
    fresh.modified_date = le16(date);
    fresh.modified_time = le16(time);
    if (const auto done = set_in_root(image, shape, fresh); not done) return done;
    if (const auto done = set_in_boot_sector(image, shape, 0, label); not done) return done;
    if (shape.backup_offset) {
        const auto done = set_in_boot_sector(image, shape, *shape.backup_offset, label);
        if (not done) return done;
    }
    return image.barrier();
}

result<label_bytes> read_label(device& image, const geometry& shape) {
    auto table = table_editor::load(image, shape);
    if (not table) return failure(table.error());
    label_bytes label = shape.has_extended_fields ? shape.label : no_label;
    directory_slots root(image, shape, *table);
    const auto found = root.find([&](std::uint64_t, const directory_entry& entry) {
        if (kind_of(entry) != slot_kind::label) return false;
        std::memcpy(label.data(), entry.name.data(), label.size());
        return true;
    });
    if (not found) return failure(found.error());
    return label;
}

}  // namespace sluice::fat
