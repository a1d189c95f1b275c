#include "sluice/vfs/host/host_walk.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class host_walks : public testing::Test {
protected:
    // Visits all files; `each` is called for each of them.
    void visit(const std::function<void(const walked_entry&)>& each = [](const walked_entry&) {}) {
        paths.clear();
        failures.clear();
        walk(volume->tree(),
             {.file =
                  [&](const walked_entry& at) {
                      paths.push_back(at.path);
                      each(at);
                  },
              .store = [](const walked_entry&) {},
              .failed = [&](const std::string& path, const error&) { failures.push_back(path); },
              .crosses_mounts = true});
    }
    // Creates `depth` directories, one in the other. Their paths are longer than the kernel
    // permits.
    void nest(unsigned depth) const {
        int here = ::open(scratch.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (unsigned i = 0; i != depth; ++i) {
            for (const char* name : {long_name.c_str(), "z"})
                ASSERT_EQ(::mkdirat(here, name, 0700), 0);
            const int next = ::openat(here, long_name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
            ::close(here);
            here = next;
        }
        ::close(here);
    }

    io::test_directory scratch{fs::current_path().string()};
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> volume = host_volume::open(*multiplexer, scratch.path()).value();
    const std::string long_name = std::string(200, 'n');
    std::vector<std::string> paths;
    std::vector<std::string> failures;
};

TEST_F(host_walks, visit_the_root_and_everything_beneath_but_no_store) {
    fs::create_directories(scratch.path_of("a/b"));
    fs::create_directories(scratch.path_of("a/.sluice-streams/00"));
    fs::create_symlink("/etc", scratch.path_of("link"));
    scratch.write("a/b/file", "");
    visit();
    EXPECT_THAT(paths, UnorderedElementsAre("", "a", "a/b", "a/b/file"));
    EXPECT_THAT(failures, IsEmpty());
}

TEST_F(host_walks, visit_paths_of_any_length_with_few_descriptors) {
    constexpr unsigned depth = 100;
    nest(depth);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    std::size_t longest = 0;
    rlimit low = before;
    low.rlim_cur = 70;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    visit([&](const walked_entry& at) { longest = std::max(longest, at.path.size()); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(paths.size(), 2 * depth + 1);
    EXPECT_EQ(longest, depth * (long_name.size() + 1) - 1);
    EXPECT_THAT(failures, IsEmpty());
}

TEST_F(host_walks, find_the_way_back_from_a_directory_that_is_moved_at_the_same_time) {
    nest(60);
    fs::create_directory(scratch.path_of("away"));
    bool is_moved = false;
    visit([&](const walked_entry& at) {
        // By now, the upper directories are closed.
        if (is_moved or std::ranges::count(at.path, '/') != 50) return;
        is_moved = true;
        const std::string from = long_name + '/' + long_name;
        ASSERT_EQ(std::rename(scratch.path_of(from).c_str(), scratch.path_of("away/moved").c_str()), 0);
    });
    ASSERT_TRUE(is_moved);
    EXPECT_THAT(paths, testing::Contains("away"));
    EXPECT_THAT(paths, testing::Contains(long_name + "/z"));
}

TEST_F(host_walks, report_a_directory_that_cannot_be_searched) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may search every directory";
    fs::create_directory(scratch.path_of("closed"));
    scratch.write("closed/file", "");
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0), 0);
    visit();
    EXPECT_THAT(failures, ElementsAre("closed"));
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0400), 0);
    visit();
    EXPECT_THAT(failures, ElementsAre("closed"));
    ASSERT_EQ(::chmod(scratch.path_of("closed").c_str(), 0700), 0);
}

}  // namespace
}  // namespace sluice::vfs
