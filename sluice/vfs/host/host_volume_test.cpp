#include "sluice/vfs/host/host_volume.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_metadata.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// Properties of host directories only: changes by other processes, and attempts to leave the
// directory.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class host_volume_test : public testing::Test {
protected:
    // In memory, because on a disk a hundred thousand files take seconds to create and remove.
    host_volume_test() : scratch("/dev/shm") {}

    void reopen(const host_volume_options& options) {
        opened.reset();
        opened = host_volume::open(*multiplexer, scratch.path() + "/share", options).value();
    }
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return scratch.path_of("share/" + name);
    }
    void put(const std::string& name) const { scratch.write("share/" + name, "content of " + name); }
    [[nodiscard]] std::vector<std::string> names(std::string_view path = {}) {
        std::vector<std::string> found;
        auto listing = opened->find(path, follow_links::yes).value()->children()->list().value();
        while (const listed_name* next = listing->next().value())
            found.emplace_back(next->name);
        return found;
    }
    [[nodiscard]] result<node_ptr> find(std::string_view path) {
        return opened->find(path, follow_links::yes);
    }
    [[nodiscard]] std::uint64_t scans() const { return opened->index_statistics().scans; }

    io::test_directory scratch;
    bool made = fs::create_directory(scratch.path_of("share"));
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened = host_volume::open(*multiplexer, scratch.path() + "/share").value();
};

// smbprotocol, a client in Python, sets the attributes of a link to what they are before it removes
// the link.
TEST_F(host_volume_test, a_link_accepts_the_attributes_that_it_has_and_no_others) {
    fs::create_symlink("f", path_of("link"));
    const node_ptr link = opened->find("link", follow_links::no).value();
    const metadata shown = link->status().value();
    EXPECT_EQ(code(link->change({.dos = shown.dos})), 0);
    EXPECT_NE(code(link->change({.dos = shown.dos | dos_attributes::hidden})), 0);
}

TEST_F(host_volume_test, names_that_windows_does_not_allow_are_mapped_in_both_directions) {
    put("a:b");
    put("what?*");
    put("tail.");
    put("tail ");
    put("\x01");
    EXPECT_THAT(names(), UnorderedElementsAre("a\xef\x80\xa2"
                                              "b",
                                              "what\xef\x80\xa5\xef\x80\xa1", "tail\xef\x80\xa9",
                                              "tail\xef\x80\xa8", "\xef\x80\x81"));
    for (const std::string& name : names()) {
        const auto found = find(name);
        ASSERT_EQ(code(found), 0) << name;
        EXPECT_EQ((*found)->path(), name);
    }
    EXPECT_EQ(code(find("A\xef\x80\xa2"
                        "B")),
              0)
        << "mapped and in other case";
    ASSERT_EQ(code(opened->create("new\xef\x80\xa2", {})), 0);
    EXPECT_TRUE(fs::exists(path_of("new:")));
    EXPECT_EQ(code(find("a:b")), EILSEQ) << "each name has only one form";
}

TEST_F(host_volume_test, a_name_in_the_private_range_itself_is_found_as_well) {
    put("x\xef\x80\xa2");
    EXPECT_EQ(code(find("x\xef\x80\xa2")), 0);
}

TEST_F(host_volume_test, names_that_are_not_utf8_are_listed_and_cannot_be_opened) {
    put("latin\xe4");
    EXPECT_THAT(names(), ElementsAre("latin\xef\xbf\xbd"));
    EXPECT_EQ(code(find("latin\xef\xbf\xbd")), ENOENT);
}

TEST_F(host_volume_test, find_prefers_the_exact_name_and_otherwise_the_first_that_differs_in_case) {
    put("name");
    put("NAME");
    put("nAmE");
    EXPECT_EQ(find("name").value()->path(), "name");
    EXPECT_EQ(find("nAmE").value()->path(), "nAmE");
    EXPECT_EQ(find("Name").value()->path(), "NAME");
}

