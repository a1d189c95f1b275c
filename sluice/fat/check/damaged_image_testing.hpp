#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/codec/directory_entry.hpp"
#include "sluice/fat/codec/long_name.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/edit/format.hpp"

namespace sluice::fat {

/// A small volume written byte by byte, without the code of the file system, for tests to damage:
///
///     ONE.TXT          clusters 5, 6, 7
///     A long name.txt  clusters 9, 10
///     SUB/             cluster 12
///     SUB/TWO.BIN      clusters 20, 21, 22
///     SUB/DEEP/        cluster 30
///
/// Every data byte of a file's cluster n is n.
class sample_volume {
public:
    explicit sample_volume(fat_type type) : image_(bytes_of_type(type)) {
        format_options options;
        options.type = type;
        options.label = *encode_label("SAMPLE");
        options.serial = 0x1122'3344;
        if (type == fat_type::fat32) options.cluster_bytes = 512;
        const auto plan = plan_format(image_.size_bytes(), options).value();
        ENSURE(format(image_, plan).has_value());
        shape = plan.shape;
        if (type == fat_type::fat32) shrink();
        fill();
    }

    void fat_copy(std::uint32_t copy, std::uint32_t cluster, std::uint32_t value) {
        const auto fat = image_.bytes().subspan(shape.fat_copy_offset(copy), shape.fat_bytes);
        ENSURE(write_entry(shape.type, {.bytes = fat}, cluster, value));
    }
    void fat(std::uint32_t cluster, std::uint32_t value) {
        for (std::uint32_t copy = 0; copy != shape.fat_count; ++copy)
            fat_copy(copy, cluster, value);
    }
    void chain(std::initializer_list<std::uint32_t> clusters) {
        for (const auto* each = clusters.begin(); each != clusters.end(); ++each)
            fat(*each, each + 1 == clusters.end() ? end_entry(shape.type) : each[1]);
    }

    [[nodiscard]] std::uint64_t root_slot(std::uint64_t number) const {
        const std::uint64_t root =
            shape.type == fat_type::fat32 ? shape.cluster_offset(shape.root_cluster) : shape.root_offset;
        return root + number * slot_bytes;
    }
    [[nodiscard]] std::uint64_t slot_of(std::uint32_t cluster, std::uint64_t number) const {
        return shape.cluster_offset(cluster) + number * slot_bytes;
    }

    [[nodiscard]] directory_entry entry(std::uint64_t offset) {
        return *bytes_view(image_.bytes()).take_at<directory_entry>(offset);
    }
    void put(std::uint64_t offset, const directory_entry& what) {
        std::memcpy(image_.bytes().data() + offset, &what, sizeof what);
    }
    void put(std::uint64_t offset, std::string_view name, attributes bits, std::uint32_t first,
             std::uint64_t size) {
        directory_entry fresh{};
        std::copy_n(name.begin(), fresh.name.size(), fresh.name.begin());
        fresh.attribute_bits = le8(static_cast<std::uint8_t>(bits));
        fresh.modified_date = fresh.created_date = fresh.accessed_date = le16(0x5a21);
        set_first(fresh, first);
        fresh.size_bytes = le32(static_cast<std::uint32_t>(size));
        put(offset, fresh);
    }
    void set_first(directory_entry& what, std::uint32_t first) const {
        set_first_cluster(
            what, first,
            shape.type == fat_type::fat32 ? cluster_width::four_bytes : cluster_width::two_bytes);
    }
    template <class Change>
    void change(std::uint64_t offset, Change apply) {
        directory_entry changed = entry(offset);
        apply(changed);
        put(offset, changed);
    }
    [[nodiscard]] std::byte& at(std::uint64_t offset) { return image_.bytes()[offset]; }
    [[nodiscard]] memory_device& image() { return image_; }
    [[nodiscard]] std::uint64_t clusters(std::uint64_t count) const { return count * shape.cluster_bytes; }

    void set_free_count(std::uint32_t count) {
        if (not shape.info_offset) return;
        const info_sector info = encode_info({.free_count = count, .next_free = 40});
        std::memcpy(image_.bytes().data() + *shape.info_offset, &info, sizeof info);
    }
    [[nodiscard]] std::uint32_t true_free_count() const {
        return shape.cluster_count - 10 - (shape.type == fat_type::fat32 ? 1 : 0);
    }

