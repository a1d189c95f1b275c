#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/random.hpp"
#include "sluice/fat/check/check.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/fat/device/recording_device.hpp"

// The possible states after a crash. The test records every write of an operation and its commit.
// Then it reconstructs the volume after each write, with any of the sectors since the last barrier
// missing, and judges it. Acceptable are at worst lost clusters, chains longer than their files,
// and both names of a file that is being moved.

namespace sluice::fat {
namespace {

constexpr std::size_t sector_bytes = 512;

struct scenario {
    const char* name;
    std::function<void(file_system&)> act;
    // Returns a problem of the names and contents after a crash; empty if there is none.
    std::function<std::string(file_system&)> judge;
    std::set<problem_kind> allowed{};
};

std::string text(std::size_t bytes, char what) {
    return std::string(bytes, what);
}

inode_handle at(file_system& fs, std::string_view path) {
    auto found = fs.find(path);
    EXPECT_EQ(code(found), 0) << path;
    return std::move(*found);
}

void write_at(file_system& fs, std::string_view path, const std::string& what, std::uint64_t offset) {
    run_list::hint hint;
    EXPECT_EQ(code(fs.write(*at(fs, path), hint, std::as_bytes(std::span(what)), offset)), 0);
}

void prepare(file_system& fs) {
    for (const char* path : {"d", "d/sub", "e"})
        EXPECT_EQ(code(fs.create(path, true, attributes::none)), 0);
    put(fs, "kept", text(3000, 'k'));
    put(fs, "d/A name that is long enough for slots.text", text(5000, 'a'));
    put(fs, "e/target", text(4000, 't'));
    for (int i = 0; i < 20; ++i)
        put(fs, "e/filler " + std::to_string(i), text(600, 'f'));
    for (const char* path : {"e/pieces", "e/between"})
        put(fs, path, "");
    for (std::uint64_t i = 0; i < 8; ++i) {  // each takes the cluster after that of the other
        write_at(fs, "e/pieces", text(512, 'p'), i * 512);
        write_at(fs, "e/between", text(512, 'q'), i * 512);
    }
    EXPECT_EQ(code(fs.commit()), 0);
}

constexpr const char* long_path = "d/A name that is long enough for slots.text";

std::string is_one_of(file_system& fs, std::string_view path, std::initializer_list<std::string> contents) {
    const std::string found = content_of(fs, path);
    for (const std::string& each : contents)
        if (found == each) return {};
    return std::string(path) + " has " + std::to_string(found.size()) + " bytes: " + found.substr(0, 20);
}

std::size_t spellings_of(file_system& fs, std::string_view path, std::string_view folded) {
    const auto directory = at(fs, path);
    std::size_t found = 0;
    for (std::uint32_t slot = 0;;) {
        const auto next = fs.list(*directory, slot).value();
        if (not next) return found;
        slot = next->slot + 1;
        if (fold(next->name) == folded) ++found;
    }
}

// Scenarios that change the content of files.
std::vector<scenario> content_scenarios() {
    return {
        {"create", [](file_system& fs) { put(fs, "d/new file with a long name.text", text(5000, 'n')); },
         [](file_system& fs) {
             return is_one_of(fs, "d/new file with a long name.text", {"(missing)", "", text(5000, 'n')});
         }},
        {"append", [](file_system& fs) { write_at(fs, long_path, text(5000, 'b'), 5000); },
         [](file_system& fs) {
             return is_one_of(fs, long_path, {text(5000, 'a'), text(5000, 'a') + text(5000, 'b')});
         }},
        {"rewrite", [](file_system& fs) { put(fs, long_path, text(7000, 'r')); },
         [](file_system& fs) { return is_one_of(fs, long_path, {text(5000, 'a'), "", text(7000, 'r')}); }},
        {"shorten_and_lengthen",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.truncate(*at(fs, long_path), 2000)), 0);
             put(fs, "other", text(9000, 'o'));
             write_at(fs, long_path, text(6000, 'l'), 2000);
         },
         [](file_system& fs) {
             const std::string found = content_of(fs, long_path);
             return found.starts_with(text(2000, 'a')) ? ""
                                                       : "the remaining part is lost: " + found.substr(0, 20);
         }},
        {"defragment",
         [](file_system& fs) {
             const auto counts = fs.defragment(*at(fs, "e/pieces"));
             EXPECT_EQ(code(counts), 0);
             EXPECT_EQ(counts->before, 8U);
             EXPECT_EQ(counts->after, 1U);
         },
         [](file_system& fs) {
             const auto wrong = is_one_of(fs, "e/pieces", {text(4096, 'p')});
             return wrong.empty() ? is_one_of(fs, "e/between", {text(4096, 'q')}) : wrong;
         }},
        {"lengthen_far", [](file_system& fs) { EXPECT_EQ(code(fs.truncate(*at(fs, long_path), 60'000)), 0); },
         [](file_system& fs) {
             const std::string found = content_of(fs, long_path);
             return found.starts_with(text(5000, 'a')) and found.find_first_not_of('\0', 5000) == found.npos
                        ? ""
                        : "old bytes of the disk are visible";
         }},
    };
}

std::function<void(file_system&)> renaming(const char* from, const char* to) {
    return [=](file_system& fs) {
        EXPECT_EQ(code(fs.rename(*at(fs, from), to, file_system::if_taken::refuse)), 0);
    };
}

// Scenarios that change names.
std::vector<scenario> name_scenarios() {
    return {
        {"remove", [](file_system& fs) { EXPECT_EQ(code(fs.remove(*at(fs, long_path))), 0); },
         [](file_system& fs) { return is_one_of(fs, long_path, {"(missing)", text(5000, 'a')}); }},
        {"remove_and_reuse",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.remove(*at(fs, long_path))), 0);
             put(fs, long_path, text(300'000, 'R'));
         },
         [](file_system& fs) {
             return is_one_of(fs, long_path, {"(missing)", text(5000, 'a'), "", text(300'000, 'R')});
         }},
        {"rename_elsewhere",
         renaming(long_path, "e/another name of many letters"),
         [](file_system& fs) {
             const std::string before = is_one_of(fs, long_path, {text(5000, 'a')});
             return before.empty() ? before
                                   : is_one_of(fs, "e/another name of many letters", {text(5000, 'a')});
         },
         {problem_kind::cross_link}},
        {"rename_over",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.rename(*at(fs, long_path), "e/TARGET", file_system::if_taken::replace)), 0);
         },
         [](file_system& fs) {
             const std::string target = is_one_of(fs, "e/target", {text(4000, 't'), text(5000, 'a')});
             if (not target.empty() or content_of(fs, "e/target")[0] == 'a') return target;
             return is_one_of(fs, long_path, {text(5000, 'a')});
         },
         {problem_kind::cross_link}},
        {"rename_directory",
         renaming("d", "e/d moved"),
         [](file_system& fs) {
             const std::string before = is_one_of(fs, long_path, {text(5000, 'a')});
             return before.empty() ? before
                                   : is_one_of(fs, "e/d moved/A name that is long enough for slots.text",
                                               {text(5000, 'a')});
         },
         {problem_kind::cross_link, problem_kind::dot_wrong}},
        {"rename_case", renaming(long_path, "d/a NAME that is long enough for slots.TEXT"),
         [](file_system& fs) { return is_one_of(fs, long_path, {text(5000, 'a')}); }},
        {"rename_case_that_needs_slots", renaming("kept", "Kept"),
         [](file_system& fs) {
             return spellings_of(fs, "", "KEPT") == 1 ? "" : "there are both spellings, or none";
         }},
        // Both may be on the disk; a mount shows only one.
        {"rename_case_in_a_full_sector",
         renaming("e/target", "e/Target"),
         [](file_system& fs) {
             if (spellings_of(fs, "e", "TARGET") != 1)
                 return std::string("there are both spellings, or none");
             return is_one_of(fs, "e/target", {text(4000, 't')});
         },
         {problem_kind::cross_link, problem_kind::duplicate_name}},
    };
}

// Scenarios with many names.
std::vector<scenario> directory_scenarios() {
    return {
        {"many_directories",
         [](file_system& fs) {
             for (int i = 0; i < 12; ++i) {
                 const std::string name = "d/a directory of number " + std::to_string(i);
                 EXPECT_EQ(code(fs.create(name, true, attributes::none)), 0);
                 put(fs, name + "/file", text(700, 'x'));
             }
         },
         [](file_system&) { return std::string(); }},
        {"very_long_names",
         [](file_system& fs) {
             for (int i = 0; i < 4; ++i)
                 put(fs, "d/" + std::to_string(i) + std::string(240, 'v'), text(10, 'v'));
         },
         [](file_system& fs) {
             for (int i = 0; i < 4; ++i) {
                 const auto found = is_one_of(fs, "d/" + std::to_string(i) + std::string(240, 'v'),
                                              {"(missing)", "", text(10, 'v')});
                 if (not found.empty()) return found;
             }
             // If only the short name remained, the file would have lost its name.
             const auto directory = at(fs, "d");
             for (std::uint32_t slot = 0;;) {
                 const auto next = fs.list(*directory, slot).value();
                 if (not next) return std::string();
                 slot = next->slot + 1;
                 if (next->name.size() < 30 and next->name != "sub")
                     return "lost its long name: " + next->name;
             }
         }},
    };
}

const std::vector<scenario>& scenarios() {
    static const std::vector<scenario> all = [] {
        std::vector<scenario> gathered = content_scenarios();
        std::ranges::move(name_scenarios(), std::back_inserter(gathered));
        std::ranges::move(directory_scenarios(), std::back_inserter(gathered));
        return gathered;
    }();
    return all;
}

// Written sectors, in order; a barrier is an empty one.
struct sector_write {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};
};
std::vector<sector_write> sectors_of(const recording_device& recorded) {
    std::vector<sector_write> all;
    for (const auto& event : recorded.log()) {
        if (event.kind == recording_device::event_kind::barrier) {
            all.push_back({});
            continue;
        }
        for (std::uint64_t done = 0; done < event.range.length;) {
            const std::uint64_t at = event.range.offset + done;
            const std::uint64_t bytes = std::min(sector_bytes - at % sector_bytes, event.range.length - done);
            sector_write one{.offset = at, .bytes = std::vector<std::byte>(bytes)};
            if (event.kind == recording_device::event_kind::write)
                std::copy_n(event.bytes.begin() + static_cast<std::ptrdiff_t>(done), bytes,
                            one.bytes.begin());
            all.push_back(std::move(one));
            done += bytes;
        }
    }
    return all;
}

void apply(std::vector<std::byte>& image, const sector_write& one) {
    std::ranges::copy(one.bytes, image.begin() + static_cast<std::ptrdiff_t>(one.offset));
}

struct volume_format {
    const char* name;
    std::size_t kibibytes;
    const char* options;
};
constexpr std::array formats{volume_format{"fat16", 2200, "-F 16 -s 1"},
                             volume_format{"fat12", 1100, "-F 12 -s 1"},
                             volume_format{"fat32", 2200, "-F 32 -s 1"}};

// Returns the first line of fsck.fat's output that is worse than lost clusters, chains that are too
// long and, if that is allowed, two names of one file; empty if there is none.
std::string worst_of(const std::string& said, bool may_share) {
    static const std::regex harmless(
        R"(Warning: Filesystem is FAT32 according to .*|  but has only .*|  This may lead to .*|)"
        R"(fsck\.fat .*|.*: \d+ files, \d+/\d+ clusters|Leaving filesystem unchanged\.|)"
        R"(There are differences between boot sector and its backup\.|This is mostly harmless.*|)"
        R"( +\d+:[0-9a-f/]+(, \d+:[0-9a-f/]+)*| +Not automatically fixing this\.|)"
        R"(Dirty bit is set\..*| Automatically removing dirty bit\.|FATs differ.*|.*[Uu]sing first FAT\.|)"
        R"(Orphaned long file name part .*| +Auto-deleting\.|/.*|)"
        R"(  File size is \d+ bytes, cluster chain length is > \d+ bytes\.|)"
        R"( +Truncating file to \d+ bytes\.|Reclaimed \d+ unused clusters? \(\d+ bytes\).*|)"
        R"(Free cluster summary (wrong|uninitialized).*| +Auto-(correcting|setting)\.|)");
    // fsck.fat truncates the second file, and then reports its length.
    static const std::regex of_two_names(
        R"(  share clusters\.|  Truncating second to 0 bytes.*|)"
        R"(  File size is \d+ bytes, cluster chain length is 0 bytes\.|)"
        R"(  Invalid '\.\.' entry in the second slot\. Fixing\.|)"
        R"(.*Duplicate directory entry.*|  (First|Second) +Size.*| +Auto-renaming.*| +Renamed to.*)");
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);)
        if (not std::regex_match(line, harmless) and not(may_share and std::regex_match(line, of_two_names)))
            return line;
    return {};
}