TEST_F(host_volume_test, changes_by_other_processes_are_seen_without_another_scan) {
    put("first");
    EXPECT_EQ(code(find("missing")), ENOENT);
    EXPECT_EQ(scans(), 1U);
    put("Missing");
    EXPECT_EQ(find("missing").value()->path(), "Missing");
    fs::rename(path_of("Missing"), path_of("Moved"));
    EXPECT_EQ(code(find("missing")), ENOENT);
    EXPECT_EQ(find("mOVED").value()->path(), "Moved");
    fs::remove(path_of("Moved"));
    EXPECT_EQ(code(find("moved")), ENOENT);
    EXPECT_EQ(code(opened->create("Own", {})), 0);
    EXPECT_EQ(find("oWN").value()->path(), "Own");
    EXPECT_EQ(scans(), 1U);
}

TEST_F(host_volume_test, index_stays_correct_when_a_directory_is_moved_or_created_again) {
    fs::create_directory(path_of("d"));
    put("d/In");
    EXPECT_EQ(code(find("d/iN")), 0);
    fs::rename(path_of("d"), path_of("e"));
    EXPECT_EQ(find("E/iN").value()->path(), "e/In");
    EXPECT_EQ(code(find("d/iN")), ENOTDIR);
    fs::remove_all(path_of("e"));
    fs::create_directory(path_of("e"));
    EXPECT_EQ(code(find("e/iN")), ENOENT);
    put("e/IN2");
    EXPECT_EQ(code(find("e/in2")), 0);
}

TEST_F(host_volume_test, index_drops_the_least_recently_used_directories) {
    for (const char* name : {"a", "b", "c"}) {
        fs::create_directory(path_of(name));
        put(std::string(name) + "/x");
        put(std::string(name) + "/y");
    }
    reopen({.index = {.directories_max = 2, .names_max = 1000}});
    for (const char* path : {"a/-", "b/-", "a/-", "b/-"})
        EXPECT_EQ(code(find(path)), ENOENT);
    EXPECT_EQ(scans(), 2U);
    EXPECT_EQ(code(find("c/-")), ENOENT);
    EXPECT_EQ(code(find("b/-")), ENOENT);
    EXPECT_EQ(scans(), 3U) << "the least recently used one was dropped";
    EXPECT_EQ(code(find("a/-")), ENOENT);
    EXPECT_EQ(scans(), 4U);

    reopen({.index = {.directories_max = 10, .names_max = 1}});
    EXPECT_EQ(code(find("a/X")), 0) << "found although the index cannot store it";
    EXPECT_EQ(code(find("a/Y")), 0);
    EXPECT_EQ(scans(), 2U);
}

TEST_F(host_volume_test, index_is_rebuilt_after_an_overflow_of_the_kernel_queue) {
    EXPECT_EQ(code(find("missing")), ENOENT);
    for (int i = 0; i < 20'000; ++i) {
        const std::string name = path_of("n" + std::to_string(i % 2));
        (void)::mknod(name.c_str(), S_IFREG | 0600, 0);
        (void)::unlink(name.c_str());
    }
    put("After");
    EXPECT_EQ(find("aFTER").value()->path(), "After");
    EXPECT_EQ(opened->index_statistics().overflows, 1U);
    EXPECT_EQ(scans(), 2U);
}

