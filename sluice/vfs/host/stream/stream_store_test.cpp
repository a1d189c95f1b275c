#include "sluice/vfs/host/stream/stream_store.hpp"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/host/stream/stream_testing.hpp"

// The store of large streams: where it is, and that no client gets there.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(stream_store_names, are_compared_like_the_index_of_names_compares) {
    for (const char* name : {".sluice-streams", ".SLUICE-Streams", "\xef\x80\xa9sluice-streams"})
        EXPECT_TRUE(is_stream_store(name)) << name;
    for (const char* name : {"", ".", ".sluice", ".sluice-stream", ".sluice-streamss", "sluice-streams",
                             ".sluice-streams.", ".sluice-streams ", "..sluice-streams", ".sluice_streams"})
        EXPECT_FALSE(is_stream_store(name)) << name;
    EXPECT_TRUE(leads_into_stream_store("a/.Sluice-streams/b"));
    EXPECT_TRUE(leads_into_stream_store(".sluice-streams"));
    EXPECT_FALSE(leads_into_stream_store("a/b"));
    EXPECT_FALSE(leads_into_stream_store(""));
}

class stream_store_test : public stream_test {
protected:
    [[nodiscard]] std::vector<std::string> names(std::string_view path = {}) {
        std::vector<std::string> found;
        auto listing = at(path)->children()->list().value();
        while (const listed_name* next = listing->next().value())
            found.emplace_back(next->name);
        std::ranges::sort(found);
        return found;
    }
    [[nodiscard]] int find(std::string_view path, follow_links links = follow_links::yes) {
        const int found = code(volume->find(path, links));
        const auto find_as = [&](name_match match) {
            return code(volume->find_with_status(path, links, {.read = true}, match));
        };
        EXPECT_EQ(find_as(name_match::any_case), found) << path;
        // In a missing directory, this is ENOENT.
        const int exactly = find_as(name_match::exact);
        EXPECT_TRUE(exactly == found or (exactly == ENOENT and found == ENOTDIR)) << path;
        return found;
    }
    [[nodiscard]] static mode_t bits(const fs::path& path) {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
        return status.st_mode & 07777U;
    }
};

TEST_F(stream_store_test, has_the_documented_layout) {
    put("f", "Stream", large);
    const fs::path directory = directory_of("f");
    EXPECT_EQ(bits(scratch.path_of(".sluice-streams")), 01700U);
    EXPECT_EQ(bits(directory.parent_path()), 01700U);
    EXPECT_EQ(bits(directory), 01700U);
    EXPECT_EQ(bits(directory / "=Stream"), 01600U);
    EXPECT_EQ(fs::file_size(directory / "=Stream"), large.size());
    struct stat of_file{};
    ASSERT_EQ(::stat(scratch.path_of("f").c_str(), &of_file), 0);
    const auto reference =
        load_stream_record(io::file_handle::open({}, scratch.path_of("f")).value()).value();
    EXPECT_EQ(reference->kind, stream_record_kind::reference);
    EXPECT_EQ(reference->inode, of_file.st_ino);
    EXPECT_EQ(reference->owner, of_file.st_uid);
    stream_record mark = *reference;
    mark.kind = stream_record_kind::mark;
    EXPECT_EQ(load_stream_record(io::directory_handle::open({}, directory.string()).value()).value(), mark);
    const auto stored = io::file_handle::open({}, (directory / "=Stream").string()).value();
    EXPECT_EQ(load_stream_record(stored).value(), mark);
    EXPECT_EQ(code(io::xattr_bytes(io::file_handle::open({}, scratch.path_of("f")).value(),
                                   "user.sluice.stream.Stream")),
              ENODATA)
        << "the attribute would be the stream";
}

TEST_F(stream_store_test, is_not_found_created_or_replaced_under_any_spelling) {
    put("f", "s", large);
    const std::string inside = fs::relative(directory_of("f"), scratch.path()).string();
    for (const std::string name : {".sluice-streams", ".SLUICE-STREAMS", "\xef\x80\xa9sluice-streams"}) {
        EXPECT_EQ(find(name), ENOENT) << name;
        EXPECT_EQ(find(name + "/lost"), ENOTDIR) << name;
        EXPECT_EQ(find(name + inside.substr(inside.find('/')) + "/=s"), ENOTDIR) << name;
        EXPECT_EQ(code(volume->find_directory(name)), ENOENT) << name;
        EXPECT_EQ(code(volume->create(name, {.kind = node_kind::directory})), EACCES) << name;
        EXPECT_EQ(code(volume->create(name + "/x", {})), ENOTDIR) << name;
        EXPECT_EQ(code(at("f")->names()->rename(name, when_taken::replace)), EACCES) << name;
        EXPECT_EQ(code(at("f")->names()->rename(name + "/x", when_taken::replace)), ENOTDIR) << name;
        EXPECT_EQ(code(at("f")->names()->link(name, when_taken::replace)), EACCES) << name;
        EXPECT_EQ(code(at("f")->names()->link(name + "/x", when_taken::refuse)), ENOTDIR) << name;
    }
    ASSERT_EQ(code(volume->create("d", {.kind = node_kind::directory})), 0);
    EXPECT_EQ(code(volume->create("d/.sluice-streams", {})), EACCES) << "in every directory";
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_store_test, is_not_listed) {
    put("f", "s", large);
    EXPECT_THAT(names(), ElementsAre("f"));
    EXPECT_EQ(find(".Sluice-Streams"), ENOENT) << "by the index of names";
}