// In the long form (SLUICE_LONG_TESTS), all states are judged. Otherwise, in ordered mode on FAT16:
// the states after some 20 writes and, after each barrier, 3 random sets of missing sectors. On the
// other types, and in the other modes: the states after some 5 writes, and one random set after
// each of some 10 barriers. fsck.fat, which takes longer than everything else, judges one random
// set after each third barrier, or on the other types and modes one in all.
struct thoroughness {
    std::size_t moments = SIZE_MAX;
    int draws = 12;
    bool has_fsck_for_all = true;
    std::size_t barriers = SIZE_MAX;
    std::size_t barriers_per_fsck = 1;
};

class crash : public testing::TestWithParam<std::tuple<std::size_t, write_mode, std::size_t>> {
protected:
    const scenario& what() const { return scenarios()[std::get<0>(GetParam())]; }
    write_mode mode() const { return std::get<1>(GetParam()); }
    const volume_format& on() const { return formats[std::get<2>(GetParam())]; }
    thoroughness how() const {
        if (std::getenv("SLUICE_LONG_TESTS") != nullptr) return {};
        if (mode() == write_mode::ordered and &on() == &formats[0])
            return {.moments = 20, .draws = 3, .has_fsck_for_all = false, .barriers_per_fsck = 3};
        return {.moments = 5,
                .draws = 1,
                .has_fsck_for_all = false,
                .barriers = 10,
                .barriers_per_fsck = SIZE_MAX};
    }

