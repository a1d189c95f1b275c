#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "sluice/smb/wire/rpc/rpc_host_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

namespace sluice::smb::wire {
namespace {

using namespace rpc_testing;

class wkssvc : public testing::Test {
protected:
    wkssvc() { bind(pipe_, rpc_wkssvc_interface); }

    std::vector<std::byte> users(std::uint32_t level, std::uint32_t bytes_max = 0xFFFFFFFF,
                                 std::optional<std::uint32_t> after = std::nullopt) {
        ndr_writer arguments = server_and(level);
        arguments.u32(level);
        arguments.pointer(true);
        arguments.u32(0);
        arguments.pointer(false);
        arguments.u32(bytes_max);
        arguments.pointer(after.has_value());
        if (after) arguments.u32(*after);
        return call(pipe_, 2, arguments);
    }
    static std::uint32_t last_number(const std::vector<std::byte>& results) {
        return bytes_view(results).take_at<le32>(results.size() - 4)->value();
    }

    host_of_tests host_;
    whole_pipe pipe_{rpc_service::wkssvc, host_};
};

TEST_F(wkssvc, returns_the_workstation_at_every_level) {
    for (const std::uint32_t level : {100u, 101u, 102u}) {
        const auto results = call(pipe_, 0, server_and(level));
        ndr_reader in(results);
        EXPECT_EQ(in.u32(), level);
        EXPECT_EQ(in.pointer(), true);
        for (int left = level == 100 ? 5 : level == 101 ? 6 : 7; left != 0; --left)
            EXPECT_TRUE(in.u32().has_value());
        EXPECT_EQ(in.text(), "SERVER");
        EXPECT_EQ(in.text(), "WORKGROUP");
        if (level != 100) EXPECT_EQ(in.text(), "");
        EXPECT_EQ(in.u32(), rpc_no_error);
        EXPECT_EQ(in.remaining(), 0u);
    }
    ASSERT_TRUE(pipe_.write(request(5, {})));
    EXPECT_EQ(fault_of(next_message(pipe_)), 0x1C010002u);
}

TEST_F(wkssvc, lists_the_users_for_administrators) {
    host_.caller_.is_administrator = true;
    for (const std::uint32_t level : {0u, 1u}) {
        const auto results = users(level);
        ndr_reader in(results);
        for (const std::uint32_t expected : {level, level})
            EXPECT_EQ(in.u32(), expected);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), 2u);
        for (std::uint32_t left = 2 + 2 * (level == 0 ? 1 : 4); left != 0; --left)
            EXPECT_TRUE(in.u32().has_value());
        for (const char* const user : {"alice", "bob"}) {
            EXPECT_EQ(in.text(), user);
            if (level == 0) continue;
            EXPECT_EQ(in.text(), "SERVER");
            EXPECT_EQ(in.text(), "");
            EXPECT_EQ(in.text(), "SERVER");
        }
        EXPECT_EQ(in.u32(), 2u);
        EXPECT_EQ(in.pointer(), false);
        EXPECT_EQ(in.u32(), rpc_no_error);
        EXPECT_EQ(in.remaining(), 0u);
    }
    EXPECT_EQ(last_number(users(2)), rpc_error_invalid_level);
}

TEST_F(wkssvc, lists_the_users_in_parts) {
    host_.caller_.is_administrator = true;
    const auto first = users(0, 1, 0);
    ndr_reader in(first);
    for (int left = 6; left != 0; --left)
        EXPECT_TRUE(in.u32().has_value());
    EXPECT_TRUE(in.u32().has_value());
    EXPECT_EQ(in.text(), "alice");
    EXPECT_EQ(in.u32(), 2u);
    EXPECT_EQ(in.pointer(), true);
    EXPECT_EQ(in.u32(), 3u) << "the position of the last user";
    EXPECT_EQ(in.u32(), rpc_error_more_data);
    const auto second = users(0, 1, 3);
    EXPECT_EQ(bytes_view(second).take_at<le32>(12)->value(), 1u);
    EXPECT_EQ(last_number(second), rpc_no_error);
    EXPECT_EQ(last_number(users(0, 1, 9)), rpc_no_error);
}

TEST_F(wkssvc, lists_no_users_for_others) {
    EXPECT_EQ(last_number(users(1)), rpc_error_access_denied);
}

}  // namespace
}  // namespace sluice::smb::wire
