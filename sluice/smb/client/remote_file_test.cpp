#include "sluice/smb/client/remote_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <span>

#include "tests/smb_client/rig.hpp"

// An open file: what its calls return and report.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

constexpr open_options to_write{.access = smb::wire::file_generic_read | smb::wire::file_generic_write |
                                          smb::wire::access_mask::delete_object,
                                .shares = smb::wire::share_access(7),
                                .disposition = smb::wire::create_disposition::open_if};

class open_file : public testing::Test {
protected:
    open_file() : client(world) {}
    void SetUp() override { ASSERT_FALSE(client.error) << client.error->message(); }

    [[nodiscard]] std::unique_ptr<remote_file> open(const std::string& name, open_options how = to_write) {
        auto opened = world.wait_for(client.tree->open(name, how));
        EXPECT_TRUE(opened) << opened.error().message();
        return opened->release();
    }
    [[nodiscard]] outcome<std::size_t> write(remote_file& to, std::string_view text) {
        return world.wait_for(to.co_write(std::as_bytes(std::span(text)), 0));
    }

    rig world;
    logged_on client;
};

TEST_F(open_file, reads_fewer_bytes_at_its_end_and_none_after_it) {
    const auto file = open("f");
    ASSERT_EQ(write(*file, "0123456789"), 10U);
    std::array<std::byte, 8> room{};
    EXPECT_EQ(world.wait_for(file->co_read(mutable_bytes(room), 6)), 4U);
    EXPECT_EQ(room[0], std::byte{'6'});
    EXPECT_EQ(world.wait_for(file->co_read(mutable_bytes(room), 10)), 0U);
    EXPECT_EQ(world.wait_for(file->co_read(mutable_bytes(room), 1000)), 0U);
}

TEST_F(open_file, without_the_right_to_write_reports_the_error_of_the_server) {
    (void)open("f");
    const auto file = open("f", {.shares = smb::wire::share_access(7)});
    const auto wrote = write(*file, "x");
    ASSERT_FALSE(wrote);
    EXPECT_EQ(wrote.error().status(), nt_status::access_denied);
    EXPECT_EQ(wrote.error().code(), EACCES);
}

TEST_F(open_file, is_unusable_after_close) {
    const auto file = open("f");
    ASSERT_EQ(write(*file, "0123"), 4U);
    const auto last = world.wait_for(file->co_close());
    ASSERT_TRUE(last);
    EXPECT_EQ(last->end_of_file_bytes, 4U);
    const auto again = world.wait_for(file->co_close());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().status(), nt_status::file_closed);
}

TEST_F(open_file, that_is_excluded_by_share_modes_reports_a_sharing_violation) {
    auto alone = to_write;
    alone.shares = smb::wire::share_access::none;
    const auto first = open("f", alone);
    const auto second = world.wait_for(client.tree->open("f", to_write));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().status(), nt_status::sharing_violation);
    EXPECT_EQ(second.error().code(), EBUSY);
}

TEST_F(open_file, that_replaces_a_file_of_its_name_has_another_number) {
    const auto first = open("f");
    const auto number = world.wait_for(first->co_file_number());
    ASSERT_TRUE(number);
    ASSERT_TRUE(world.wait_for(first->rename("g", false)));
    const auto second = open("f");
    const auto other = world.wait_for(second->co_file_number());
    ASSERT_TRUE(other);
    EXPECT_NE(*number, *other);
}

}  // namespace
}  // namespace sluice::smb_client_testing
