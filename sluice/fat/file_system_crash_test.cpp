#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "sluice/base/random.hpp"
#include "sluice/fat/check.hpp"
#include "sluice/fat/image_testing.hpp"
#include "sluice/fat/recording_device.hpp"

// What a crash may leave. Every write of an operation and its commit is recorded; then the volume is made as
// a crash might have left it, after each write and with any of the sectors since the last barrier missing,
// and judged: at worst lost clusters, chains longer than their files, and the two names of a file on its way.

namespace sluice::fat {
namespace {

constexpr std::size_t sector_bytes = 512;

struct scenario {
    const char* name;
    std::function<void(file_system&)> act;
    // What is wrong with the names and contents after a crash; empty if nothing.
    std::function<std::string(file_system&)> judge;
    std::set<problem_kind> allowed{};
};

std::string text(std::size_t bytes, char what) {
    return std::string(bytes, what);
}

void prepare(file_system& fs) {
    for (const char* path : {"d", "d/sub", "e"})
        EXPECT_EQ(code(fs.create(path, true, attributes::none)), 0);
    put(fs, "kept", text(3000, 'k'));
    put(fs, "d/A name that is long enough for slots.text", text(5000, 'a'));
    put(fs, "e/target", text(4000, 't'));
    for (int i = 0; i < 20; ++i)
        put(fs, "e/filler " + std::to_string(i), text(600, 'f'));
    EXPECT_EQ(code(fs.commit()), 0);
}

constexpr const char* long_path = "d/A name that is long enough for slots.text";

std::string is_one_of(file_system& fs, std::string_view path, std::initializer_list<std::string> contents) {
    const std::string found = content_of(fs, path);
    for (const std::string& each : contents)
        if (found == each) return {};
    return std::string(path) + " has " + std::to_string(found.size()) + " bytes: " + found.substr(0, 20);
}

item_handle at(file_system& fs, std::string_view path) {
    auto found = fs.find(path);
    EXPECT_EQ(code(found), 0) << path;
    return std::move(*found);
}

void write_at(file_system& fs, std::string_view path, const std::string& what, std::uint64_t offset) {
    run_list::hint hint;
    EXPECT_EQ(code(fs.write(*at(fs, path), hint, std::as_bytes(std::span(what)), offset)), 0);
}

const std::vector<scenario>& scenarios() {
    static const std::vector<scenario> all{
        {"create", [](file_system& fs) { put(fs, "d/new file with a long name.text", text(5000, 'n')); },
         [](file_system& fs) {
             return is_one_of(fs, "d/new file with a long name.text", {"(missing)", text(5000, 'n')});
         }},
        {"append", [](file_system& fs) { write_at(fs, long_path, text(5000, 'b'), 5000); },
         [](file_system& fs) {
             return is_one_of(fs, long_path, {text(5000, 'a'), text(5000, 'a') + text(5000, 'b')});
         }},
        {"rewrite", [](file_system& fs) { put(fs, long_path, text(7000, 'r')); },
         [](file_system& fs) { return is_one_of(fs, long_path, {text(5000, 'a'), text(7000, 'r')}); }},
        {"shorten_and_lengthen",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.truncate(*at(fs, long_path), 2000)), 0);
             put(fs, "other", text(9000, 'o'));
             write_at(fs, long_path, text(6000, 'l'), 2000);
         },
         [](file_system& fs) {
             const std::string found = content_of(fs, long_path);
             return found.starts_with(text(2000, 'a'))
                        ? ""
                        : "the part that stayed is gone: " + found.substr(0, 20);
         }},
        {"lengthen_far", [](file_system& fs) { EXPECT_EQ(code(fs.truncate(*at(fs, long_path), 60'000)), 0); },
         [](file_system& fs) {
             const std::string found = content_of(fs, long_path);
             return found.starts_with(text(5000, 'a')) and found.find_first_not_of('\0', 5000) == found.npos
                        ? ""
                        : "old bytes of the disk show";
         }},
        {"remove", [](file_system& fs) { EXPECT_EQ(code(fs.remove(*at(fs, long_path))), 0); },
         [](file_system& fs) { return is_one_of(fs, long_path, {"(missing)", text(5000, 'a')}); }},
        {"remove_and_reuse",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.remove(*at(fs, long_path))), 0);
             put(fs, long_path, text(300'000, 'R'));
         },
         [](file_system& fs) {
             return is_one_of(fs, long_path, {"(missing)", text(5000, 'a'), text(300'000, 'R')});
         }},
        {"rename_elsewhere",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.rename(*at(fs, long_path), "e/another name of many letters",
                                      file_system::if_taken::refuse)),
                       0);
         },
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
         [](file_system& fs) {
             EXPECT_EQ(code(fs.rename(*at(fs, "d"), "e/d moved", file_system::if_taken::refuse)), 0);
         },
         [](file_system& fs) {
             const std::string before = is_one_of(fs, long_path, {text(5000, 'a')});
             return before.empty() ? before
                                   : is_one_of(fs, "e/d moved/A name that is long enough for slots.text",
                                               {text(5000, 'a')});
         },
         {problem_kind::cross_link, problem_kind::dot_wrong}},
        {"rename_case",
         [](file_system& fs) {
             EXPECT_EQ(code(fs.rename(*at(fs, long_path), "d/a NAME that is long enough for slots.TEXT",
                                      file_system::if_taken::refuse)),
                       0);
         },
         [](file_system& fs) { return is_one_of(fs, long_path, {text(5000, 'a')}); }},
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
                                              {"(missing)", text(10, 'v')});
                 if (not found.empty()) return found;
             }
             // Under its short name only, a file would have lost its name.
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
    return all;
}

// Sectors written, in order; barriers are empty.
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

class crash : public testing::TestWithParam<std::tuple<std::size_t, write_mode>> {
protected:
    const scenario& what() const { return scenarios()[std::get<0>(GetParam())]; }

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
    }
};