TEST_F(stream_store_test, is_not_reached_by_links_whatever_they_are_called) {
    put("f", "s", large);
    const fs::path directory = directory_of("f");
    fs::create_symlink(".sluice-streams", scratch.path_of("store"));
    fs::create_symlink(fs::relative(directory, scratch.path()), scratch.path_of("directory"));
    fs::create_symlink(fs::relative(directory / "=s", scratch.path()), scratch.path_of("stream"));
    fs::create_hard_link(directory / "=s", scratch.path_of("hard"));
    const std::string inside = directory.parent_path().filename().string();
    for (const std::string& path :
         {std::string("store"), "store/" + inside, std::string("directory"), std::string("directory/=s"),
          std::string("stream"), std::string("hard")}) {
        EXPECT_EQ(find(path), ENOENT) << path;
        EXPECT_EQ(find(path), ENOENT) << path << ", now that it may be known";
    }
    EXPECT_EQ(find("hard", follow_links::no), ENOENT);
    for (const std::string path : {"store", "directory"}) {
        EXPECT_EQ(code(volume->find_directory(path)), ENOENT) << path;
        EXPECT_NE(code(volume->create(path + "/x", {})), 0) << path;
        EXPECT_EQ(code(at("f")->names()->rename(path + "/x", when_taken::refuse)), ENOTDIR) << path;
        EXPECT_EQ(code(at("f")->names()->link(path + "/x", when_taken::refuse)), ENOTDIR) << path;
    }
    auto listing = at("")->children()->list().value();
    while (const listed_name* next = listing->next().value())
        if (next->name == "store" or next->name == "stream") EXPECT_TRUE(next->leads_nowhere) << next->name;
}