TEST_F(host_volume_test, misses_in_a_directory_of_100000_names_cost_one_scan) {
    for (int i = 0; i < 100'000; ++i)
        ASSERT_EQ(::mknod(path_of("name" + std::to_string(i)).c_str(), S_IFREG | 0600, 0), 0);
    for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(code(find("missing" + std::to_string(i))), ENOENT);
    EXPECT_EQ(find("NAME77777").value()->path(), "name77777");
    EXPECT_EQ(scans(), 1U);
}

TEST_F(host_volume_test, no_path_leads_out_of_the_directory) {
    scratch.write("secret", "outside");
    fs::create_directory_symlink("..", path_of("up"));
    fs::create_symlink("../secret", path_of("out"));
    fs::create_symlink(scratch.path_of("secret"), path_of("absolute"));
    fs::create_symlink("/proc/self/root/etc/passwd", path_of("magic"));
    fs::create_directory_symlink("/proc/self/cwd", path_of("cwd"));
    for (const char* path : {"up", "up/secret", "out", "OUT", "absolute", "magic", "cwd", "UP/secret"})
        EXPECT_EQ(code(find(path)), EXDEV) << path;
    EXPECT_EQ(code(opened->create("up/new", {})), EXDEV);
    ASSERT_EQ(code(opened->create("mine", {})), 0);
    EXPECT_EQ(code(find("mine").value()->names()->rename("up/mine", when_taken::replace)), EXDEV);
    EXPECT_EQ(code(find("mine").value()->names()->link("up/mine", when_taken::replace)), EXDEV);
    EXPECT_FALSE(scratch.exists("new"));
    EXPECT_FALSE(scratch.exists("mine"));
}

TEST_F(host_volume_test, a_directory_moved_out_during_a_walk_is_not_followed) {
    fs::create_directories(path_of("a/b"));
    const auto held = find("a/b").value();
    fs::rename(path_of("a"), scratch.path_of("a"));
    scratch.write("secret", "outside");
    EXPECT_EQ(code(find("a/b")), ENOTDIR);
    EXPECT_EQ(code(opened->create("a/b/../../secret", {})), EILSEQ);
    EXPECT_EQ(held->path(), "a/b") << "the last known path";
}

TEST_F(host_volume_test, paths_of_nodes_follow_renames_by_any_process) {
    fs::create_directories(path_of("a/b"));
    put("a/b/f");
    const auto held = find("a/b/f").value();
    fs::rename(path_of("a"), path_of("z"));
    EXPECT_EQ(held->path(), "z/b/f");
    fs::rename(path_of("z/b/f"), path_of("g (deleted)"));
    EXPECT_EQ(held->path(), "g (deleted)");
    fs::rename(scratch.path_of("share"), scratch.path_of("renamed"));
    EXPECT_EQ(held->path(), "g (deleted)") << "also when the root moves";
}

TEST_F(host_volume_test, a_replacement_of_a_file_is_opened_according_to_its_kind) {
    const auto found = [&] {
        return opened->find_with_status("f", follow_links::yes, {.read = true}, name_match::any_case);
    };
    const auto kind = [&] { return found().value().status.kind; };
    for (int i = 0; i != 2; ++i) {
        put("f");
        EXPECT_EQ(kind(), node_kind::file);
        EXPECT_EQ(kind(), node_kind::file) << "the kind at the first lookup";
        fs::remove(path_of("f"));
        EXPECT_EQ(code(found()), ENOENT);
        put("f");
        EXPECT_EQ(found().value().status.size_bytes, std::string_view("content of f").size());
        fs::remove(path_of("f"));
        ASSERT_EQ(::mkfifo(path_of("f").c_str(), 0600), 0);
        EXPECT_EQ(kind(), node_kind::other);
        fs::remove(path_of("f"));
        fs::create_directory(path_of("f"));
        EXPECT_EQ(kind(), node_kind::directory);
        fs::remove(path_of("f"));
        fs::create_symlink("../outside", path_of("f"));
        EXPECT_EQ(code(found()), EXDEV);
        fs::remove(path_of("f"));
    }
}

TEST_F(host_volume_test, a_file_that_was_opened_directly_for_reading_can_still_be_written_and_removed) {
    put("f");
    for (int i = 0; i != 2; ++i) {
        auto found =
            opened->find_with_status("f", follow_links::yes, {.read = true}, name_match::any_case).value();
        ASSERT_EQ(code(found.node->data()->open_data({.read = true, .write = true})), 0);
        ASSERT_EQ(code(found.node->data()->truncate(3)), 0);
        EXPECT_EQ(fs::file_size(path_of("f")), 3U);
        EXPECT_EQ(found.node->path(), "f");
    }
    auto last =
        opened->find_with_status("f", follow_links::yes, {.read = true}, name_match::any_case).value();
    ASSERT_EQ(code(last.node->names()->remove()), 0);
    EXPECT_FALSE(fs::exists(path_of("f")));
}

TEST_F(host_volume_test, a_file_that_is_opened_with_its_name_can_wait_in_its_transfers) {
    put("f");
    for (int i = 0; i != 2; ++i) {  // the second time, it is known to be a regular file
        for (const bool writes : {false, true}) {
            auto found = opened
                             ->find_with_status("f", follow_links::yes, {.read = true, .write = writes},
                                                name_match::any_case)
                             .value();
            ASSERT_EQ(code(found.node->data()->open_data({.read = true, .write = writes})), 0);
            const io::file_handle* const file = found.node->data()->host_file();
            ASSERT_NE(file, nullptr);
            EXPECT_EQ(::fcntl(file->descriptor(), F_GETFL) & O_NONBLOCK, 0);
        }
    }
}

TEST_F(host_volume_test, a_file_of_another_user_can_wait_in_its_transfers_if_its_time_of_access_is_frozen) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can have a file of another user";
    put("f");
    auto found =
        opened->find_with_status("f", follow_links::yes, {.read = true}, name_match::any_case).value();
    ASSERT_EQ(code(found.node->data()->open_data({.read = true})), 0);
    constexpr uid_t nobody = 65534;
    (void)::setfsuid(nobody);
    found.node->data()->keep_access_time(true);
    const io::file_handle* const file = found.node->data()->host_file();
    (void)::setfsuid(0);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(::fcntl(file->descriptor(), F_GETFL) & (O_NONBLOCK | O_NOATIME), 0);
}

