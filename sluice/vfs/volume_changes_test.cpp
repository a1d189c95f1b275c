#include <gmock/gmock.h>

#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/volume_testing.hpp"

// The contract of change feeds, for every kind of volume.

namespace sluice::vfs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class recorder final : public change_listener {
public:
    void changed(const change& what) noexcept override {
        static constexpr const char* marks[] = {"+", "-", "~", "@", "<", ">"};
        std::string line = marks[static_cast<int>(what.kind)];
        line += what.path;
        if (what.is_directory) line += '/';
        // The number of reports for changes of content is not part of the contract.
        if (lines.empty() or lines.back() != line) lines.push_back(line);
        if (drops_on == line) dropped->reset();
    }
    void overflowed() noexcept override { ++overflows; }
    void ended() noexcept override { has_ended = true; }
    [[nodiscard]] bool needs_no_changes() const noexcept override { return is_satisfied; }

    bool is_satisfied = false;
    std::vector<std::string> lines;
    int overflows = 0;
    bool has_ended = false;
    std::string drops_on{};
    std::unique_ptr<change_watch>* dropped = nullptr;
};

class volume_changes : public volume_test {
protected:
    volume_changes() { feeding_.spawn(on().changes()->run()); }
    ~volume_changes() override {
        feeding_.cancel();
        io::sync_wait(*multiplexer_, joined(feeding_));
    }
    static io::task<void> joined(io::task_group& group) { co_await group.join(); }

    [[nodiscard]] std::unique_ptr<change_watch> watch(std::string_view path, bool recursive, recorder& by) {
        auto made = on().changes()->watch(*at(path), recursive, by);
        EXPECT_EQ(code(made), 0);
        return std::move(*made);
    }
    // Delivers all changes so far.
    void deliver_changes() {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
        while (std::chrono::steady_clock::now() < until)
            multiplexer_->try_run_for(std::chrono::milliseconds(5));
    }

    io::task_group feeding_{*multiplexer_};
};
SLUICE_TEST_EVERY_VOLUME(volume_changes);

TEST_P(volume_changes, created_renamed_and_removed_names_are_reported_in_order) {
    recorder seen;
    const auto held = watch("", false, seen);
    const auto file = make_file("f");
    ASSERT_EQ(code(file->names()->rename("g", when_taken::refuse)), 0);
    ASSERT_EQ(code(file->names()->remove()), 0);
    make_directory("d");
    EXPECT_THAT(seen.lines, IsEmpty()) << "a call must not report changes directly";
    deliver_changes();
    std::erase_if(seen.lines, [](const auto& line) { return line.starts_with('@'); });
    EXPECT_THAT(seen.lines, ElementsAre("+f", "<f", ">g", "-g", "+d/"));
}

TEST_P(volume_changes, a_listener_that_needs_none_gets_none_and_others_get_all) {
    recorder satisfied;
    satisfied.is_satisfied = true;
    recorder seen;
    const auto one = watch("", true, satisfied);
    const auto other = watch("", true, seen);
    make_directory("d");
    deliver_changes();
    make_directory("d/below");
    deliver_changes();
    EXPECT_THAT(satisfied.lines, IsEmpty());
    EXPECT_THAT(seen.lines, Contains("+d/below/"));
    satisfied.is_satisfied = false;
    make_directory("d/later");
    deliver_changes();
    EXPECT_THAT(satisfied.lines, Contains("+d/later/")) << "directories are followed in between";
}

TEST_P(volume_changes, changes_of_content_and_attributes_are_distinguished) {
    const auto file = make_file("f");
    recorder seen;
    const auto held = watch("", false, seen);
    ASSERT_EQ(code(file->data()->open_data(writes)), 0);
    ASSERT_EQ(code(write(*file, "x")), 0);
    deliver_changes();
    EXPECT_THAT(seen.lines, Contains("~f"));
    EXPECT_THAT(seen.lines, Not(Contains("@f")));
    seen.lines.clear();
    ASSERT_EQ(code(file->change({.dos = dos_attributes::hidden})), 0);
    deliver_changes();
    EXPECT_THAT(seen.lines, ElementsAre("@f"));
}

TEST_P(volume_changes, changes_of_streams_are_changes_of_attributes) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f");
    recorder seen;
    const auto held = watch("", true, seen);
    const auto stream = file->attached()->open_stream({.name = "s", .create = true}).value();
    ASSERT_EQ(code(stream->data()->open_data(writes)), 0);
    for (const std::size_t bytes : {std::size_t{10}, std::size_t{100'000}, std::size_t{200'000}}) {
        deliver_changes();
        seen.lines.clear();
        ASSERT_EQ(code(write(*stream, std::string(bytes, 'x'))), 0);
        deliver_changes();
        EXPECT_THAT(seen.lines, ElementsAre("@f")) << bytes;
    }
    seen.lines.clear();
    ASSERT_EQ(code(stream->names()->remove()), 0);
    deliver_changes();
    EXPECT_THAT(seen.lines, ElementsAre("@f"));
}