    void judge_by_fsck(const std::vector<std::byte>& image, const std::string& where) {
        const std::string said = run_on(image, "PATH=$PATH:/usr/sbin fsck.fat -n %");
        const bool may_share = what().allowed.contains(problem_kind::cross_link);
        ASSERT_EQ(worst_of(said, may_share), "") << where << ":\n" << said;
    }
    void judge(const std::vector<std::byte>& image, const std::string& where) {
        static const std::set<problem_kind> harmless{
            problem_kind::dirty,          problem_kind::lost_clusters, problem_kind::free_count_wrong,
            problem_kind::chain_too_long, problem_kind::fats_differ,   problem_kind::orphan_long_name};
        memory_device device(image);
        const auto report = check(device).value();
        for (const problem& each : report.problems) {
            if (each.weight() == severity::unusual or harmless.contains(each.kind) or
                what().allowed.contains(each.kind))
                continue;
            FAIL() << where << ": " << each.path << ": " << each.message();
        }
        const auto shape = read_geometry(device).value();
        const simulated_clock clock;
        const auto fs = file_system::mount(device, shape, clock, {.is_read_only = true}).value();
        EXPECT_EQ(content_of(*fs, "kept"), text(3000, 'k')) << where;
        const std::string wrong = what().judge(*fs);
        ASSERT_EQ(wrong, "") << where;
        if (how().has_fsck_for_all) judge_by_fsck(image, where);
    }
    // Any of the writes from `durable` to `end` may be missing.
    void judge_draws(const std::vector<std::byte>& image, std::span<const sector_write> since,
                     const std::string& where) {
        for (int draw = 0; draw < how().draws; ++draw) {
            std::vector<std::byte> torn = image;
            for (const sector_write& each : since)
                if (random_.below(2) == 0) apply(torn, each);
            judge(torn, "some of " + where);
            if (HasFatalFailure()) return;
            if (draw == 0 and ++barriers_ % how().barriers_per_fsck == first_fsck())
                judge_by_fsck(torn, "some of " + where);
            if (HasFatalFailure()) return;
        }
    }

