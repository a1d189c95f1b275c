// Streams of copied files, and the removal of all large streams of a file.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_testing.hpp"
#include "sluice/vfs/host/stream/traced_process_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class stream_copies : public stream_test {
protected:
    [[nodiscard]] static result<void> write_now(node& to, std::string_view text, std::uint64_t offset = 0) {
        return to.data()->write_here(std::as_bytes(std::span(text)), offset);
    }
    [[nodiscard]] result<void> remove_all_large(const std::string& name) {
        return stream_store(volume->tree())
            .remove_all_large(io::file_handle::open({}, scratch.path_of(name), io::mode::write).value());
    }
};

TEST_F(stream_copies, are_made_before_others_have_to_wait_for_a_lock) {
    put("f", "s", large);
    copy_reference("f", "g");
    const int store = ::open(scratch.path_of(".sluice-streams").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(store, LOCK_EX), 0);
    const auto one = stream("g", "s");
    std::jthread writer([&] { EXPECT_EQ(code(write_now(*one, "changed")), 0); });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (stored().size() != 2 and std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THAT(stored(), ElementsAre("=s", "=s"));
    EXPECT_EQ(content("g", "s"), large) << "it still refers to those of the original";
    ::close(store);
    writer.join();
    EXPECT_EQ(content("g", "s"), "changed" + large.substr(7));
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_copies, are_thrown_away_if_another_process_was_faster) {
    put("f", "s", large);
    copy_reference("f", "g");
    const int store = ::open(scratch.path_of(".sluice-streams").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(store, LOCK_EX), 0);
    {
        const auto one = stream("g", "s");
        const auto other = stream("g", "s");
        const std::jthread first([&] { EXPECT_EQ(code(write_now(*one, "ch")), 0); });
        const std::jthread second([&] { EXPECT_EQ(code(write_now(*other, "anged", 2)), 0); });
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (stored().size() < 3 and std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ::close(store);
    }
    EXPECT_EQ(content("g", "s"), "changed" + large.substr(7));
    EXPECT_THAT(stored(), ElementsAre("=s", "=s"));
}

// Otherwise, no quota would apply to them.
TEST_F(stream_copies, are_written_with_the_identity_of_the_account) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can have another identity";
    const auto account = account_identity::create({.user_id = 12345, .group_id = 12345}).value();
    const auto give = [&](const std::string& name) {
        ASSERT_EQ(::chown(scratch.path_of(name).c_str(), 12345, 12345), 0);
    };
    give("f");
    put("f", "s", large);
    copy_reference("f", "g");
    give("g");
    const auto one = stream("g", "s");
    const auto child = traced_process::start([&] {
        const account_identity::use now(*account);
        EXPECT_EQ(code(write_now(*one, "changed")), 0);
    });
    if (child == nullptr) GTEST_SKIP() << "this sandbox does not let processes be traced";
    std::set<std::string> writers;
    while (child->run_to_call()) {
        const long call = child->call();
        if (call != SYS_copy_file_range and call != SYS_ftruncate and call != SYS_pwrite64) continue;
        std::ifstream status("/proc/" + std::to_string(child->id()) + "/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("Uid:")) writers.insert(line.substr(line.rfind('\t') + 1));
    }
    EXPECT_THAT(writers, ElementsAre("12345"));
    EXPECT_EQ(content("g", "s"), "changed" + large.substr(7));
}

// --- removal of all

TEST_F(stream_copies, are_removed_in_one_pass_with_those_that_are_left_over) {
    put("f", "s", large);
    put("f", "t", large);
    put("f", "small", "attribute");
    const fs::path directory = directory_of("f");
    std::ofstream(directory / "=SMALL") << "left over";
    ASSERT_EQ(code(remove_all_large("f")), 0);
    EXPECT_THAT(streams("f"), ElementsAre("small 9"));
    EXPECT_EQ(content("f", "small"), "attribute");
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_EQ(code(remove_all_large("f")), 0) << "there are none";
    put("f", "s", large);
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_copies, are_removed_without_those_of_the_original) {
    put("f", "s", large);
    copy_reference("f", "g");
    ASSERT_EQ(code(remove_all_large("g")), 0);
    EXPECT_THAT(streams("g"), IsEmpty());
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_THAT(stored(), ElementsAre("=s"));
    if (::geteuid() != 0) return;
    copy_reference("f", "foreign");
    ASSERT_EQ(::chown(scratch.path_of("foreign").c_str(), 12345, 12345), 0);
    EXPECT_EQ(code(remove_all_large("foreign")), 0);
    EXPECT_EQ(content("f", "s"), large);
}

}  // namespace
}  // namespace sluice::vfs
