#include "sluice/fat/check.hpp"

#include <algorithm>

#include "sluice/fat/boot_sector.hpp"
#include "sluice/fat/tree_check.hpp"

namespace sluice::fat {
namespace {

using found_geometry = std::expected<geometry, boot_problem>;

// Where mkfs programs put the backup, for any sector size.
found_geometry read_backup(device& image) {
    constexpr std::uint64_t backup_sector = 6;
    for (const std::uint64_t sector_bytes : {512U, 1024U, 2048U, 4096U}) {
        std::array<std::byte, sizeof(boot_sector)> bytes{};
        if (not image.read_at(backup_sector * sector_bytes, std::span<std::byte>(bytes))) continue;
        const auto sector = *bytes_view(bytes).take<boot_sector>();
        const auto shape = decode_boot_sector(sector, image.size_bytes());
        if (shape and shape->type == fat_type::fat32 and shape->sector_bytes == sector_bytes and
            sector.signature.value() == 0xaa55)
            return shape;
    }
    return std::unexpected(boot_problem{});
}

void find_geometry(device& image, check_report& report, problem_list& problems) {
    auto shape = read_geometry(image);
    if (not shape) {
        report.refusal = shape.error().message();
        const auto backup = read_backup(image);
        if (not backup) return;
        problem bad{.kind = problem_kind::boot_sector_bad};
        bad.other = report.refusal;
        problems.add(std::move(bad));
        shape = backup;
    }
    report.shape = *shape;
}

problem of_volume(problem_kind kind, std::uint64_t value = 0, std::uint64_t expected = 0) {
    problem one{.kind = kind};
    one.value = value;
    one.expected = expected;
    return one;
}

// The parts of a check, around the tree.
class volume_check {
public:
    volume_check(device& image, const geometry& shape, check_report& report, problem_list& problems)
        : image_(image), shape_(shape), report_(report), problems_(problems) {}

    void check_image() {
        if (has(shape_.odd, oddity::image_is_short))
            problems_.add(of_volume(problem_kind::image_is_short, shape_.volume_bytes, image_.size_bytes()));
    }

    void check_marks(const chain_map& map) {
        const std::uint32_t mask = entry_mask(shape_.type);
        // The last eight bits repeat the media byte; of the others one writer or another leaves some clear.
        const std::uint32_t first = map.value(0);
        if ((first & 0xff) != shape_.media)
            problems_.add(of_volume(problem_kind::media_differs, first, (mask & ~0xffU) | shape_.media));
        const std::uint32_t second = map.value(1);
        const std::uint32_t clean = clean_bit(shape_.type);
        if (shape_.is_dirty or (second & clean) != clean) problems_.add(of_volume(problem_kind::dirty));
        const std::uint32_t no_error = no_error_bit(shape_.type);
        if ((second & no_error) != no_error) problems_.add(of_volume(problem_kind::medium_errors));
    }

    void check_copies(const chain_map& map, std::uint32_t believed) {
        if (not shape_.is_mirrored) return;
        for (std::uint32_t copy = 0; copy != shape_.fat_count; ++copy)
            if (copy != believed) compare_copy(map, copy);
    }

    void check_backup() {
        if (not shape_.backup_offset) return;
        std::array<std::byte, sizeof(boot_sector)> first{};
        std::array<std::byte, sizeof(boot_sector)> second{};
        if (not image_.read_at(0, std::span<std::byte>(first)) or
            not image_.read_at(*shape_.backup_offset, std::span<std::byte>(second)))
            return;
        // The dirty mark is of the first alone.
        first[shape_.dirty_byte_offset()] = second[shape_.dirty_byte_offset()] = std::byte{};
        if (first != second) problems_.add(of_volume(problem_kind::backup_differs));
    }

    void check_info() {
        if (not shape_.info_offset) return;
        std::array<std::byte, sizeof(info_sector)> bytes{};
        if (not image_.read_at(*shape_.info_offset, std::span<std::byte>(bytes))) return;
        const auto sector = *bytes_view(bytes).take<info_sector>();
        if (not decode_info(sector, shape_)) return problems_.add(of_volume(problem_kind::info_sector_bad));
        const std::uint32_t says = sector.free_count.value();
        constexpr std::uint32_t unknown = 0xffff'ffff;
        if (says != unknown and says != report_.free_clusters)
            problems_.add(of_volume(problem_kind::free_count_wrong, says, report_.free_clusters));
    }

    void check_label(const tree_check& tree) {
        const label_bytes in_root = tree.root_label().value_or(no_label);
        if (in_root == shape_.label or not shape_.has_extended_fields) return;
        // "NO NAME" and eleven spaces both mean none.
        if (label_text(in_root) == label_text(shape_.label)) return;
        problem differs = of_volume(problem_kind::label_differs);
        differs.other = label_text(shape_.label);
        problems_.add(std::move(differs));
    }

    void count_clusters(const chain_map& map) {
        std::vector<bool> is_led_to(std::size_t{shape_.last_cluster()} + 1);
        std::uint64_t lost = 0;
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each) {
            const table_entry entry = map.entry(each);
            report_.free_clusters += entry.kind == entry_kind::free;
            report_.bad_clusters += entry.kind == entry_kind::bad;
            if (not map.is_in_use(each)) continue;
            ++report_.used_clusters;
            if (map.owner(each) != chain_map::nobody) continue;
            ++lost;
            if (entry.kind == entry_kind::next) is_led_to[entry.next] = true;
        }
        if (lost == 0) return;
        std::uint64_t chains = 0;
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each)
            chains += map.is_in_use(each) and map.owner(each) == chain_map::nobody and not is_led_to[each];
        problems_.add(of_volume(problem_kind::lost_clusters, lost, chains));
    }

private:
    void compare_copy(const chain_map& map, std::uint32_t copy) {
        const auto other = chain_map::load(image_, shape_, copy);
        if (not other) return;  // behind the end of a cut image
        for (std::uint32_t each = 0; each <= shape_.last_cluster(); ++each) {
            if (map.value(each) == other->value(each)) continue;
            problem differs = of_volume(problem_kind::fats_differ, copy);
            differs.cluster = each;
            return problems_.add(std::move(differs));
        }
    }

    device& image_;
    const geometry& shape_;
    check_report& report_;
    problem_list& problems_;
};

}  // namespace

result<check_report> check(device& image, const check_options& options) {
    check_report report;
    problem_list problems(report, options.problems_max);
    find_geometry(image, report, problems);
    if (not report.shape) return report;
    const geometry& shape = *report.shape;
    const std::uint32_t copy = std::min(options.table_copy.value_or(shape.active_fat), shape.fat_count - 1);
    auto map = chain_map::load(image, shape, copy);
    if (not map) return failure(map.error());

    volume_check volume(image, shape, report, problems);
    volume.check_image();
    volume.check_marks(*map);
    volume.check_copies(*map, copy);
    volume.check_backup();
    tree_check tree(image, *map, report, options);
    tree.run();
    volume.check_label(tree);
    volume.count_clusters(*map);
    volume.check_info();
    return report;
}

}  // namespace sluice::fat