    // A different barrier in each scenario.
    [[nodiscard]] std::size_t first_fsck() const {
        return std::min(how().barriers_per_fsck - 1, 1 + std::get<0>(GetParam()) % 6);
    }

    std::size_t barriers_ = 0;
    seeded_random random_{std::get<0>(GetParam())};
};

TEST_P(crash, at_any_moment_causes_at_worst_lost_clusters) {
    mounted_image made(formatted(on().kibibytes, on().options));
    prepare(*made.system);
    made.system.reset();
    std::vector<std::byte> image(made.image.bytes().begin(), made.image.bytes().end());
    recording_device recorded(made.image);
    const simulated_clock clock;
    auto fs = file_system::mount(recorded, made.shape, clock, {.mode = mode()}).value();
    what().act(*fs);
    ASSERT_EQ(code(fs->commit()), 0);
    ASSERT_GT(sectors_of(recorded).size(), 2U);
    ASSERT_EQ(code(fs->unmount()), 0);
    fs.reset();

    const auto writes = sectors_of(recorded);
    const std::size_t stride = 1 + writes.size() / how().moments;
    const auto barriers = std::ranges::count_if(writes, [](const auto& each) { return each.bytes.empty(); });
    const std::size_t barrier_stride = 1 + static_cast<std::size_t>(barriers) / how().barriers;
    std::size_t durable = 0;  // all earlier writes have reached the disk
    std::size_t passed = 0;
    for (std::size_t i = 0; i <= writes.size(); ++i) {
        if (i != writes.size() and not writes[i].bytes.empty()) continue;
        const bool is_chosen = passed++ % barrier_stride == 0;
        const auto since = std::span(writes).subspan(durable, i - durable);
        if (is_chosen) judge_draws(image, since, std::to_string(durable) + " to " + std::to_string(i));
        for (std::size_t j = durable; j < i and not HasFatalFailure(); ++j) {
            apply(image, writes[j]);
            if (j % stride == 0 or (is_chosen and j + 1 == i))
                judge(image, "the first " + std::to_string(j + 1));
        }
        if (HasFatalFailure()) return;
        durable = i + 1;
    }
    EXPECT_TRUE(fsck(image).is_clean) << fsck(image).said;
}