    /// Saves the volume as an image file; there is no data after cluster 200.
    void save(const std::string& path) {
        const auto used = image_.bytes().first(shape.cluster_offset(200));
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(used.data()), static_cast<std::streamsize>(used.size()));
        std::filesystem::resize_file(path, shape.volume_bytes);
    }

    // Slots in the root: 0 label, 1 ONE.TXT, 2 and 3 pieces, 4 the entry of the long name, 5 SUB.
    static constexpr std::uint64_t one = 1;
    static constexpr std::uint64_t pieces = 2;
    static constexpr std::uint64_t named = 4;
    static constexpr std::uint64_t sub = 5;
    static constexpr std::uint64_t unused = 6;

    geometry shape;

private:
    static std::size_t bytes_of_type(fat_type type) {
        return type == fat_type::fat12 ? 1440 << 10 : type == fat_type::fat16 ? 5 << 20 : 35 << 20;
    }

    // Shrinks it to 3,000 clusters: Linux and fsck.fat still read it as FAT32, and the check is
    // many times faster.
    void shrink() {
        const auto sectors = static_cast<std::uint32_t>(shape.data_offset / 512 + 3000);
        for (const std::uint64_t offset : {std::uint64_t{0}, *shape.backup_offset}) {
            const le32 wire(sectors);
            std::memcpy(image_.bytes().data() + offset + offsetof(boot_sector, total_sectors_32), &wire, 4);
        }
        shape = read_geometry(image_).value();
    }

    void data(std::initializer_list<std::uint32_t> clusters) {
        for (const std::uint32_t each : clusters)
            std::ranges::fill(image_.bytes().subspan(shape.cluster_offset(each), shape.cluster_bytes),
                              static_cast<std::byte>(each));
        chain(clusters);
    }

    void fill() {
        data({5, 6, 7});
        put(root_slot(one), "ONE     TXT", attributes::archive, 5, clusters(3) - 10);
        data({9, 10});
        put(root_slot(named), "ALONGN~1TXT", attributes::archive, 9, clusters(1) + 1);
        const std::uint8_t sum = checksum_of(entry(root_slot(named)).name);
        put(root_slot(pieces), long_name_slot(u"A long name.txt", 2, sum));
        put(root_slot(pieces + 1), long_name_slot(u"A long name.txt", 1, sum));
        put(root_slot(sub), "SUB        ", attributes::directory, 12, 0);
        chain({12});
        put(slot_of(12, 0), ".          ", attributes::directory, 12, 0);
        put(slot_of(12, 1), "..         ", attributes::directory, 0, 0);
        put(slot_of(12, 2), "TWO     BIN", attributes::archive, 20, clusters(3));
        data({20, 21, 22});
        put(slot_of(12, 3), "DEEP       ", attributes::directory, 30, 0);
        chain({30});
        put(slot_of(30, 0), ".          ", attributes::directory, 30, 0);
        put(slot_of(30, 1), "..         ", attributes::directory, 12, 0);
        set_free_count(true_free_count());
    }

    memory_device image_;
};

inline constexpr fat_type all_types[] = {fat_type::fat12, fat_type::fat16, fat_type::fat32};

/// One kind of damage, and whether fsck.fat finds it as well.
struct sample_damage {
    problem_kind kind;
    void (*apply)(sample_volume&);
    bool is_for_fat32_only = false;
    bool is_seen_by_fsck = true;
};

