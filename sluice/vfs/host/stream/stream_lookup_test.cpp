// The lookup of streams in several stores, also while other processes move them.

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_testing.hpp"
#include "sluice/vfs/host/stream/traced_process_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

class stream_lookup : public stream_test {
protected:
    explicit stream_lookup(const std::string& parent = fs::current_path().string()) : stream_test(parent) {}

    [[nodiscard]] std::unique_ptr<host_volume> volume_of(const std::string& path,
                                                         const host_volume_options& options = {}) const {
        return host_volume::open(*multiplexer, scratch.path_of(path), options).value();
    }
    /// Stores a large stream "s" of a file of a volume.
    void put_in(host_volume& of, std::string_view path) {
        const auto file = of.find(path, follow_links::yes).value();
        const auto one = file->attached()->open_stream({.name = "s", .create = true}).value();
        ASSERT_EQ(code(one->data()->open_data(both)), 0);
        ASSERT_EQ(code(one->data()->write_here(std::as_bytes(std::span(large)), 0)), 0);
    }
    /// Creates a file in a directory that has a store of its own, in which its stream is.
    void put_in_nested_store(const std::string& directory, const std::string& file) {
        fs::create_directories(scratch.path_of(directory));
        scratch.write(directory + "/" + file, "");
        put_in(*volume_of(directory), file);
        ASSERT_TRUE(scratch.exists(directory + "/.sluice-streams"));
    }
    /// Returns the size of the stream "s"; -errno if it cannot be found.
    [[nodiscard]] static std::int64_t size_of_stream(node& file) {
        const auto found = file.attached()->open_stream({.name = "s"});
        if (not found) return -code(found);
        const auto status = (*found)->status();
        return status ? static_cast<std::int64_t>(status->size_bytes) : -code(status);
    }
    [[nodiscard]] std::int64_t size_in(host_volume& of, std::string_view path) {
        return size_of_stream(*of.find(path, follow_links::yes).value());
    }
    /// Returns the path of a directory of streams in another store.
    [[nodiscard]] fs::path in_store_of(const std::string& directory, const fs::path& streams) const {
        return fs::path(scratch.path_of(directory)) / ".sluice-streams" / streams.parent_path().filename() /
               streams.filename();
    }
    [[nodiscard]] static std::vector<std::string> stores_in(const fs::path& directory) {
        std::vector<std::string> found;
        for (const auto& each : fs::recursive_directory_iterator(directory))
            if (each.path().filename() == ".sluice-streams")
                found.push_back(fs::relative(each.path().parent_path(), directory).string());
        return found;
    }

    const std::int64_t large_size = static_cast<std::int64_t>(large.size());
};

class mounted {
public:
    explicit mounted(std::string where) : where_(std::move(where)) {
        fs::create_directories(where_);
        is_mounted_ = ::mount("test", where_.c_str(), "tmpfs", 0, "size=1m") == 0;
    }
    mounted(const mounted&) = delete;
    mounted& operator=(const mounted&) = delete;
    ~mounted() {
        if (is_mounted_) (void)::umount2(where_.c_str(), MNT_DETACH);
    }
    [[nodiscard]] bool is_mounted() const noexcept { return is_mounted_; }

private:
    const std::string where_;
    bool is_mounted_ = false;
};

TEST_F(stream_lookup, uses_one_store_for_shares_on_another_file_system_than_the_outer_one) {
    const mounted other(scratch.path_of("m"));
    if (not other.is_mounted()) GTEST_SKIP() << "no right to mount";
    fs::create_directories(scratch.path_of("m/x/y"));
    scratch.write("m/x/y/of outer", "");
    scratch.write("m/x/y/of inner", "");
    reopen();
    const auto inner = volume_of("m/x/y", {.streams_root = scratch.path()});
    if (not inner->features().has_streams) GTEST_SKIP() << "no attributes on tmpfs";
    put_in(*volume, "m/x/y/of outer");
    put_in(*inner, "of inner");
    EXPECT_EQ(size_in(*inner, "of outer"), large_size);
    EXPECT_EQ(size_in(*volume, "m/x/y/of inner"), large_size);
    EXPECT_THAT(stores_in(scratch.path()), ElementsAre("m"));
}

TEST_F(stream_lookup, searches_stores_between_the_outer_share_and_the_inner_one) {
    fs::create_directories(scratch.path_of("a/b/c"));
    scratch.write("a/b/c/f", "");
    put_in(*volume_of("a/b"), "c/f");
    const auto inner = volume_of("a/b/c", {.read_only = true, .streams_root = scratch.path()});
    EXPECT_EQ(size_in(*inner, "f"), large_size);
}

