#include "sluice/vfs/impersonated_volume.hpp"

#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::vfs {
namespace {

constexpr uid_t somebody = 54321;
using testing::Contains;
using testing::Not;

class impersonation : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root may assume another identity";
        ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
        for (const char* name : {"private", "public"})
            ASSERT_EQ(::mkdir(scratch.path_of(name).c_str(), 0700), 0);
        scratch.write("private/f", "secret");
        ASSERT_EQ(::chmod(scratch.path_of("public").c_str(), 0777), 0);
        account = impersonated_volume::create(*behind, {.user_id = somebody, .group_id = somebody}).value();
    }

    io::test_directory scratch{"/dev/shm"};
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> behind = host_volume::open(*multiplexer, scratch.path()).value();
    std::unique_ptr<impersonated_volume> account;
};

TEST_F(impersonation, the_kernel_denies_operations_without_the_rights_of_the_account) {
    EXPECT_EQ(code(account->find("private/f", follow_links::yes)), EACCES);
    EXPECT_EQ(code(account->create("new", {})), EACCES);
    const auto directory = account->find("private", follow_links::yes).value();
    EXPECT_EQ(code(directory->children()->list()), EACCES);
    EXPECT_EQ(code(directory->names()->rename("other", when_taken::refuse)), EACCES);
    EXPECT_EQ(code(directory->names()->remove()), EACCES);
    EXPECT_EQ(code(behind->find("private/f", follow_links::yes)), 0)
        << "the server's own identity has the right";
}

TEST_F(impersonation, new_files_belong_to_the_account) {
    const auto file = account->create("public/f", {.dos = dos_attributes::hidden}).value();
    const metadata status = file->status().value();
    EXPECT_EQ(status.user_id, somebody);
    EXPECT_EQ(status.group_id, somebody);
    EXPECT_EQ(status.dos, dos_attributes::hidden);
    EXPECT_EQ(code(file->data()->open_data({.read = true, .write = true})), 0);
    EXPECT_EQ(code(file->names()->rename("PUBLIC/g", when_taken::refuse)), 0);
    EXPECT_EQ(file->path(), "public/g");
}

TEST_F(impersonation, short_names_are_not_set_in_a_directory_that_the_account_may_not_list) {
    const auto with_short_names =
        host_volume::open(*multiplexer, scratch.path(), {.short_names = true}).value();
    const auto restricted =
        impersonated_volume::create(*with_short_names, {.user_id = somebody, .group_id = somebody}).value();
    ASSERT_EQ(::chmod(scratch.path_of("public").c_str(), 0733), 0);
    const auto file = restricted->create("public/A long name", {}).value();
    EXPECT_EQ(code(file->names()->set_alternate_name(short_name("CHOSEN"))), EACCES);
}

TEST_F(impersonation, rights_are_checked_again_when_data_is_opened) {
    scratch.write("readable", "x");
    ASSERT_EQ(::chmod(scratch.path_of("readable").c_str(), 0644), 0);
    const auto file = account->find("READABLE", follow_links::yes).value();
    EXPECT_EQ(code(file->data()->open_data({.read = true})), 0);
    EXPECT_EQ(code(file->data()->open_data({.read = true, .write = true})), EACCES);
}

TEST_F(impersonation, writes_of_the_account_clear_the_set_user_id_bit_of_a_program) {
    scratch.write("public/program", "#!");
    const std::string program = scratch.path_of("public/program");
    ASSERT_EQ(::chmod(program.c_str(), 04777), 0);
    const auto mode = [&] {
        struct stat status{};
        EXPECT_EQ(::stat(program.c_str(), &status), 0);
        return status.st_mode & 07777;
    };
    const std::array<std::byte, 4> bytes{};
    const auto write = [&](volume& through) {
        const auto file = through.find("public/program", follow_links::yes).value();
        EXPECT_EQ(code(file->data()->open_data({.read = false, .write = true})), 0);
        return io::sync_wait(*multiplexer, file->data()->co_write(bytes, 0));
    };
    EXPECT_EQ(code(write(*behind)), 0);
    EXPECT_EQ(mode(), 04777U) << "root keeps the bit";
    EXPECT_EQ(code(write(*account)), 0);
    EXPECT_EQ(mode(), 0777U);
}