TEST_P(volume_changes, initial_attributes_of_a_file_are_not_a_change_and_later_ones_are) {
    recorder seen;
    const auto held = watch("", false, seen);
    const auto file = make_file("f");
    ASSERT_EQ(code(file->change({.dos = dos_attributes::hidden})), 0);
    deliver_changes();
    EXPECT_THAT(seen.lines, ElementsAre("+f"));
    ASSERT_EQ(code(file->change({.dos = dos_attributes::system})), 0);
    deliver_changes();
    EXPECT_THAT(seen.lines, ElementsAre("+f", "@f"));
}

TEST_P(volume_changes, a_plain_watch_sees_its_own_directory_only) {
    make_directory("d");
    recorder seen;
    const auto held = watch("", false, seen);
    make_file("d/f");
    make_directory("d/e");
    deliver_changes();
    std::erase_if(seen.lines, [](const auto& line) { return line == "~d/" or line == "@d/"; });
    EXPECT_THAT(seen.lines, IsEmpty());
}

TEST_P(volume_changes, a_recursive_watch_sees_all_levels_and_new_directories) {
    make_directory("a");
    make_directory("a/b");
    recorder seen;
    const auto held = watch("", true, seen);
    make_file("a/b/f");
    make_directory("a/n");
    deliver_changes();
    make_file("a/n/g");
    deliver_changes();
    for (const char* line : {"+a/b/f", "+a/n/", "+a/n/g"})
        EXPECT_THAT(seen.lines, Contains(line));
    seen.lines.clear();
    ASSERT_EQ(code(at("a")->names()->rename("z", when_taken::refuse)), 0);
    deliver_changes();
    make_file("z/n/h");
    deliver_changes();
    EXPECT_THAT(seen.lines, Contains("<a/"));
    EXPECT_THAT(seen.lines, Contains(">z/"));
    EXPECT_THAT(seen.lines, Contains("+z/n/h"));
}

TEST_P(volume_changes, files_created_immediately_in_a_new_directory_are_reported) {
    recorder seen;
    const auto held = watch("", true, seen);
    make_directory("n");
    make_directory("n/m");
    make_file("n/m/f");
    deliver_changes();
    for (const char* line : {"+n/", "+n/m/", "+n/m/f"})
        EXPECT_THAT(seen.lines, Contains(line));
}

TEST_P(volume_changes, moves_across_the_border_of_a_watch_are_additions_and_removals) {
    make_directory("in");
    make_directory("out");
    const auto file = make_file("out/f");
    const auto directory = make_directory("out/d");
    recorder seen;
    const auto held = watch("in", true, seen);
    ASSERT_EQ(code(file->names()->rename("in/f", when_taken::refuse)), 0);
    ASSERT_EQ(code(directory->names()->rename("in/d", when_taken::refuse)), 0);
    deliver_changes();
    make_file("in/d/x");
    deliver_changes();
    ASSERT_EQ(code(file->names()->rename("out/f", when_taken::refuse)), 0);
    ASSERT_EQ(code(directory->names()->rename("out/d", when_taken::refuse)), 0);
    deliver_changes();
    make_file("out/d/unseen");
    deliver_changes();
    std::erase_if(seen.lines,
                  [](const auto& line) { return line.starts_with('~') or line.starts_with('@'); });
    EXPECT_THAT(seen.lines, ElementsAre("+f", "+d/", "+d/x", "-f", "-d/"));
}

TEST_P(volume_changes, several_watches_of_one_directory_get_all_changes) {
    make_directory("d");
    recorder outer;
    recorder inner;
    const auto all = watch("", true, outer);
    auto plain = watch("d", false, inner);
    make_file("d/f");
    deliver_changes();
    EXPECT_THAT(outer.lines, Contains("+d/f"));
    EXPECT_THAT(inner.lines, Contains("+f"));
    plain.reset();
    make_file("d/g");
    deliver_changes();
    EXPECT_THAT(outer.lines, Contains("+d/g"));
    EXPECT_THAT(inner.lines, Not(Contains("+g")));
}

TEST_P(volume_changes, a_listener_may_end_its_watch_during_its_call) {
    recorder seen;
    auto held = watch("", true, seen);
    seen.drops_on = "+f";
    seen.dropped = &held;
    make_file("f");
    make_file("g");
    deliver_changes();
    EXPECT_EQ(held, nullptr);
    EXPECT_THAT(seen.lines, ElementsAre("+f"));
}

TEST_P(volume_changes, a_watch_ends_with_its_directory) {
    recorder seen;
    auto directory = make_directory("d");
    const auto held = watch("d", false, seen);
    ASSERT_EQ(code(directory->names()->remove()), 0);
    directory.reset();
    deliver_changes();
    // On a host, the kernel reports this after the last descriptor, including the watch's, is
    // closed: see host_change_feed.hpp.
    if (const std::string_view name = GetParam().name; not name.contains("disk") and name != "tmpfs")
        EXPECT_TRUE(seen.has_ended);
    EXPECT_EQ(code(on().changes()->watch(*make_file("f"), false, seen)), ENOTDIR);
}

}  // namespace
}  // namespace sluice::vfs