TEST_F(stream_lookup, moves_streams_of_a_nested_store_so_that_their_file_may_leave_its_directory) {
    put_in_nested_store("inner", "g");
    EXPECT_EQ(size_in(*volume_of(".", {.read_only = true}), "inner/g"), large_size);
    EXPECT_FALSE(scratch.exists(".sluice-streams")) << "a read-only volume changes nothing";
    EXPECT_EQ(size_in(*volume, "inner/g"), large_size);
    fs::rename(scratch.path_of("inner/g"), scratch.path_of("g"));
    EXPECT_EQ(content("g", "s"), large);
    EXPECT_TRUE(fs::exists(directory_of("g") / "=s"));
    EXPECT_THAT(stored(), ElementsAre("=s"));
}

TEST_F(stream_lookup, moves_no_streams_that_are_those_of_another_file) {
    put_in_nested_store("inner", "g");
    copy_reference("inner/g", "inner/copy");
    EXPECT_EQ(content("inner/copy", "s"), large);
    EXPECT_FALSE(scratch.exists(".sluice-streams"));
}

TEST_F(stream_lookup, fails_instead_of_finding_nothing_if_there_are_too_few_descriptors) {
    put_in_nested_store("a/inner", "g");
    const auto file = at("a/inner/g");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = ::dup(0);
    ASSERT_GE(next, 0);
    ::close(next);
    int failures = 0;
    for (rlim_t more = 0; more != 16; ++more) {
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(next) + more;
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        const std::int64_t found = size_of_stream(*file);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT_THAT(found, AnyOf(large_size, -EMFILE)) << "with " << more << " descriptors";
        failures += found == large_size ? 0 : 1;
    }
    EXPECT_GT(failures, 2);
    EXPECT_LT(failures, 16);
}

TEST_F(stream_lookup, fails_if_a_nested_store_of_the_server_cannot_be_used_but_not_for_those_of_others) {
    put_in_nested_store("inner", "g");
    const std::string store = scratch.path_of("inner/.sluice-streams");
    ASSERT_EQ(::chmod(store.c_str(), 01750), 0);
    EXPECT_EQ(size_in(*volume, "inner/g"), -EACCES) << "others have got rights to it";
    EXPECT_EQ(code(at("inner/g")->attached()->open_stream({.name = "s", .create = true})), EACCES)
        << "an empty attribute would hide the large stream";
    ASSERT_EQ(::chmod(store.c_str(), 01700), 0);
    ASSERT_EQ(code(stream("inner/g", "s")->names()->remove()), 0);
    fs::remove_all(store);
    scratch.write("inner/.sluice-streams", "a file of a user");
    EXPECT_THAT(streams("inner/g"), IsEmpty());
    fs::remove(store);
    fs::create_directory_symlink("/", store);
    EXPECT_THAT(streams("inner/g"), IsEmpty());
    if (::geteuid() != 0) return;
    fs::remove(store);
    fs::create_directory(store);
    ASSERT_EQ(::chown(store.c_str(), 12345, 12345), 0);
    EXPECT_THAT(streams("inner/g"), IsEmpty());
}

TEST_F(stream_lookup, fails_if_streams_may_be_in_directories_that_are_not_known) {
    put_in_nested_store("inner", "g");
    const auto file = at("inner/g");
    fs::create_hard_link(scratch.path_of("inner/g"), scratch.path_of("inner/other name"));
    fs::remove(scratch.path_of("inner/g"));
    EXPECT_EQ(size_of_stream(*file), -EIO);
    EXPECT_EQ(code(file->attached()->open_stream({.name = "s", .create = true})), EIO);
    EXPECT_EQ(content("inner/other name", "s"), large);
    fs::remove(scratch.path_of("inner/other name"));
    EXPECT_EQ(size_of_stream(*file), large_size) << "they are in the first store now";
}

TEST_F(stream_lookup, finds_nothing_if_the_file_was_removed_and_had_nothing) {
    put("f", "s", large);
    const auto file = at("f");
    ASSERT_EQ(code(stream("f", "s")->names()->remove()), 0);
    fs::remove(scratch.path_of("f"));
    EXPECT_EQ(size_of_stream(*file), -ENOENT);
}

TEST_F(stream_lookup, takes_time_that_is_linear_in_the_depth) {
    const auto time_at = [&](int depth) {
        std::string path;
        for (int i = 0; i != depth; ++i)
            path += "d/";
        fs::create_directories(scratch.path_of(path));
        path += "f";
        scratch.write(path, "");
        put(path, "s", large);
        const auto file = at(path);
        EXPECT_EQ(code(stream(path, "s")->names()->remove()), 0);
        auto best = std::chrono::steady_clock::duration::max();
        for (int i = 0; i != 10; ++i) {
            const auto start = std::chrono::steady_clock::now();
            EXPECT_EQ(size_of_stream(*file), -ENOENT);
            best = std::min(best, std::chrono::steady_clock::now() - start);
        }
        return best;
    };
    const auto shallow = time_at(100);
    EXPECT_LT(time_at(800), 20 * shallow) << "the depth is 8 times that of the other";
}

// --- what other owners may use

