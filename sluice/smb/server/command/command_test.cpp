#include "sluice/smb/server/command/command.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using wire::command;

TEST(command_rules, exist_for_every_command_with_a_reply) {
    for (std::uint16_t code = 0; code != 0x13; ++code)
        EXPECT_EQ(rule_of(command(code)) != nullptr, command(code) != command::cancel) << code;
    EXPECT_EQ(rule_of(command(0x13)), nullptr);
    EXPECT_EQ(rule_of(command(0xffff)), nullptr);
}

TEST(command_rules, let_a_client_without_a_session_negotiate_log_on_and_echo_only) {
    for (std::uint16_t code = 0; code != 0x13; ++code) {
        const command_rule* const rule = rule_of(command(code));
        if (rule == nullptr) continue;
        const bool is_open_to_all = command(code) == command::negotiate or
                                    command(code) == command::session_setup or
                                    command(code) == command::echo;
        EXPECT_EQ(rule->needs_session, not is_open_to_all) << code;
    }
}

TEST(command_rules, ask_for_a_session_where_they_ask_for_a_tree_connection) {
    for (std::uint16_t code = 0; code != 0x13; ++code) {
        const command_rule* const rule = rule_of(command(code));
        if (rule != nullptr and rule->needs_tree) EXPECT_TRUE(rule->needs_session) << code;
    }
}

// What ends something, and what others wait for ([MS-SMB2] 3.3.5.2.9).
TEST(command_rules, serve_an_expired_session_in_what_frees_resources) {
    for (const command one :
         {command::logoff, command::close, command::lock, command::echo, command::oplock_break})
        EXPECT_TRUE(rule_of(one)->allowed_when_expired) << static_cast<unsigned>(one);
    for (const command one : {command::create, command::read, command::write, command::tree_connect})
        EXPECT_FALSE(rule_of(one)->allowed_when_expired) << static_cast<unsigned>(one);
}

}  // namespace
}  // namespace sluice::smb::server