TEST_F(impersonation, nodes_listings_and_data_keep_the_account_after_its_volume_is_destroyed) {
    const auto file = account->create("public/f", {}).value();
    const auto directory = account->find("public", follow_links::yes).value();
    const auto listing = directory->children()->list().value();
    account.reset();
    EXPECT_EQ(code(file->data()->open_data({.read = true, .write = true})), 0);
    EXPECT_EQ(code(io::sync_wait(*multiplexer, file->data()->co_write(std::array<std::byte, 4>{}, 0))), 0);
    ASSERT_NE(listing->next().value(), nullptr);
    ASSERT_EQ(code(file->data()->truncate(0)), 0);
    ASSERT_EQ(code(file->attached()->become_link("target")), 0);
    EXPECT_EQ(file->status().value().user_id, somebody);
}

TEST_F(impersonation, a_listing_gives_security_descriptors_only_of_files_that_the_account_may_read) {
    if (not behind->features().has_security) GTEST_SKIP() << "the file system has no attributes";
    for (const char* name : {"public/open", "public/secret"}) {
        const auto made = behind->create(name, {}).value();
        ASSERT_EQ(code(made->attached()->set_security(std::array<std::byte, 4>{})), 0);
    }
    ASSERT_EQ(::chmod(scratch.path_of("public/secret").c_str(), 0600), 0);
    const auto directory = account->find("public", follow_links::yes).value();
    const auto listing = directory->children()->list().value();
    std::map<std::string, int> codes;
    while (const listed_name* next = listing->next().value())
        codes[std::string(next->name)] = code(listing->security());
    EXPECT_EQ(codes, (std::map<std::string, int>{{"open", 0}, {"secret", EACCES}}));
}

TEST_F(impersonation, names_in_the_index_are_not_revealed_to_an_account_that_may_not_list_them) {
    ASSERT_EQ(::chmod(scratch.path_of("private").c_str(), 0711), 0);
    ASSERT_EQ(code(behind->find("private/F", follow_links::yes)), 0) << "now the names are known";
    EXPECT_EQ(code(account->find("private/F", follow_links::yes)), ENOENT);
    EXPECT_EQ(code(account->find("private/f", follow_links::yes)), 0) << "an exact lookup is permitted";
    ASSERT_EQ(::chmod(scratch.path_of("private").c_str(), 0755), 0);
    EXPECT_EQ(code(account->find("private/F", follow_links::yes)), 0);
}

TEST_F(impersonation, files_can_be_put_into_a_directory_that_may_not_be_listed) {
    ASSERT_EQ(::chmod(scratch.path_of("private").c_str(), 0733), 0);
    EXPECT_EQ(code(account->create("private/letter", {})), 0);
    EXPECT_EQ(code(account->create("private/letter", {})), EEXIST);
}

