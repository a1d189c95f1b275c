#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/name/short_name_tables.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// Other file systems that are mounted below a share. Skipped without the right to mount.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

/// A mount that exists as long as this object.
class mounted {
public:
    mounted(std::string where, const char* type, const std::string& options)
        : where_(std::move(where)),
          is_there_(::mount("test", where_.c_str(), type, 0, options.c_str()) == 0) {}
    mounted(const mounted&) = delete;
    mounted& operator=(const mounted&) = delete;
    ~mounted() {
        if (is_there_) (void)::umount2(where_.c_str(), MNT_DETACH);
    }
    [[nodiscard]] bool is_there() const noexcept { return is_there_; }

private:
    std::string where_;
    bool is_there_;
};

/// A FUSE mount without a server: every call hangs until release().
class hung_mount {
public:
    explicit hung_mount(const std::string& where)
        : device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)),
          mount_(where, "fuse", "fd=" + std::to_string(device_) + ",rootmode=40000,user_id=0,group_id=0") {}
    hung_mount(const hung_mount&) = delete;
    hung_mount& operator=(const hung_mount&) = delete;
    ~hung_mount() { release(); }
    [[nodiscard]] bool is_there() const noexcept { return mount_.is_there(); }
    void release() {
        if (device_ >= 0) (void)::close(device_);
        device_ = -1;
    }

private:
    int device_;
    mounted mount_;
};

// Returns the state of a thread of this process, as in proc(5): 'R' if it runs.
char state_of(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t end_of_name = text.rfind(") ");
    return end_of_name == text.npos ? 'R' : text[end_of_name + 2];
}

class host_mounts : public testing::Test {
protected:
    host_mounts() {
        fs::create_directory(path("mnt"));
        std::ofstream(path("local")) << "local";
    }
    [[nodiscard]] std::string path(const std::string& name) const { return directory_.path() + '/' + name; }

    // Executes a call in a domain.
    template <class Call>
    std::invoke_result_t<Call&> in(fs_domain& domain, Call call) {
        std::optional<std::invoke_result_t<Call&>> outcome;
        const auto once = [](fs_domain& on, io::io_multiplexer& loop, Call& made,
                             auto& into) -> io::task<void> { into.emplace(co_await on.run(loop, made)); };
        io::sync_wait(*loop_, once(domain, *loop_, call, outcome));
        return *std::move(outcome);
    }
    result<node_ptr> find(fs_domain& domain, const std::string& name) {
        return in(domain, [&] { return opened_->find(name, follow_links::yes); });
    }
    template <class T>
    static int code(const result<T>& of) {
        return of ? 0 : of.error().code();
    }
    fs_domain& home() { return opened_->domain(); }
    fs_domain& beyond() { return *opened_->crossing_domain(); }

    io::test_directory directory_{fs::current_path().string()};
    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
    domain_table table_;
    std::unique_ptr<host_volume> opened_ =
        host_volume::open(*loop_, directory_.path(), {.domains = &table_}).value();
};

TEST_F(host_mounts, hung_file_system_in_a_local_share_delays_no_inline_call) {
    hung_mount hung(path("mnt"));
    if (not hung.is_there()) GTEST_SKIP() << "no right to mount";
    ASSERT_TRUE(home().is_inline());
    EXPECT_FALSE(beyond().is_inline());

    EXPECT_EQ(code(find(home(), "mnt")), limits::crosses_mount);
    EXPECT_EQ(code(find(home(), "mnt/x")), limits::crosses_mount);
    EXPECT_EQ(code(find(home(), "MNT/x")), limits::crosses_mount);
    EXPECT_EQ(code(in(home(), [&] { return opened_->create("mnt/new", {}); })), limits::crosses_mount);
    const auto root = find(home(), "").value();
    EXPECT_EQ(code(in(home(), [&] { return root->children()->list(); })), limits::crosses_mount);

    // A call that hangs there must not delay calls here.
    std::optional<int> outcome;
    const auto look = [](host_volume& volume, io::io_multiplexer& loop,
                         std::optional<int>& ended) -> io::task<void> {
        const auto found = co_await volume.crossing_domain()->run(
            loop, [&] { return volume.find("mnt/x", follow_links::yes); });
        ended = code(found);
    };
    io::task_group group(*loop_);
    group.spawn(look(*opened_, *loop_, outcome));
    while (beyond().statistics().running == 0)
        std::this_thread::yield();
    const auto local = find(home(), "LOCAL");
    ASSERT_EQ(code(local), 0);
    EXPECT_EQ(&(*local)->domain(), &home());
    EXPECT_EQ(code(find(home(), "missing")), ENOENT);
    EXPECT_EQ(code(in(home(), [&] { return (*local)->names()->rename("renamed", when_taken::refuse); })), 0);
    EXPECT_EQ(code(in(home(), [&] { return (*local)->names()->rename("mnt/renamed", when_taken::refuse); })),
              limits::crosses_mount);
    EXPECT_FALSE(outcome);
    EXPECT_TRUE(beyond().has_stuck_calls());

    hung.release();
    while (group.size() != 0)
        (void)loop_->run();
    EXPECT_NE(outcome.value_or(0), 0);
}