TEST_F(stream_store_test, is_not_reached_in_a_directory_that_gives_its_group_to_new_ones) {
    ASSERT_EQ(::chmod(scratch.path().c_str(), 02770), 0);
    put("f", "s", large);
    ASSERT_EQ(bits(scratch.path_of(".sluice-streams")), 03700U) << "the bit is inherited";
    const fs::path directory = directory_of("f");
    fs::create_symlink(".sluice-streams", scratch.path_of("store"));
    fs::create_symlink(fs::relative(directory, scratch.path()), scratch.path_of("directory"));
    for (const std::string path : {"store", "directory", "directory/=s"})
        EXPECT_EQ(find(path), ENOENT) << path;
    for (const std::string path : {"store", "directory"}) {
        EXPECT_EQ(code(volume->find_directory(path)), ENOENT) << path;
        EXPECT_EQ(code(volume->create(path + "/x", {})), ENOTDIR) << path;
    }
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_store_test, is_not_reached_by_a_short_name) {
    reopen({.short_names = true});
    put("f", "s", large);
    const std::string inside = directory_of("f").parent_path().filename().string();
    EXPECT_EQ(find("SLUICE~1"), ENOENT);
    EXPECT_EQ(find("SLUICE~1/" + inside), ENOTDIR);
    EXPECT_EQ(code(volume->find_directory("SLUICE~1")), ENOENT);
    EXPECT_EQ(code(volume->create("SLUICE~1", {})), EACCES);
    EXPECT_EQ(code(volume->create("SLUICE~1/x", {})), ENOTDIR);
    EXPECT_EQ(code(at("f")->names()->rename("SLUICE~1", when_taken::replace)), EACCES);
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(stream_store_test, does_not_hide_files_that_only_look_like_its_own) {
    scratch.write("sticky", "x");
    ASSERT_EQ(::chmod(scratch.path_of("sticky").c_str(), 01600), 0);
    fs::create_directory(scratch.path_of("d"));
    ASSERT_EQ(::chmod(scratch.path_of("d").c_str(), 01700), 0);
    put("sticky", "s", large);
    put("d", "s", large);
    EXPECT_EQ(content("sticky", "s"), large);
    EXPECT_EQ(content("d", "s"), large);
    EXPECT_EQ(code(volume->create("d/g", {})), 0);
}

class recorder final : public change_listener {
public:
    void changed(const change& what) noexcept override { paths.emplace_back(what.path); }
    void overflowed() noexcept override { paths.emplace_back("(overflow)"); }
    void ended() noexcept override {}
    std::vector<std::string> paths;
};

TEST_F(stream_store_test, is_not_watched) {
    io::task_group feeding(*multiplexer);
    feeding.spawn(volume->changes()->run());
    recorder seen;
    {
        const auto early = volume->changes()->watch(*at(""), true, seen);
        put("f", "first", large);
        const auto late = volume->changes()->watch(*at(""), true, seen);
        put("f", "second", large);
        ASSERT_EQ(code(stream("f", "second")->names()->rename("third", when_taken::refuse)), 0);
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        while (std::chrono::steady_clock::now() < until)
            multiplexer->try_run_for(std::chrono::milliseconds(5));
    }
    EXPECT_THAT(seen.paths, Contains("f"));
    EXPECT_THAT(seen.paths, testing::Each("f"));
    feeding.cancel();
    const auto joined = [](io::task_group& group) -> io::task<void> { co_await group.join(); };
    io::sync_wait(*multiplexer, joined(feeding));
}

TEST_F(stream_store_test, that_another_user_could_have_prepared_is_not_used) {
    put("f", "small", "content");
    const auto refuse = [&](const char* what) {
        SCOPED_TRACE(what);
        reopen();
        ASSERT_TRUE(volume->stream_problem());
        EXPECT_EQ(volume->stream_problem()->code(), EACCES);
        const auto one = stream("f", "small");
        EXPECT_EQ(code(write(*one, large)), EACCES);
        EXPECT_EQ(content("f", "small"), "content");
        EXPECT_EQ(code(write(*one, "content")), 0) << "small streams do not need it";
    };
    const fs::path store = scratch.path_of(".sluice-streams");
    fs::create_directory(scratch.path_of("elsewhere"));
    ASSERT_EQ(::chmod(scratch.path_of("elsewhere").c_str(), 0700), 0);
    fs::create_symlink("elsewhere", store);
    refuse("a symbolic link");
    EXPECT_TRUE(fs::is_empty(scratch.path_of("elsewhere")));
    fs::remove(store);
    scratch.write(".sluice-streams", "");
    refuse("a file");
    fs::remove(store);
    fs::create_directory(store);
    ASSERT_EQ(::chmod(store.c_str(), 0770), 0);
    refuse("a directory that the group may enter");
    if (::geteuid() == 0) {
        ASSERT_EQ(::chmod(store.c_str(), 0700), 0);
        ASSERT_EQ(::chown(store.c_str(), 12345, 12345), 0);
        refuse("a directory of another account");
    }
    fs::remove(store);
    reopen();
    EXPECT_FALSE(volume->stream_problem());
    put("f", "small", large);
    EXPECT_EQ(content("f", "small"), large);
}

// Each change would separate the streams from their file again.
TEST_F(stream_store_test, that_is_a_subvolume_is_not_used) {
    const int directory = ::open(scratch.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    btrfs_ioctl_vol_args wanted{};
    std::ranges::copy(stream_store_name, wanted.name);
    const int made = ::ioctl(directory, BTRFS_IOC_SUBVOL_CREATE, &wanted);
    ::close(directory);
    if (made != 0) GTEST_SKIP() << "the working directory is not on btrfs";
    ASSERT_EQ(::chmod(scratch.path_of(".sluice-streams").c_str(), 01700), 0);
    reopen();
    ASSERT_TRUE(volume->stream_problem());
    EXPECT_EQ(volume->stream_problem()->code(), EOPNOTSUPP);
    put("f", "s", "small");
    EXPECT_EQ(code(write(*stream("f", "s"), large)), EOPNOTSUPP);
    EXPECT_EQ(content("f", "s"), "small");
    EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(stream_store_test, is_shared_by_an_outer_volume_and_those_in_it) {
    fs::create_directory(scratch.path_of("inner"));
    scratch.write("inner/g", "");
    const auto inner =
        host_volume::open(*multiplexer, scratch.path_of("inner"), {.streams_root = scratch.path()}).value();
    const auto of_inner = [&](std::string_view name, bool creates) {
        auto opened = inner->find("g", follow_links::yes)
                          .value()
                          ->attached()
                          ->open_stream({.name = name, .create = creates});
        if (opened) EXPECT_EQ(code((*opened)->data()->open_data(both)), 0);
        return opened;
    };
    ASSERT_EQ(code(write(**of_inner("s", true), large)), 0);
    EXPECT_FALSE(scratch.exists("inner/.sluice-streams"));
    EXPECT_EQ(content("inner/g", "s"), large);
    ASSERT_EQ(code(at("inner/g")->names()->rename("moved", when_taken::refuse)), 0);
    EXPECT_EQ(content("moved", "s"), large);
    ASSERT_EQ(code(at("moved")->names()->rename("inner/g", when_taken::refuse)), 0);
    EXPECT_EQ(read(**of_inner("s", false)), large);
}

TEST_F(stream_store_test, in_a_nested_volume_is_found_and_removed_with_its_directory) {
    fs::create_directory(scratch.path_of("inner"));
    scratch.write("inner/g", "");
    {
        const auto inner = host_volume::open(*multiplexer, scratch.path_of("inner")).value();
        const auto file = inner->find("g", follow_links::yes).value();
        const auto one = file->attached()->open_stream({.name = "s", .create = true}).value();
        ASSERT_EQ(code(one->data()->open_data(both)), 0);
        ASSERT_EQ(code(write(*one, large)), 0);
    }
    EXPECT_TRUE(scratch.exists("inner/.sluice-streams"));
    EXPECT_EQ(content("inner/g", "s"), large);
    EXPECT_THAT(names("inner"), ElementsAre("g"));
    EXPECT_EQ(code(at("inner")->names()->remove()), ENOTEMPTY);
    ASSERT_EQ(code(at("inner/g")->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());
    EXPECT_EQ(code(at("inner")->names()->remove()), 0) << "although an empty store is in it";
}

// As a snapshot, which has the same inodes with the same times.
TEST_F(stream_store_test, of_another_file_system_only_has_streams_to_copy) {
    put("f", "s", large);
    const std::string mount_point = scratch.path_of("mnt");
    fs::create_directory(mount_point);
    if (::mount("test", mount_point.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "no right to mount";
    const std::shared_ptr<const std::string> unmounting(
        &mount_point, [](const std::string* where) { (void)::umount2(where->c_str(), MNT_DETACH); });
    scratch.write("mnt/g", "");
    const auto file = io::file_handle::open({}, scratch.path_of("mnt/g"), io::mode::write).value();
    const stream_file facts = stream_file::of(file).value();
    const fs::path of_other = directory_of("f");
    const auto id = stream_id::parse(of_other.filename().string()).value();
    if (not store_stream_record(file, facts.record(stream_record_kind::reference, id),
                                record_storing::only_if_none))
        GTEST_SKIP() << "no attributes on tmpfs";
    ASSERT_TRUE(store_stream_record(io::directory_handle::open({}, of_other.string()).value(),
                                    facts.record(stream_record_kind::mark, id), record_storing::replace));
    const auto one = stream("mnt/g", "s");
    EXPECT_FALSE(one->data()->transfers_at_once());
    EXPECT_EQ(read(*one), large);
    ASSERT_EQ(code(write(*one, "changed")), 0);
    EXPECT_TRUE(scratch.exists("mnt/.sluice-streams")) << "on its own file system";
    ASSERT_EQ(code(at("mnt/g")->names()->remove()), 0);
    EXPECT_EQ(fs::file_size(of_other / "=s"), large.size());
}

TEST_F(stream_store_test, is_private_also_if_files_belong_to_other_users) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    ASSERT_EQ(::chown(scratch.path_of("f").c_str(), 12345, 54321), 0);
    put("f", "s", large);
    struct stat status{};
    ASSERT_EQ(::stat((directory_of("f") / "=s").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 12345U);
    EXPECT_EQ(status.st_gid, 54321U);
    ASSERT_EQ(::stat(directory_of("f").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 0U);
}

TEST_F(stream_store_test, moves_streams_back_that_were_taken_for_lost) {
    put("f", "s", large);
    const fs::path directory = directory_of("f");
    fs::create_directory(scratch.path_of(".sluice-streams/lost"));
    fs::rename(directory, scratch.path_of(".sluice-streams/lost/" + directory.filename().string()));
    reopen({.read_only = true});
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_FALSE(fs::exists(directory)) << "a read-only volume changes nothing";
    reopen();
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_TRUE(fs::exists(directory / "=s"));
}

TEST_F(stream_store_test, repeats_a_creation_that_was_interrupted) {
    put("f", "s", large);
    ASSERT_EQ(code(stream("f", "s")->names()->remove()), 0);
    // A directory without a mark, as after a crash between its creation and its mark.
    const fs::path directory = directory_of("f");
    fs::create_directories(directory);
    ASSERT_EQ(::chmod(directory.c_str(), 01700), 0);
    EXPECT_THAT(streams("f"), IsEmpty());
    put("f", "s", large);
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_TRUE(load_stream_record(io::directory_handle::open({}, directory.string()).value()).value());
}

}  // namespace
}  // namespace sluice::vfs