TEST_F(stream_lookup, gives_a_restored_file_its_streams_if_both_have_other_owners_now) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    put("f", "s", large);
    const fs::path streams_of_f = directory_of("f");
    copy_reference("f", "restored");
    ASSERT_EQ(::chown(scratch.path_of("restored").c_str(), 12345, 12345), 0);
    EXPECT_EQ(content("restored", "s"), "error " + std::to_string(ENOENT)) << "of another owner";
    ASSERT_EQ(::chown((streams_of_f / "=s").c_str(), 12345, 12345), 0);
    EXPECT_EQ(content("restored", "s"), large);
    ASSERT_EQ(code(write(*stream("restored", "s"), "changed")), 0);
    EXPECT_EQ(content("restored", "s"), "changed" + large.substr(7));
    EXPECT_NE(directory_of("restored"), streams_of_f);
}

TEST(stream_owner, is_compared_if_the_file_system_has_no_birth_times) {
    const stream_file file{.device = 1, .inode = 2, .born = 0, .user_id = 3, .group_id = 3};
    const auto is_own = [&](const stream_record& mark, const stream_file& of) {
        return stream_directory({.store = {}, .above = {}, .itself = {}, .name = "", .device = 1}, mark, of,
                                false)
            .is_own();
    };
    stream_record mark = file.record(stream_record_kind::mark, {});
    EXPECT_TRUE(is_own(mark, file));
    mark.owner = 4;
    EXPECT_FALSE(is_own(mark, file)) << "the inode may have been one of another user";
    stream_file with_time = file;
    with_time.born = 5;
    mark = with_time.record(stream_record_kind::mark, {});
    mark.owner = 4;
    EXPECT_TRUE(is_own(mark, with_time)) << "only the owner was changed";
}

// --- while other processes move them

class moved_streams : public stream_lookup {
protected:
    moved_streams() : stream_lookup("/dev/shm") {}

    // Runs a lookup in another process as often as it makes system calls, and `move` before one of
    // them: another one each time.
    void look_during(const std::function<void()>& prepare, const std::function<void(node&)>& look,
                     const std::function<void()>& move) {
        unsigned moved = 0;
        for (bool is_complete = false; not is_complete and not HasFailure(); ++moved) {
            SCOPED_TRACE("moved before call " + std::to_string(moved));
            volume.reset();
            fs::remove_all(scratch.path());
            fs::create_directory(scratch.path());
            prepare();
            reopen({.read_only = true});
            const auto file = at("a/inner/g");
            const auto child = traced_process::start([&] { look(*file); });
            if (child == nullptr) GTEST_SKIP() << "this sandbox does not let processes be traced";
            bool is_running = true;
            for (unsigned calls = 0; is_running and calls <= moved; ++calls)
                is_running = child->run_to_call();
            is_complete = not is_running;
            move();
            if (is_running) child->run_to_end();
        }
        EXPECT_GE(moved, 10U) << "the process has made fewer calls than expected";
    }
    void expect_large(node& file) const { EXPECT_EQ(size_of_stream(file), large_size); }
};

TEST_F(moved_streams, are_found_if_they_move_back_from_lost) {
    for (const auto& [share, file_in_share] :
         {std::pair{".", "a/inner/g"}, {"a", "inner/g"}, {"a/inner", "g"}}) {
        SCOPED_TRACE(std::string("in the store of ") + share);
        fs::path lost;
        fs::path used;
        look_during(
            [&] {
                fs::create_directories(scratch.path_of("a/inner"));
                scratch.write("a/inner/g", "");
                put_in(*volume_of(share), file_in_share);
                used = in_store_of(share, directory_of("a/inner/g"));
                lost = used.parent_path().parent_path() / "lost" / used.filename();
                fs::create_directory(lost.parent_path());
                fs::rename(used, lost);
            },
            [&](node& file) { expect_large(file); }, [&] { fs::rename(lost, used); });
    }
}

TEST_F(moved_streams, are_found_if_they_move_to_the_first_store) {
    look_during([&] { put_in_nested_store("a/inner", "g"); }, [&](node& file) { expect_large(file); },
                [&] {
                    const fs::path to = directory_of("a/inner/g");
                    fs::create_directories(to.parent_path());
                    for (const fs::path& each : {to.parent_path(), to.parent_path().parent_path()})
                        fs::permissions(each, fs::perms::owner_all | fs::perms::sticky_bit);
                    fs::rename(in_store_of("a/inner", to), to);
                });
}

TEST_F(moved_streams, are_found_if_their_file_moves_with_its_directory) {
    look_during(
        [&] {
            put_in_nested_store("a/inner", "g");
            fs::create_directory(scratch.path_of("b"));
        },
        [&](node& file) { expect_large(file); },
        [&] { fs::rename(scratch.path_of("a/inner"), scratch.path_of("b/inner")); });
}

}  // namespace
}  // namespace sluice::vfs
