// A process that changes streams is killed before each of its system calls, one after the other.
// Whatever it has done by then, the next process finds each stream as it was before the change or
// as it is after it.

#include <functional>

#include "sluice/vfs/host/host_walk.hpp"
#include "sluice/vfs/host/stream/stream_check.hpp"
#include "sluice/vfs/host/stream/stream_testing.hpp"
#include "sluice/vfs/host/stream/traced_process_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

// In memory, because each state is made again for each call.
class stream_steps : public stream_test {
protected:
    stream_steps() : stream_test("/dev/shm") {}

    using action = std::function<void()>;

    enum class ending : std::uint8_t { killed, completed, not_traced };

    // Runs `change` in a child, and kills it at its system call number `calls`.
    ending run(const action& change, unsigned calls) {
        const auto process = traced_process::start(change, [&] { reopen(); });
        if (process == nullptr) return ending::not_traced;
        for (unsigned begun = 0; begun != calls + 1; ++begun)
            if (not process->run_to_call()) return ending::completed;
        return ending::killed;
    }

    // `prepare` creates the state before the change, and `judge` examines the one after a kill.
    // Then the change is repeated, which must succeed, and `judge_end` examines the result.
    struct scenario {
        action prepare;
        action change;
        action judge;
        action judge_end;
    };
    void run_all(const scenario& what) {
        unsigned killed = 0;
        for (unsigned calls = 0;; ++calls) {
            SCOPED_TRACE("killed at call " + std::to_string(calls));
            volume.reset();
            fs::remove_all(scratch.path_of(".sluice-streams"));
            fs::remove(scratch.path_of("f"));
            fs::remove(scratch.path_of("g"));
            scratch.write("f", "main");
            reopen();
            what.prepare();
            const ending ended = run(what.change, calls);
            if (ended == ending::not_traced) GTEST_SKIP() << "this sandbox does not let processes be traced";
            reopen();
            if (ended == ending::killed) {
                ++killed;
                what.judge();
                what.change();
            }
            what.judge_end();
            if (ended == ending::completed or HasFailure()) break;
        }
        EXPECT_GE(killed, 10U) << "the process has made fewer calls than expected";
    }
    // As write() and put(), but on this thread: another one would not be stopped, nor exist in a
    // child.
    [[nodiscard]] static result<void> write_now(node& to, std::string_view text, std::uint64_t offset = 0) {
        return to.data()->write_here(std::as_bytes(std::span(text)), offset);
    }
    void put_now(std::string_view path, std::string_view name, std::string_view text) {
        EXPECT_EQ(code(write_now(*stream(path, name), text)), 0) << name;
    }
    // Removes everything that interrupted changes have left, and returns the names of the files in
    // the store.
    std::vector<std::string> stored_after_repair() {
        for (int i = 0; i != 2; ++i) {
            stream_check check(*volume, {.repairs = true, .now = time_point(std::chrono::days(100'000))},
                               [](const std::string&) {});
            const auto done = check.run();
            EXPECT_EQ(code(done), 0);
            EXPECT_EQ(done->failed, 0U);
        }
        EXPECT_THAT(lost(), IsEmpty());
        return stored();
    }

    const std::string small = std::string(600, 's');
};

TEST_F(stream_steps, lose_nothing_when_a_stream_grows_for_the_first_time) {
    run_all({.prepare = [&] { put_now("f", "s", small); },
             .change = [&] { EXPECT_EQ(code(write_now(*stream("f", "s"), large, 100)), 0); },
             .judge =
                 [&] {
                     const std::string found = content("f", "s");
                     EXPECT_TRUE(found == small or found == small.substr(0, 100) + large) << found.size();
                     EXPECT_EQ(streams("f").size(), 1U);
                 },
             .judge_end =
                 [&] {
                     EXPECT_EQ(content("f", "s"), small.substr(0, 100) + large);
                     EXPECT_THAT(stored_after_repair(), ElementsAre("=s"));
                 }});
}

TEST_F(stream_steps, leave_a_removed_stream_whole_or_not_at_all) {
    run_all({.prepare = [&] { put_now("f", "s", large); },
             .change = [&] { (void)stream("f", "s")->names()->remove(); },
             .judge =
                 [&] {
                     const std::string found = content("f", "s");
                     EXPECT_TRUE(found == large or found == "error " + std::to_string(ENOENT))
                         << found.size();
                 },
             .judge_end =
                 [&] {
                     EXPECT_THAT(streams("f"), IsEmpty());
                     EXPECT_THAT(stored_after_repair(), IsEmpty());
                 }});
}

TEST_F(stream_steps, keep_the_stream_that_is_renamed_over_another) {
    for (const std::string& source : {small, large}) {
        for (const std::string& target : {std::string(300, 't'), std::string(9000, 't')}) {
            SCOPED_TRACE(std::to_string(source.size()) + " over " + std::to_string(target.size()));
            run_all({.prepare =
                         [&] {
                             put_now("f", "other", large);
                             put_now("f", "from", source);
                             put_now("f", "To", target);
                         },
                     .change =
                         [&] {
                             const auto from = at("f")->attached()->open_stream({.name = "from"});
                             if (from)
                                 EXPECT_EQ(code((*from)->names()->rename("to", when_taken::replace)), 0);
                         },
                     .judge =
                         [&] {
                             const std::string from = content("f", "from");
                             const std::string to = content("f", "to");
                             EXPECT_TRUE(from == source or to == source) << "the renamed stream is lost";
                             EXPECT_THAT(to, AnyOf(source, target, "error " + std::to_string(ENOENT)));
                         },
                     .judge_end =
                         [&] {
                             EXPECT_EQ(content("f", "to"), source);
                             EXPECT_EQ(content("f", "other"), large);
                             EXPECT_EQ(streams("f").size(), 2U);
                         }});
        }
    }
}

TEST_F(stream_steps, leave_at_most_streams_that_a_repair_finds_when_a_file_is_removed) {
    run_all({.prepare = [&] { put_now("f", "s", large); },
             .change =
                 [&] {
                     const auto file = volume->find("f", follow_links::yes);
                     if (file) EXPECT_EQ(code((*file)->names()->remove()), 0);
                 },
             .judge =
                 [&] {
                     if (scratch.exists("f")) EXPECT_EQ(content("f", "s"), large);
                 },
             .judge_end = [&] { EXPECT_THAT(stored_after_repair(), IsEmpty()); }});
}

TEST_F(stream_steps, keep_the_streams_of_a_file_that_replaces_another) {
    run_all({.prepare =
                 [&] {
                     scratch.write("g", "");
                     put_now("f", "of f", large);
                     put_now("g", "of g", large);
                 },
             .change =
                 [&] {
                     const auto file = volume->find("g", follow_links::yes);
                     if (file) EXPECT_EQ(code((*file)->names()->rename("f", when_taken::replace)), 0);
                 },
             .judge =
                 [&] {
                     EXPECT_EQ(content(scratch.exists("g") ? "g" : "f", "of g"), large);
                     if (scratch.exists("g")) EXPECT_EQ(content("f", "of f"), large);
                 },
             .judge_end =
                 [&] {
                     EXPECT_EQ(content("f", "of g"), large);
                     EXPECT_THAT(stored_after_repair(), ElementsAre("=of g"));
                 }});
}

TEST_F(stream_steps, keep_streams_that_move_to_the_store_at_the_top) {
    run_all({.prepare =
                 [&] {
                     fs::remove_all(scratch.path_of("inner"));
                     fs::create_directory(scratch.path_of("inner"));
                     scratch.write("inner/g", "");
                     const auto inner = host_volume::open(*multiplexer, scratch.path_of("inner")).value();
                     const auto file = inner->find("g", follow_links::yes).value();
                     const auto one = file->attached()->open_stream({.name = "s", .create = true}).value();
                     ASSERT_EQ(code(one->data()->open_data(both)), 0);
                     ASSERT_EQ(code(write_now(*one, large)), 0);
                 },
             .change = [&] { EXPECT_EQ(streams("inner/g").size(), 1U); },
             .judge = [&] { EXPECT_EQ(content("inner/g", "s"), large); },
             .judge_end =
                 [&] {
                     fs::rename(scratch.path_of("inner/g"), scratch.path_of("g"));
                     EXPECT_EQ(content("g", "s"), large);
                     EXPECT_THAT(stored_after_repair(), ElementsAre("=s"));
                 }});
}

TEST_F(stream_steps, leave_each_stream_whole_or_not_at_all_when_all_are_removed) {
    run_all({.prepare =
                 [&] {
                     put_now("f", "s", large);
                     put_now("f", "t", large);
                 },
             .change =
                 [&] {
                     const auto file =
                         io::file_handle::open({}, scratch.path_of("f"), io::mode::write).value();
                     EXPECT_EQ(code(stream_store(volume->tree()).remove_all_large(file)), 0);
                 },
             .judge =
                 [&] {
                     for (const char* name : {"s", "t"})
                         EXPECT_THAT(content("f", name), AnyOf(large, "error " + std::to_string(ENOENT)));
                 },
             .judge_end =
                 [&] {
                     EXPECT_THAT(streams("f"), IsEmpty());
                     EXPECT_THAT(stored_after_repair(), IsEmpty());
                 }});
}

TEST_F(stream_steps, change_no_original_when_a_copy_is_changed_first) {
    run_all({.prepare =
                 [&] {
                     put_now("f", "s", large);
                     scratch.write("g", "");
                     const auto file = io::file_handle::open({}, scratch.path_of("f")).value();
                     const auto copy =
                         io::file_handle::open({}, scratch.path_of("g"), io::mode::write).value();
                     ASSERT_TRUE(store_stream_record(copy, load_stream_record(file).value().value(),
                                                     record_storing::only_if_none));
                 },
             .change = [&] { EXPECT_EQ(code(write_now(*stream("g", "s"), "changed")), 0); },
             .judge =
                 [&] {
                     EXPECT_EQ(content("f", "s"), large);
                     EXPECT_THAT(content("g", "s"), AnyOf(large, "changed" + large.substr(7)));
                 },
             .judge_end =
                 [&] {
                     EXPECT_EQ(content("f", "s"), large);
                     EXPECT_EQ(content("g", "s"), "changed" + large.substr(7));
                     EXPECT_THAT(stored_after_repair(), ElementsAre("=s", "=s"));
                 }});
}

}  // namespace
}  // namespace sluice::vfs