TEST_F(host_volume_test, a_name_in_another_case_is_missing_exactly_but_cannot_be_created) {
    put("Name");
    const auto found = [&](name_match match) {
        return code(opened->find_with_status("nAME", follow_links::yes, {}, match));
    };
    EXPECT_EQ(found(name_match::any_case), 0);
    EXPECT_EQ(found(name_match::exact), ENOENT);
    EXPECT_EQ(code(opened->create("nAME", {})), EEXIST);
}

TEST_F(host_volume_test, attributes_changed_by_another_process_are_returned_by_the_next_query) {
    put("f");
    const auto dos = [&] {
        return opened->find_with_status("f", follow_links::yes, {}, name_match::any_case).value().status.dos;
    };
    const auto store = [&](dos_attributes what) {
        const auto file = io::file_handle::open({}, path_of("f"), io::mode::write).value();
        const encoded_metadata encoded(stored_metadata{.dos = what});
        ASSERT_TRUE(io::store_xattr(file, metadata_attribute, encoded.bytes().span()));
    };
    EXPECT_EQ(dos(), dos_attributes::archive);
    store(dos_attributes::hidden);
    EXPECT_EQ(dos(), dos_attributes::hidden) << "within a tick of the kernel's clock";
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    EXPECT_EQ(dos(), dos_attributes::hidden) << "cached from now on";
    EXPECT_EQ(dos(), dos_attributes::hidden);
    store(dos_attributes::system);
    EXPECT_EQ(dos(), dos_attributes::system);
    fs::remove(path_of("f"));
    put("f");
    EXPECT_EQ(dos(), dos_attributes::archive) << "another file, possibly with the same inode number";
}

TEST_F(host_volume_test, a_file_is_created_in_the_open_directory_at_its_current_place) {
    fs::create_directories(path_of("a"));
    auto directory = opened->find_directory("a").value();
    fs::rename(path_of("a"), path_of("b"));
    EXPECT_EQ(code(opened->create_in(*directory.node, "new", {})), 0);
    EXPECT_TRUE(fs::exists(path_of("b/new")));
    fs::remove_all(path_of("b"));
    EXPECT_EQ(code(opened->create_in(*directory.node, "late", {})), ENOTDIR);
    EXPECT_EQ(code(opened->create_in(*directory.node, "late", {.kind = node_kind::directory})), ENOTDIR);
}

// More changes than are read in one call, and fewer than the default length of the kernel's queue.
constexpr int many_changes = 16'000;

// Long names, so that one read returns only a few.
void change_names(const std::string& directory) {
    const std::string name = directory + "/" + std::string(250, 'n');
    for (int i = 0; i != many_changes / 2; ++i) {
        (void)::mknod(name.c_str(), S_IFREG | 0600, 0);
        (void)::unlink(name.c_str());
    }
}

TEST_F(host_volume_test, the_index_is_rebuilt_after_more_changes_than_it_reads_in_one_call) {
    EXPECT_EQ(code(find("missing")), ENOENT);
    change_names(path_of(""));
    put("After");
    EXPECT_EQ(find("aFTER").value()->path(), "After");
    EXPECT_EQ(opened->index_statistics().overflows, 1U);
    EXPECT_EQ(scans(), 2U);
}