TEST_P(crash, at_any_moment_leaves_at_worst_lost_clusters) {
    mounted_image made(formatted(2200, "-F 16 -s 1"));
    prepare(*made.system);
    made.system.reset();
    std::vector<std::byte> before(made.image.bytes().begin(), made.image.bytes().end());
    recording_device recorded(made.image);
    const simulated_clock clock;
    auto fs = file_system::mount(recorded, made.shape, clock, {.mode = std::get<1>(GetParam())}).value();
    what().act(*fs);
    ASSERT_EQ(code(fs->commit()), 0);
    const std::size_t committed = sectors_of(recorded).size();
    ASSERT_EQ(code(fs->unmount()), 0);
    fs.reset();

    const auto writes = sectors_of(recorded);
    ASSERT_GT(committed, 4U);
    seeded_random random(std::get<0>(GetParam()));
    std::size_t durable = 0;  // all before has reached the disk
    std::vector<std::byte> image = before;
    for (std::size_t i = 0; i <= writes.size(); ++i) {
        if (i == writes.size() or writes[i].bytes.empty()) {
            // Any of those since the last barrier may be missing.
            for (int round = 0; round < 12; ++round) {
                std::vector<std::byte> torn = image;
                for (std::size_t j = durable; j < i; ++j)
                    if (random.below(2) == 0) apply(torn, writes[j]);
                judge(torn, "some of " + std::to_string(durable) + " to " + std::to_string(i));
                if (HasFatalFailure()) return;
            }
            for (std::size_t j = durable; j < i; ++j) {
                apply(image, writes[j]);
                judge(image, "the first " + std::to_string(j + 1));
                if (HasFatalFailure()) return;
            }
            durable = i + 1;
        }
    }
    EXPECT_TRUE(fsck(image).is_clean) << fsck(image).said;
}

std::string crash_name(const testing::TestParamInfo<std::tuple<std::size_t, write_mode>>& each) {
    const bool is_sync = std::get<1>(each.param) == write_mode::sync;
    return std::string(scenarios()[std::get<0>(each.param)].name) + (is_sync ? "_sync" : "_ordered");
}
INSTANTIATE_TEST_SUITE_P(of, crash,
                         testing::Combine(testing::Range<std::size_t>(0, scenarios().size()),
                                          testing::Values(write_mode::ordered, write_mode::sync)),
                         crash_name);

}  // namespace
}  // namespace sluice::fat