TEST_F(impersonation, a_stream_is_read_and_written_by_accounts_that_may_read_and_write_its_file) {
    if (not behind->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    scratch.write("readable", "x");
    ASSERT_EQ(::chmod(scratch.path_of("readable").c_str(), 0644), 0);
    const auto as_root = behind->find("readable", follow_links::yes).value();
    ASSERT_EQ(code(as_root->attached()->open_stream({.name = "s", .create = true})), 0);
    const auto file = account->find("readable", follow_links::yes).value();
    const auto stream = file->attached()->open_stream({.name = "s"}).value();
    EXPECT_EQ(code(stream->data()->open_data({.read = true})), 0);
    EXPECT_EQ(code(stream->data()->open_data({.read = true, .write = true})), EACCES);
    ASSERT_EQ(::chmod(scratch.path_of("readable").c_str(), 0600), 0);
    EXPECT_EQ(code(file->attached()->open_stream({.name = "s"}).value()->data()->open_data({.read = true})),
              EACCES);
}

// The store belongs to the server, and its streams to the owners of their files.
TEST_F(impersonation, a_large_stream_needs_the_same_rights_and_belongs_to_the_owner_of_its_file) {
    if (not behind->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    const std::string large(10'000, 'L');
    const auto write = [&](node& to) {
        return code(io::sync_wait(*multiplexer, to.data()->co_write(std::as_bytes(std::span(large)), 0)));
    };
    const auto own = account->create("public/f", {}).value();
    const auto stream = own->attached()->open_stream({.name = "s", .create = true}).value();
    ASSERT_EQ(code(stream->data()->open_data({.read = true, .write = true})), 0);
    ASSERT_EQ(write(*stream), 0);
    ASSERT_EQ(write(*stream), 0) << "when it is large already";
    EXPECT_EQ(stream->status().value().size_bytes, large.size());

    struct stat status{};
    ASSERT_EQ(::stat(scratch.path_of(".sluice-streams").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 01700U);
    EXPECT_EQ(status.st_uid, ::geteuid());
    std::string path;
    for (const auto& each : std::filesystem::recursive_directory_iterator(scratch.path()))
        if (each.path().filename() == "=s") path = each.path();
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 01600U);
    EXPECT_EQ(status.st_uid, somebody);
    EXPECT_EQ(status.st_gid, somebody);

    ASSERT_EQ(::chown(scratch.path_of("public/f").c_str(), 0, 0), 0);
    ASSERT_EQ(::chmod(scratch.path_of("public/f").c_str(), 0644), 0);
    const auto other = account->find("public/f", follow_links::yes).value();
    const auto readable = other->attached()->open_stream({.name = "S"}).value();
    EXPECT_EQ(code(readable->data()->open_data({.read = true})), 0);
    EXPECT_EQ(code(readable->data()->open_data({.read = true, .write = true})), EACCES);
    EXPECT_EQ(code(readable->names()->remove()), EACCES);
    EXPECT_EQ(code(readable->names()->rename("t", when_taken::refuse)), EACCES);
    EXPECT_EQ(code(readable->change({.is_sparse = true})), EACCES);
    EXPECT_NE(code(other->attached()->open_stream({.name = "t", .create = true})), 0);
    EXPECT_EQ(code(account->find(".sluice-streams", follow_links::yes)), ENOENT);
    EXPECT_EQ(static_cast<uid_t>(::setfsuid(::geteuid())), ::geteuid()) << "the identity of the thread";

    ASSERT_EQ(code(account->find("public/f", follow_links::yes).value()->names()->remove()), 0)
        << "the directory is writable";
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(impersonation, all_streams_of_a_file_are_removed_by_an_account_that_may_only_write_it) {
    if (not behind->features().has_streams) GTEST_SKIP() << "no extended attributes on this file system";
    const auto own = account->create("public/f", {}).value();
    const std::string large(10'000, 'L');
    for (const std::string& text : {std::string("small"), large}) {
        const auto made =
            own->attached()->open_stream({.name = std::to_string(text.size()), .create = true}).value();
        ASSERT_EQ(code(made->data()->open_data({.write = true})), 0);
        ASSERT_EQ(
            code(io::sync_wait(*multiplexer, made->data()->co_write(std::as_bytes(std::span(text)), 0))), 0);
    }
    ASSERT_EQ(::chmod(scratch.path_of("public/f").c_str(), 0200), 0);
    const auto writable = account->find("public/f", follow_links::yes).value();
    EXPECT_EQ(writable->attached()->streams().value().size(), 2U);
    EXPECT_EQ(code(writable->attached()->remove_streams()), 0);
    EXPECT_TRUE(behind->find("public/f", follow_links::yes).value()->attached()->streams().value().empty());
}

TEST_F(impersonation, a_pause_returns_the_identity_of_the_process_for_a_while) {
    const auto who = account_identity::create({.user_id = somebody, .group_id = somebody}).value();
    const auto user = [] { return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))); };
    {
        const account_identity::pause without_effect;
        EXPECT_EQ(user(), ::geteuid());
    }
    const account_identity::use now(*who);
    EXPECT_EQ(user(), somebody);
    {
        const account_identity::pause paused;
        EXPECT_EQ(user(), ::geteuid());
        EXPECT_FALSE(account_identity::is_in_use());
        const account_identity::pause nested;
        EXPECT_EQ(user(), ::geteuid());
    }
    EXPECT_EQ(user(), somebody);
    EXPECT_TRUE(account_identity::is_in_use());
}

class recorder final : public change_listener {
public:
    void changed(const change& what) noexcept override { paths.emplace_back(what.path); }
    void overflowed() noexcept override { ++overflows; }
    void ended() noexcept override {}

    std::vector<std::string> paths;
    int overflows = 0;
};

class watching_account : public impersonation {
protected:
    void SetUp() override {
        impersonation::SetUp();
        if (testing::Test::IsSkipped()) return;
        root = account->find("", follow_links::yes).value();
        auto begun = account->changes()->watch(*root, true, seen);
        ASSERT_EQ(code(begun), 0) << "a directory that may not be listed does not end the watch";
        watch = *std::move(begun);
    }
    /// Returns the paths that were reported since the last call.
    std::vector<std::string> news() {
        EXPECT_TRUE(io::sync_wait(*multiplexer, behind->changes()->co_changed()));
        behind->changes()->deliver();
        return std::exchange(seen.paths, {});
    }

    recorder seen;
    node_ptr root;
    std::unique_ptr<change_watch> watch;
};

TEST_F(watching_account, gets_no_reports_from_directories_it_may_not_list) {
    scratch.write("private/secret", "x");
    scratch.write("public/news", "x");
    const auto reported = news();
    EXPECT_THAT(reported, Contains("public/news"));
    EXPECT_THAT(reported, Not(Contains("private/secret")));
}

TEST_F(watching_account, gets_no_reports_from_a_directory_made_later_that_it_may_not_list) {
    for (const auto& [name, mode] : {std::pair("new", 0700), std::pair("open", 0755)})
        ASSERT_EQ(::mkdir(scratch.path_of(name).c_str(), static_cast<mode_t>(mode)), 0);
    (void)news();
    scratch.write("new/secret", "x");
    scratch.write("open/news", "x");
    const auto reported = news();
    EXPECT_THAT(reported, Contains("open/news"));
    EXPECT_THAT(reported, Not(Contains("new/secret")));
    EXPECT_EQ(seen.overflows, 0);
}

TEST_F(watching_account, gets_reports_from_a_directory_while_it_may_list_it) {
    ASSERT_EQ(::mkdir(scratch.path_of("private/below").c_str(), 0755), 0);
    ASSERT_EQ(::chmod(scratch.path_of("private").c_str(), 0755), 0);
    EXPECT_THAT(news(), Contains("private/f")) << "its names are new to the account";
    scratch.write("private/below/news", "x");
    EXPECT_THAT(news(), Contains("private/below/news"));
    ASSERT_EQ(::chmod(scratch.path_of("private").c_str(), 0700), 0);
    scratch.write("private/secret", "x");
    scratch.write("private/below/secret", "x");
    scratch.write("public/news", "x");
    const auto reported = news();
    EXPECT_THAT(reported, Contains("public/news"));
    EXPECT_THAT(reported, Not(Contains("private/secret")));
    EXPECT_THAT(reported, Not(Contains("private/below/secret")));
}

TEST_F(watching_account, updates_each_of_its_watches_after_one_change_of_rights) {
    recorder other;
    const auto second = account->changes()->watch(*root, true, other).value();
    const auto of_other =
        impersonated_volume::create(*behind, {.user_id = somebody + 1, .group_id = somebody});
    recorder of_group;
    const auto third = (*of_other)
                           ->changes()
                           ->watch(*(*of_other)->find("", follow_links::yes).value(), true, of_group)
                           .value();
    ASSERT_EQ(::chown(scratch.path_of("private").c_str(), somebody, 0), 0);
    (void)news();
    scratch.write("private/news", "x");
    EXPECT_THAT(news(), Contains("private/news"));
    EXPECT_THAT(other.paths, Contains("private/news"));
    EXPECT_THAT(of_group.paths, Not(Contains("private/news"))) << "another account";
    ASSERT_EQ(::chown(scratch.path_of("private").c_str(), 0, 0), 0);
    (void)news();
    other.paths.clear();
    scratch.write("private/secret", "x");
    scratch.write("public/news", "x");
    EXPECT_THAT(news(), Not(Contains("private/secret")));
    EXPECT_THAT(other.paths, Contains("public/news"));
    EXPECT_THAT(other.paths, Not(Contains("private/secret")));
}

TEST_F(watching_account, keeps_its_watch_after_its_volume_is_destroyed) {
    account.reset();
    ASSERT_EQ(::mkdir(scratch.path_of("later").c_str(), 0700), 0);
    (void)news();
    scratch.write("later/secret", "x");
    scratch.write("public/news", "x");
    const auto reported = news();
    EXPECT_THAT(reported, Contains("public/news"));
    EXPECT_THAT(reported, Not(Contains("later/secret")));
}

TEST_F(impersonation, the_thread_has_its_own_identity_back_after_each_call) {
    (void)account->find("private/f", follow_links::yes);
    EXPECT_EQ(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))), ::geteuid());
    EXPECT_EQ(static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))), ::getegid());
}

}  // namespace
}  // namespace sluice::vfs