TEST_F(host_volume_test, only_the_open_file_is_removed) {
    put("f");
    const auto held = find("f").value();
    fs::remove(path_of("f"));
    put("f");
    EXPECT_EQ(code(held->names()->remove()), ENOENT);
    EXPECT_TRUE(fs::exists(path_of("f")));
}

class counting_listener final : public change_listener {
public:
    void changed(const change&) noexcept override { ++changes; }
    void overflowed() noexcept override { ++overflows; }
    void ended() noexcept override {}

    int changes = 0;
    int overflows = 0;
};

TEST_F(host_volume_test, a_feed_delivers_changes_before_it_has_read_all_of_many) {
    counting_listener seen;
    const node_ptr root = find("").value();
    const auto watch = opened->changes()->watch(*root, false, seen);
    ASSERT_EQ(code(watch), 0);
    change_names(path_of(""));
    int deliveries = 0;
    while (seen.changes < many_changes and seen.overflows == 0) {
        EXPECT_TRUE(io::sync_wait(*multiplexer, opened->changes()->co_changed()));
        opened->changes()->deliver();
        ++deliveries;
    }
    EXPECT_GT(deliveries, 1);
}

// A listener that allows only a few directories.
class bounded_listener final : public change_listener {
public:
    void changed(const change&) noexcept override {}
    void overflowed() noexcept override { ++overflows; }
    void ended() noexcept override {}
    [[nodiscard]] bool may_watch(std::size_t directories) noexcept override {
        if (directories > at_most) return false;
        watched = directories;
        return true;
    }

    std::size_t at_most = 3;
    std::size_t watched = 0;
    int overflows = 0;
};

TEST_F(host_volume_test, a_watch_has_no_more_directories_than_its_listener_allows) {
    for (const char* name : {"a", "a/b", "c"})
        fs::create_directory(path_of(name));
    bounded_listener seen;
    const node_ptr root = find("").value();
    EXPECT_EQ(code(opened->changes()->watch(*root, true, seen)), ENOSPC);
    seen.at_most = 4;
    const auto watch = opened->changes()->watch(*root, true, seen);
    ASSERT_EQ(code(watch), 0);
    EXPECT_EQ(seen.watched, 4U);
    bounded_listener other;
    EXPECT_EQ(code(opened->changes()->watch(*root, false, other)), 0) << "each watch has its own limit";
    EXPECT_EQ(other.watched, 1U);

    const auto hear = [&] {
        EXPECT_TRUE(io::sync_wait(*multiplexer, opened->changes()->co_changed()));
        opened->changes()->deliver();
    };
    fs::create_directory(path_of("c/beyond"));
    hear();
    EXPECT_EQ(seen.overflows, 1);
    EXPECT_EQ(seen.watched, 4U);
    fs::remove_all(path_of("a"));
    hear();
    EXPECT_EQ(seen.watched, 2U);
    fs::rename(path_of("c"), scratch.path_of("outside"));
    hear();
    EXPECT_EQ(seen.watched, 1U);
}

TEST_F(host_volume_test, a_read_only_volume_changes_nothing) {
    put("f");
    reopen({.read_only = true});
    const auto held = find("F").value();
    EXPECT_EQ(code(opened->create("g", {})), EROFS);
    EXPECT_EQ(code(held->data()->open_data({.read = true, .write = true})), EROFS);
    EXPECT_EQ(code(held->data()->open_data({.read = true})), 0);
    EXPECT_EQ(code(held->names()->remove()), EROFS);
    EXPECT_EQ(code(held->names()->rename("g", when_taken::replace)), EROFS);
    EXPECT_EQ(code(held->change({.dos = dos_attributes::hidden})), EROFS);
    EXPECT_EQ(code(held->attached()->set_security({})), EROFS);
    EXPECT_EQ(code(held->attached()->open_stream({.name = "s", .create = true})), EROFS);
    EXPECT_TRUE(opened->features().is_read_only);
}

TEST_F(host_volume_test, links_are_rejected_if_they_are_disabled) {
    put("f");
    fs::create_symlink("f", path_of("link"));
    reopen({.follow_links = false});
    EXPECT_EQ(code(find("link")), ELOOP);
    EXPECT_EQ(code(opened->find("link", follow_links::no)), 0);
}

