#include "sluice/smb/wire/message/tree_connect.hpp"

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/utf16.hpp"

// TREE_CONNECT ([MS-SMB2] 3.3.5.7).

namespace sluice::smb_simulation {
namespace {

void add_shares(server::server_configuration& rules) {
    server::share_configuration other = rules.shares.back();
    other.name = "read_only";
    other.is_read_only = true;
    rules.shares.push_back(other);
    other.name = "of_others";
    other.users = {"v"};
    rules.shares.push_back(other);
    other.name = "encrypted";
    other.users.clear();
    other.encryption = server::protection::required;
    rules.shares.push_back(other);
}

class tree_connect_command : public command_test {
protected:
    tree_connect_command() : command_test(add_shares) {}

    polite_client::answer connect(std::string_view path) {
        const std::string spelled = wire::utf16_of(path).value();
        return client().call(command::tree_connect,
                             wire::tree_connect_args{.path = std::as_bytes(std::span(spelled))});
    }
    wire::tree_connect_reply reply_to(std::string_view path) {
        const auto said = connect(path);
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_tree_connect_reply(said.message()).value();
    }
};

TEST_F(tree_connect_command, reports_the_kind_of_the_share_and_the_rights_to_it) {
    EXPECT_EQ(reply_to("\\\\server\\files").type, wire::share_type::disk);
    EXPECT_EQ(reply_to("\\\\server\\files").maximal_access, wire::file_all_access);
    EXPECT_EQ(reply_to("\\\\server\\IPC$").type, wire::share_type::pipe);
    EXPECT_EQ(reply_to("\\\\server\\read_only").maximal_access,
              wire::file_generic_read | wire::file_generic_execute);
}

TEST_F(tree_connect_command, accepts_any_server_name_and_any_case) {
    EXPECT_EQ(connect("\\\\elsewhere.example\\FILES").status(), nt_status::success);
}

TEST_F(tree_connect_command, refuses_a_name_that_no_share_has) {
    for (const char* const path : {"\\\\server\\none", "\\\\server", "files", "", "\\\\server\\files\\d"})
        EXPECT_EQ(connect(path).status(), nt_status::bad_network_name) << path;
}

TEST_F(tree_connect_command, refuses_a_share_of_other_users) {
    EXPECT_EQ(connect("\\\\server\\of_others").status(), nt_status::access_denied);
}

TEST_F(tree_connect_command, refuses_a_share_that_requires_encryption_to_a_session_without_a_cipher) {
    EXPECT_EQ(connect("\\\\server\\encrypted").status(), nt_status::access_denied);
}

TEST_F(tree_connect_command, without_a_session_is_refused) {
    polite_client unknown_client(where_);
    EXPECT_EQ(unknown_client.connect_tree("files"), nt_status::user_session_deleted);
}

}  // namespace
}  // namespace sluice::smb_simulation