inline const sample_damage sample_damages[] = {
    {problem_kind::chain_broken, [](sample_volume& v) { v.fat(6, free_entry); }},
    {problem_kind::chain_broken, [](sample_volume& v) { v.fat(6, bad_entry(v.shape.type)); }},
    {problem_kind::chain_broken, [](sample_volume& v) { v.fat(6, v.shape.last_cluster() + 1); }},
    {problem_kind::chain_broken, [](sample_volume& v) { v.fat(6, 1); }},
    {problem_kind::bad_start,
     [](sample_volume& v) {
         v.change(v.root_slot(v.one), [&](auto& e) { v.set_first(e, v.shape.last_cluster() + 5); });
     }},
    {problem_kind::bad_start,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [&](auto& e) { v.set_first(e, 100); }); }},
    {problem_kind::bad_start,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [&](auto& e) { v.set_first(e, 1); }); }},
    {problem_kind::bad_start,
     [](sample_volume& v) { v.change(v.root_slot(v.sub), [&](auto& e) { v.set_first(e, 0); }); }},
    {problem_kind::chain_loop, [](sample_volume& v) { v.fat(7, 5); }},
    {problem_kind::chain_loop, [](sample_volume& v) { v.fat(12, 12); }},
    {problem_kind::cross_link, [](sample_volume& v) { v.fat(21, 6); }},
    {problem_kind::cross_link,
     [](sample_volume& v) { v.change(v.root_slot(v.named), [&](auto& e) { v.set_first(e, 5); }); }},
    {problem_kind::cross_link,
     [](sample_volume& v) { v.change(v.slot_of(12, 3), [&](auto& e) { v.set_first(e, 12); }); }},
    {problem_kind::cross_link, [](sample_volume& v) { v.fat(30, 12); }},
    {problem_kind::chain_too_short,
     [](sample_volume& v) {
         v.change(v.root_slot(v.one),
                  [&](auto& e) { e.size_bytes = le32(static_cast<std::uint32_t>(v.clusters(5))); });
     }},
    {problem_kind::chain_too_short,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [&](auto& e) { v.set_first(e, 0); }); }},
    {problem_kind::chain_too_long,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [](auto& e) { e.size_bytes = le32(1); }); }},
    {problem_kind::chain_too_long,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [](auto& e) { e.size_bytes = le32(0); }); }},
    {problem_kind::directory_has_size,
     [](sample_volume& v) { v.change(v.root_slot(v.sub), [](auto& e) { e.size_bytes = le32(77); }); }},
    {problem_kind::dot_wrong,
     [](sample_volume& v) { v.change(v.slot_of(12, 0), [&](auto& e) { v.set_first(e, 20); }); }},
    {problem_kind::dot_wrong,
     [](sample_volume& v) { v.change(v.slot_of(30, 1), [&](auto& e) { v.set_first(e, 5); }); }},
    {problem_kind::dot_missing,
     [](sample_volume& v) { v.change(v.slot_of(30, 0), [](auto& e) { e.name[0] = free_mark; }); }},
    // A file, with its long name, in the place of `.` and `..`.
    {problem_kind::dot_missing,
     [](sample_volume& v) {
         v.put(v.slot_of(30, 2), "BLONGN~1TXT", attributes::archive, 0, 0);
         const std::uint8_t sum = checksum_of(v.entry(v.slot_of(30, 2)).name);
         v.put(v.slot_of(30, 0), long_name_slot(u"B long name.txt", 2, sum));
         v.put(v.slot_of(30, 1), long_name_slot(u"B long name.txt", 1, sum));
     }},
    {problem_kind::dot_missing,
     [](sample_volume& v) { v.change(v.slot_of(30, 1), [](auto& e) { e.name[1] = 'X'; }); }},
    {problem_kind::dot_missing,
     [](sample_volume& v) { v.change(v.slot_of(12, 0), [](auto& e) { e.name[1] = '.'; }); }},
    {problem_kind::dot_malformed,
     [](sample_volume& v) {
         v.change(v.slot_of(12, 0),
                  [](auto& e) { e.attribute_bits = le8(static_cast<std::uint8_t>(attributes::archive)); });
     }},
    {problem_kind::dot_malformed,
     [](sample_volume& v) { v.change(v.slot_of(30, 1), [](auto& e) { e.attribute_bits = le8(0x0f); }); }},
    {problem_kind::dot_malformed,
     [](sample_volume& v) { v.change(v.slot_of(30, 1), [](auto& e) { e.size_bytes = le32(512); }); }, false,
     false},
    {problem_kind::dot_wrong,
     [](sample_volume& v) {
         v.change(v.slot_of(12, 1), [&](auto& e) {
             v.set_first(e, v.shape.last_cluster() + 9);
             e.attribute_bits = le8(0x20);
         });
     }},
    {problem_kind::bad_short_name,
     [](sample_volume& v) { v.change(v.root_slot(v.one), [](auto& e) { e.name[2] = 7; }); }},
    {problem_kind::bad_short_name,
     [](sample_volume& v) { v.change(v.slot_of(12, 2), [](auto& e) { e.name[2] = '*'; }); }},
    {problem_kind::duplicate_name,
     [](sample_volume& v) { v.put(v.root_slot(v.unused), "ONE     TXT", attributes::archive, 0, 0); }},
    {problem_kind::duplicate_name,
     [](sample_volume& v) {
         const std::string_view other = "ALONGN~2TXT";
         v.put(v.root_slot(v.unused + 2), other, attributes::archive, 0, 0);
         const std::uint8_t sum = checksum_of(v.entry(v.root_slot(v.unused + 2)).name);
         v.put(v.root_slot(v.unused), long_name_slot(u"A LONG name.txt", 2, sum));
         v.put(v.root_slot(v.unused + 1), long_name_slot(u"A LONG name.txt", 1, sum));
     },
     false, false},
    {problem_kind::orphan_long_name,
     [](sample_volume& v) { v.change(v.root_slot(v.named), [](auto& e) { e.name[0] = 'B'; }); }, false,
     false},  // fsck.fat does print it
    {problem_kind::orphan_long_name,
     [](sample_volume& v) { v.change(v.root_slot(v.pieces), [](auto& e) { e.name[0] = free_mark; }); }, false,
     false},  // likewise
    {problem_kind::lost_clusters, [](sample_volume& v) { v.chain({50, 51, 52}); }},
    {problem_kind::lost_clusters, [](sample_volume& v) { v.fat(50, 50); }},
    {problem_kind::fats_differ, [](sample_volume& v) { v.fat_copy(1, 60, 61); }},
    {problem_kind::media_differs, [](sample_volume& v) { v.fat(0, end_entry(v.shape.type) - 5); }, false,
     false},
    {problem_kind::dirty, [](sample_volume& v) { v.at(v.shape.dirty_byte_offset()) |= std::byte{1}; }},
    {problem_kind::free_count_wrong, [](sample_volume& v) { v.set_free_count(17); }, true},
    {problem_kind::info_sector_bad, [](sample_volume& v) { v.at(*v.shape.info_offset) = std::byte{}; }, true},
    {problem_kind::root_start_bad, [](sample_volume& v) { v.fat(2, 0); }, true},
    {problem_kind::misplaced_label,
     [](sample_volume& v) { v.put(v.slot_of(30, 2), "LABEL      ", attributes::label, 0, 0); }, false, false},
    {problem_kind::second_label,
     [](sample_volume& v) { v.put(v.root_slot(v.unused), "LABEL      ", attributes::label, 0, 0); }, false,
     false},
    {problem_kind::dot_misplaced,
     [](sample_volume& v) { v.put(v.root_slot(v.unused), ".          ", attributes::directory, 0, 0); }},
};

/// Calls look(volume, damage) with a volume of each type for each damage that is possible on that
/// type.
template <class Look>
void for_each_damage(const Look& look) {
    for (const fat_type type : all_types)
        for (const sample_damage& damage : sample_damages) {
            if (damage.is_for_fat32_only and type != fat_type::fat32) continue;
            SCOPED_TRACE(std::string(name_of(damage.kind)) + " number " +
                         std::to_string(&damage - sample_damages) + ", FAT type " +
                         std::to_string(static_cast<int>(type)));
            sample_volume volume(type);
            damage.apply(volume);
            look(volume, damage);
        }
}

inline bool has_tool(const char* name) {
    return std::system((std::string("command -v ") + name + " >/dev/null").c_str()) == 0;
}

/// Runs a command and returns its exit status; sets `said` to its output.
inline int status_of(const std::string& command, std::string& said) {
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    ENSURE(pipe != nullptr);
    std::array<char, 512> room{};
    while (std::fgets(room.data(), room.size(), pipe) != nullptr)
        said += room.data();
    return WEXITSTATUS(::pclose(pipe));
}

}  // namespace sluice::fat