TEST_F(host_volume_test, attributes_of_files_without_stored_metadata) {
    put("f");
    put(".dot");
    fs::permissions(path_of("f"), fs::perms::owner_read);
    EXPECT_EQ(find("f").value()->status().value().dos, dos_attributes::archive | dos_attributes::read_only);
    EXPECT_EQ(find(".dot").value()->status().value().dos, dos_attributes::archive);
    reopen({.map_hidden_dot_files = true});
    EXPECT_EQ(find(".dot").value()->status().value().dos, dos_attributes::archive | dos_attributes::hidden);
    ASSERT_EQ(code(find(".dot").value()->change({.dos = dos_attributes::none})), 0);
    EXPECT_EQ(find(".dot").value()->status().value().dos, dos_attributes::none)
        << "stored metadata has priority";
}

TEST_F(host_volume_test, damaged_attributes_are_ignored) {
    put("f");
    const auto file = io::file_handle::open({}, path_of("f"), io::mode::write).value();
    for (const std::string_view damaged : {"", "\x01", "\x02 5678901234567890", "123456789012345"}) {
        ASSERT_TRUE(io::store_xattr(file, "user.sluice.dos", std::as_bytes(std::span(damaged))));
        EXPECT_EQ(find("f").value()->status().value().dos, dos_attributes::archive);
    }
}

TEST_F(host_volume_test, a_client_cannot_change_private_extended_attributes) {
    put("f");
    const auto file = find("f").value();
    const std::array<std::byte, 1> value{};
    for (const char* name : {"sluice.dos", "SLUICE.stream.x", "sluice.streams", "Sluice.security"})
        EXPECT_EQ(code(file->attached()->set_extended_attribute(name, value)), EACCES) << name;
}

TEST_F(host_volume_test, creation_uses_the_permissions_of_the_request_or_else_of_the_volume) {
    reopen({.file_permission_bits = 0600, .directory_permission_bits = 0700});
    EXPECT_EQ(opened->create("f", {}).value()->status().value().permission_bits, 0600);
    EXPECT_EQ(opened->create("d", {.kind = node_kind::directory}).value()->status().value().permission_bits,
              0700);
    EXPECT_EQ(opened->create("g", {.permission_bits = 0400}).value()->status().value().permission_bits, 0400);
}

class umask_of_test {
public:
    explicit umask_of_test(mode_t now) : before_(::umask(now)) {}
    umask_of_test(const umask_of_test&) = delete;
    umask_of_test& operator=(const umask_of_test&) = delete;
    ~umask_of_test() { ::umask(before_); }

private:
    mode_t before_;
};

TEST_F(host_volume_test, the_umask_decides_whether_the_group_may_change_new_files) {
    const auto modes_with = [&](mode_t mask) {
        const umask_of_test now(mask);
        const std::string suffix = std::to_string(mask);
        const auto file = opened->create("f" + suffix, {}).value();
        const auto directory = opened->create("d" + suffix, {.kind = node_kind::directory}).value();
        return std::pair(unsigned(file->status().value().permission_bits),
                         unsigned(directory->status().value().permission_bits));
    };
    EXPECT_EQ(modes_with(0022), std::pair(0644U, 0755U));
    EXPECT_EQ(modes_with(0002), std::pair(0664U, 0775U));
    EXPECT_EQ(modes_with(0077), std::pair(0600U, 0700U));
    EXPECT_EQ(modes_with(0000), std::pair(0664U, 0775U)) << "others may not write";
}

TEST_F(host_volume_test, a_default_acl_decides_in_place_of_the_umask) {
    // Version 2, then a tag, permissions and an unused ID each: the owner, the group, and others.
    constexpr std::array<std::uint16_t, 14> acl{2, 0,      0x01,   7,    0xffff, 0xffff, 0x04,
                                                7, 0xffff, 0xffff, 0x20, 0,      0xffff, 0xffff};
    if (::setxattr(path_of("").c_str(), "system.posix_acl_default", acl.data(), sizeof acl, 0) != 0)
        GTEST_SKIP() << "the file system has no ACLs";
    const umask_of_test now(0077);
    EXPECT_EQ(opened->create("f", {}).value()->status().value().permission_bits, 0660);
    EXPECT_EQ(opened->create("d", {.kind = node_kind::directory}).value()->status().value().permission_bits,
              0770);
}

}  // namespace
}  // namespace sluice::vfs
