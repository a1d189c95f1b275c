#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/asking_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

// Clients on threads of their own change the same names of a directory of the host, which is served
// by two shares.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::nt_status;

// A directory with files, each with another byte as its content, and a directory in it, "inner".
class served_directory {
public:
    served_directory() {
        std::filesystem::create_directories(path_ / "inner" / "d");
        for (const char* const name : {"a", "b", "inner/a", "inner/c", "inner/d/x", "inner/d/y"})
            std::ofstream(path_ / name) << static_cast<char>('0' + files_++);
    }
    served_directory(const served_directory&) = delete;
    served_directory& operator=(const served_directory&) = delete;
    ~served_directory() { std::filesystem::remove_all(path_); }

    /// Returns the contents of all files below it, sorted.
    [[nodiscard]] std::string contents() const {
        std::string all;
        for (const auto& each : std::filesystem::recursive_directory_iterator(path_))
            if (each.is_regular_file()) all += static_cast<char>(std::ifstream(each.path()).get());
        std::ranges::sort(all);
        return all;
    }
    [[nodiscard]] unsigned files() const noexcept { return files_; }
    [[nodiscard]] bool has_streams() const {
        const auto loop = make_client_loop();
        return vfs::host_volume::open(*loop, path_.c_str()).value()->features().has_streams;
    }

    /// The directory as "files", and the one in it as "inner".
    [[nodiscard]] server_on_loops::shares shares(io::io_multiplexer& loop) const {
        server_on_loops::shares both(2);
        both[0].name = "files";
        both[0].volume = vfs::host_volume::open(loop, path_.c_str()).value();
        both[1].name = "inner";
        both[1].volume = vfs::host_volume::open(loop, (path_ / "inner").c_str()).value();
        return both;
    }

private:
    std::filesystem::path path_ =
        std::filesystem::path(testing::TempDir()) / ("sluice-names-" + std::to_string(::getpid()));
    unsigned files_ = 0;
};

// Together, because the renames of some clients can take every name from the share of another.
constexpr unsigned renames_min = 4;
constexpr int attempts_per_client = 400;

// Tries to rename files and directories to any of these names, without replacing others. The paths
// are relative to the share. Returns how often it has succeeded.
[[nodiscard]] unsigned rename_at_random(asking_client& by, const std::vector<std::string>& names,
                                        std::uint64_t seed) {
    seeded_random random(seed);
    unsigned renamed = 0;
    for (int i = 0; i != attempts_per_client and not testing::Test::HasFailure(); ++i) {
        const std::string& from = names[random.below(names.size())];
        const std::string& to = names[random.below(names.size())];
        const nt_status opened = by.create(from, {.desired_access = wire::file_all_access,
                                                  .share_access = shared_by_all,
                                                  .disposition = wire::create_disposition::open});
        if (opened != nt_status::success) continue;
        const wire::file_id file = by.file();
        const nt_status status = by.rename(file, to, false);
        constexpr std::array expected{nt_status::success,
                                      nt_status::object_name_collision,
                                      nt_status::object_name_not_found,
                                      nt_status::object_path_not_found,
                                      nt_status::access_denied,
                                      nt_status::sharing_violation,
                                      nt_status::invalid_parameter};
        EXPECT_NE(std::ranges::find(expected, status), expected.end()) << wire::name_of(status);
        if (status == nt_status::success and from != to) ++renamed;
        EXPECT_EQ(by.close(file), nt_status::success);
    }
    return renamed;
}

TEST(nested_shares_on_several_loops, lose_no_file_to_renames_that_cross) {
    served_directory directory;
    const std::vector<std::string> outer{"a",        "b",           "e",        "e\\c",
                                         "inner",    "inner\\a",    "inner\\b", "inner\\c",
                                         "inner\\d", "inner\\d\\x", "d",        "d\\x"};
    const std::vector<std::string> inner{"a", "b", "c", "d", "e", "d\\x", "d\\y", "e\\x"};
    std::array<unsigned, 4> renamed{};
    {
        server_on_loops served(
            3, [&](io::io_multiplexer& loop, clock_source&) { return directory.shares(loop); });
        std::vector<std::function<void()>> clients;
        for (std::uint16_t i = 0; i != 4; ++i)
            clients.emplace_back([&, i] {
                const auto loop = make_client_loop();
                asking_client one(*loop, served.connect_from_thread(i + 1), served.clock(),
                                  i % 2 == 0 ? "files" : "inner", i + 1U);
                renamed.at(i) = rename_at_random(one, i % 2 == 0 ? outer : inner, i + 1U);
            });
        served.serve(std::move(clients));
    }
    const std::string left = directory.contents();
    EXPECT_EQ(left.size(), directory.files()) << left;
    EXPECT_EQ(std::ranges::adjacent_find(left), left.end()) << "a file exists twice: " << left;
    EXPECT_GE(std::accumulate(renamed.begin(), renamed.end(), 0U), renames_min);
}

// --- streams
// -------------------------------------------------------------------------------------------------

// Writes to its own byte of a stream, whose writes read and change the whole stream.
void write_own_byte(server_on_loops& served, std::uint16_t number) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(number), served.clock(), "files", number);
    ASSERT_EQ(one.open("a:s", shared_by_all), nt_status::success);
    const wire::file_id stream = one.file();
    for (int i = 1; i <= 100; ++i) {
        const auto value = static_cast<std::byte>(i);
        EXPECT_EQ(one.write(stream, number, value), nt_status::success);
        EXPECT_EQ(one.read(stream, number), value) << "another write has undone this one";
        if (testing::Test::HasFailure()) return;
    }
}

// Changes attributes of the file, which are stored next to its streams.
void change_attributes(server_on_loops& served, std::uint16_t number) {
    const auto loop = make_client_loop();
    asking_client one(*loop, served.connect_from_thread(number), served.clock(), "files", number);
    ASSERT_EQ(one.open("a", shared_by_all), nt_status::success);
    for (int i = 0; i != 100; ++i) {
        const wire::basic_information wanted{.attributes = i % 2 == 0 ? wire::file_attributes::hidden
                                                                      : wire::file_attributes::archive};
        EXPECT_EQ(one.change(one.file(), wire::file_information_class::basic, wanted), nt_status::success);
    }
}

TEST(streams_on_several_loops, keep_each_write_during_writes_of_others_and_changes_of_attributes) {
    served_directory directory;
    if (not directory.has_streams()) GTEST_SKIP() << "the file system has no extended attributes";
    server_on_loops served(3,
                           [&](io::io_multiplexer& loop, clock_source&) { return directory.shares(loop); });
    served.serve({[&] { write_own_byte(served, 1); }, [&] { write_own_byte(served, 2); },
                  [&] { change_attributes(served, 3); }});
}

}  // namespace
}  // namespace sluice::smb_simulation
