#include "sluice/fat/check/geometry_check.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/tree_check.hpp"

namespace sluice::fat {
namespace {

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
        if (has(shape_.odd, format_anomaly::image_is_short))
            problems_.add(of_volume(problem_kind::image_is_short, shape_.volume_bytes, image_.size_bytes()));
    }

    void check_marks(const chain_map& map) {
        const std::uint32_t mask = entry_mask(shape_.type);
        // The last eight bits repeat the media byte; some implementations clear some of the others.
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
        std::vector<bool> is_referenced(std::size_t{shape_.last_cluster()} + 1);
        std::uint64_t lost = 0;
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each) {
            const table_entry entry = map.entry(each);
            report_.free_clusters += entry.kind == entry_kind::free;
            report_.bad_clusters += entry.kind == entry_kind::bad;
            if (not map.is_in_use(each)) continue;
            ++report_.used_clusters;
            if (map.owner(each) != chain_map::nobody) continue;
            ++lost;
            if (entry.kind == entry_kind::next) is_referenced[entry.next] = true;
        }
        ENSURE(report_.used_clusters == map.owned() + lost,
               "a cluster in use belongs to an object or is lost");
        if (lost == 0) return;
        std::uint64_t chains = 0;
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each)
            chains +=
                map.is_in_use(each) and map.owner(each) == chain_map::nobody and not is_referenced[each];
        ENSURE(chains <= lost and lost <= report_.used_clusters);
        problems_.add(of_volume(problem_kind::lost_clusters, lost, chains));
    }

private:
    void compare_copy(const chain_map& map, std::uint32_t copy) {
        const auto other = chain_map::load(image_, shape_, copy);
        if (not other) return;  // past the end of a truncated image
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

result<check_report> check_as(device& image, const geometry& shape, const check_options& options) {
    check_report report;
    report.shape = shape;
    problem_list problems(report, options.problems_max);
    const std::uint32_t copy = std::min(options.table_copy.value_or(shape.active_fat), shape.fat_count - 1);
    auto map = chain_map::load(image, shape, copy);
    if (not map) return failure(map.error());

    volume_check volume(image, shape, report, problems);
    volume.check_image();
    volume.check_marks(*map);
    volume.check_copies(*map, copy);
    tree_check tree(image, *map, report, options);
    tree.run();
    volume.check_label(tree);
    volume.count_clusters(*map);
    volume.check_info();
    return report;
}

}  // namespace sluice::fat
