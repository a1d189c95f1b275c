#include "sluice/vfs/impersonated_volume.hpp"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/sync_wait.hpp"
#include "sluice/io/volume_test.hpp"
#include "sluice/vfs/host_volume.hpp"

namespace sluice::vfs {
namespace {

constexpr uid_t somebody = 54321;

template <class T>
int code(const result<T>& of) noexcept {
    return of ? 0 : of.error().code();
}

class impersonation : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root may take another's identity";
        ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
        for (const char* name : {"private", "public"})
            ASSERT_EQ(::mkdir(folder.path_of(name).c_str(), 0700), 0);
        folder.write("private/f", "secret");
        ASSERT_EQ(::chmod(folder.path_of("public").c_str(), 0777), 0);
        account = impersonated_volume::create(*behind, {.user_id = somebody, .group_id = somebody}).value();
    }

    io::test_directory folder{"/dev/shm"};
    std::unique_ptr<io::io_multiplexer> multiplexer = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> behind = host_volume::open(*multiplexer, folder.path()).value();
    std::unique_ptr<impersonated_volume> account;
};

TEST_F(impersonation, the_kernel_refuses_what_the_account_may_not_do) {
    EXPECT_EQ(code(account->find("private/f", follow_links::yes)), EACCES);
    EXPECT_EQ(code(account->create("new", {})), EACCES);
    const auto directory = account->find("private", follow_links::yes).value();
    EXPECT_EQ(code(directory->list()), EACCES);
    EXPECT_EQ(code(directory->rename("other", when_taken::refuse)), EACCES);
    EXPECT_EQ(code(directory->remove()), EACCES);
    EXPECT_EQ(code(behind->find("private/f", follow_links::yes)), 0) << "as ourselves we may";
}

TEST_F(impersonation, what_is_created_belongs_to_the_account) {
    const auto file = account->create("public/f", {.dos = dos_attributes::hidden}).value();
    const metadata status = file->status().value();
    EXPECT_EQ(status.user_id, somebody);
    EXPECT_EQ(status.group_id, somebody);
    EXPECT_EQ(status.dos, dos_attributes::hidden);
    EXPECT_EQ(code(file->open_data({.read = true, .write = true})), 0);
    EXPECT_EQ(code(file->rename("PUBLIC/g", when_taken::refuse)), 0);
    EXPECT_EQ(file->path(), "public/g");
}

TEST_F(impersonation, rights_are_checked_again_when_data_is_opened) {
    folder.write("readable", "x");
    ASSERT_EQ(::chmod(folder.path_of("readable").c_str(), 0644), 0);
    const auto file = account->find("READABLE", follow_links::yes).value();
    EXPECT_EQ(code(file->open_data({.read = true})), 0);
    EXPECT_EQ(code(file->open_data({.read = true, .write = true})), EACCES);
}

TEST_F(impersonation, what_the_account_writes_takes_the_set_user_id_bit_of_a_program) {
    folder.write("public/program", "#!");
    const std::string program = folder.path_of("public/program");
    ASSERT_EQ(::chmod(program.c_str(), 04777), 0);
    const auto mode = [&] {
        struct stat status{};
        EXPECT_EQ(::stat(program.c_str(), &status), 0);
        return status.st_mode & 07777;
    };
    const std::array<std::byte, 4> bytes{};
    const auto write = [&](volume& through) {
        const auto file = through.find("public/program", follow_links::yes).value();
        EXPECT_EQ(code(file->open_data({.read = false, .write = true})), 0);
        return io::sync_wait(*multiplexer, file->co_write(bytes, 0));
    };
    EXPECT_EQ(code(write(*behind)), 0);
    EXPECT_EQ(mode(), 04777U) << "root may";
    EXPECT_EQ(code(write(*account)), 0);
    EXPECT_EQ(mode(), 0777U);
}

TEST_F(impersonation, the_thread_has_its_own_identity_back_after_each_call) {
    (void)account->find("private/f", follow_links::yes);
    EXPECT_EQ(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))), ::geteuid());
    EXPECT_EQ(static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))), ::getegid());
}

}  // namespace
}  // namespace sluice::vfs