std::string crash_name(const testing::TestParamInfo<crash::ParamType>& each) {
    const bool is_sync = std::get<1>(each.param) == write_mode::sync;
    return std::string(scenarios()[std::get<0>(each.param)].name) + (is_sync ? "_sync_" : "_ordered_") +
           formats[std::get<2>(each.param)].name;
}
INSTANTIATE_TEST_SUITE_P(of, crash,
                         testing::Combine(testing::Range<std::size_t>(0, scenarios().size()),
                                          testing::Values(write_mode::ordered, write_mode::sync),
                                          testing::Range<std::size_t>(0, formats.size())),
                         crash_name);

// A volume whose changes go to an overlay. After a crash, the image seen through the overlay is in
// a state that the image itself could have had; the image is not changed.
class crash_of_an_overlay : public crash {
protected:
    // Returns the image as seen through an overlay with this content.
    static std::vector<std::byte> seen_through(const std::vector<std::byte>& store, device& image) {
        memory_device left(store);
        const auto overlay = overlay_device::open(image, left, left.size_bytes());
        std::vector<std::byte> all(static_cast<std::size_t>(image.size_bytes()));
        EXPECT_TRUE(overlay) << overlay.error();
        if (overlay) EXPECT_EQ(code((*overlay)->read_at(0, std::span(all))), 0);
        return all;
    }
};

TEST_P(crash_of_an_overlay, has_a_state_that_a_crash_of_the_image_could_have) {
    mounted_image made(formatted(on().kibibytes, on().options));
    prepare(*made.system);
    made.system.reset();
    const std::vector<std::byte> untouched(made.image.bytes().begin(), made.image.bytes().end());
    memory_device store(std::vector<std::byte>(
        static_cast<std::size_t>(overlay_layout::for_image(untouched.size()).store_bytes())));
    ASSERT_EQ(code(overlay_device::format(made.image, store, 0, {})), 0);
    std::vector<std::byte> disk(store.bytes().begin(), store.bytes().end());
    recording_device recorded(store);
    const auto overlay = overlay_device::open(made.image, recorded, store.size_bytes()).value();
    const simulated_clock clock;
    auto fs = file_system::mount(*overlay, made.shape, clock, {.mode = mode()}).value();
    what().act(*fs);
    ASSERT_EQ(code(fs->unmount()), 0);
    fs.reset();

    const auto writes = sectors_of(recorded);
    const std::size_t stride = 1 + writes.size() / how().moments;
    std::size_t durable = 0;
    for (std::size_t i = 0; i <= writes.size(); ++i) {
        if (i != writes.size() and not writes[i].bytes.empty()) continue;
        const std::string where = std::to_string(durable) + " to " + std::to_string(i);
        std::vector<std::byte> torn = disk;
        for (std::size_t j = durable; j < i; ++j)
            if (random_.below(2) == 0) apply(torn, writes[j]);
        judge(seen_through(torn, made.image), "some of " + where);
        for (std::size_t j = durable; j < i and not HasFatalFailure(); ++j) {
            apply(disk, writes[j]);
            if (j % stride == 0) judge(seen_through(disk, made.image), "the first " + std::to_string(j + 1));
        }
        if (HasFatalFailure()) return;
        durable = i + 1;
    }
    EXPECT_TRUE(fsck(seen_through(disk, made.image)).is_clean);
    EXPECT_TRUE(std::ranges::equal(made.image.bytes(), untouched));
}
INSTANTIATE_TEST_SUITE_P(of, crash_of_an_overlay,
                         testing::Combine(testing::Range<std::size_t>(0, scenarios().size()),
                                          testing::Values(write_mode::ordered), testing::Values(0U)),
                         crash_name);

}  // namespace
}  // namespace sluice::fat