TEST_F(host_mounts, hung_file_system_delays_no_change_of_a_short_name_elsewhere) {
    using reach = short_name_tables::reach;
    hung_mount hung(path("mnt"));
    if (not hung.is_there()) GTEST_SKIP() << "no right to mount";
    short_name_tables tables;
    const auto distant = io::path_handle::open({}, path("mnt")).value();
    const auto here = io::path_handle::open({}, directory_.path()).value();
    std::atomic<pid_t> caller = 0;
    const std::jthread hanging([&] {
        caller = ::gettid();
        EXPECT_FALSE(tables.set(distant, "file", short_name("CHOSEN"), reach::all_mounts));
    });
    // It sleeps in the file system, and holds the mutex of its kind of call.
    while (caller == 0 or state_of(caller) == 'R')
        std::this_thread::yield();
    EXPECT_EQ(code(tables.set(here, "missing", short_name("CHOSEN"), reach::one_mount)), ENOENT);
    hung.release();
}

TEST_F(host_mounts, hung_file_system_whose_name_competes_for_a_short_one_delays_no_inline_call) {
    fs::create_directory(path("Long name a"));
    std::ofstream(path("Long name b")) << "local";
    opened_ = host_volume::open(*loop_, directory_.path(), {.short_names = true, .domains = &table_}).value();
    hung_mount hung(path("Long name a"));
    if (not hung.is_there()) GTEST_SKIP() << "no right to mount";
    const auto found = find(home(), "LONGNA~1");
    ASSERT_EQ(code(found), 0);
    EXPECT_EQ((*found)->path(), "Long name b") << "the age of the other is not known";
}

TEST_F(host_mounts, mounted_files_are_used_in_the_crossing_domain) {
    const mounted other(path("mnt"), "tmpfs", "size=1m");
    if (not other.is_there()) GTEST_SKIP() << "no right to mount";
    std::ofstream(path("mnt/File")) << "beyond";

    EXPECT_EQ(code(find(home(), "mnt/file")), limits::crosses_mount);
    const auto found = find(beyond(), "mnt/file");
    ASSERT_EQ(code(found), 0);
    node& file = **found;
    EXPECT_EQ(&file.domain(), &beyond());
    EXPECT_EQ(file.path(), "mnt/File");
    ASSERT_EQ(code(in(beyond(), [&] { return file.data()->open_data({.read = true}); })), 0);
    std::array<std::byte, 16> bytes{};
    EXPECT_EQ(io::sync_wait(*loop_, file.data()->co_read(bytes, 0)).value(), 6U);

    const auto directory = in(beyond(), [&] { return opened_->find_directory("mnt"); });
    ASSERT_EQ(code(directory), 0);
    EXPECT_EQ(code(in(beyond(), [&] { return opened_->create_in(*directory->node, "new", {}); })), 0);
    EXPECT_EQ(code(in(beyond(), [&] { return file.names()->rename("mnt/other", when_taken::refuse); })), 0);
    EXPECT_TRUE(fs::exists(path("mnt/other")));
    EXPECT_EQ(code(in(beyond(), [&] { return file.names()->rename("elsewhere", when_taken::refuse); })),
              EXDEV);
    EXPECT_EQ(code(in(beyond(), [&] { return file.names()->remove(); })), 0);

    const auto root = find(home(), "").value();
    const auto listing = in(beyond(), [&] { return root->children()->list(); });
    ASSERT_EQ(code(listing), 0);
    int names = 0;
    while (*in(beyond(), [&] { return (*listing)->next(); }) != nullptr)
        ++names;
    EXPECT_EQ(names, 2);
}

TEST_F(host_mounts, path_that_leads_outside_is_rejected_in_both_domains) {
    fs::create_symlink("/etc", path("outside"));
    EXPECT_EQ(code(find(home(), "outside/passwd")), limits::crosses_mount);
    EXPECT_EQ(code(find(beyond(), "outside/passwd")), EXDEV);
}

TEST_F(host_mounts, listing_a_directory_without_mount_points_stays_here) {
    const auto root = find(home(), "").value();
    const auto listing = in(home(), [&] { return root->children()->list(); });
    ASSERT_EQ(code(listing), 0);
    EXPECT_EQ(code(in(home(), [&] { return (*listing)->next(); })), 0);
}

}  // namespace
}  // namespace sluice::vfs
