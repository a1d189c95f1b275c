#include "sluice/smb/wire/message/tree_connect.hpp"

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/utf16.hpp"

// TREE_CONNECT ([MS-SMB2] 3.3.5.7).

namespace sluice::smb_simulation {
namespace {

constexpr access_mask only_read = wire::file_generic_read | wire::file_generic_execute;

void add_shares(server::server_configuration& rules) {
    server::share_configuration other = rules.shares.back();
    other.name = "read_only";
    other.is_read_only = true;
    rules.shares.push_back(other);
    other.name = "of_others";
    other.users = {"v"};
    other.guests = server::guest_access::write;
    rules.shares.push_back(other);
    other.name = "read_only_to_u";
    other.is_read_only = false;
    other.users.clear();
    other.read_only_users = {"U"};
    rules.shares.push_back(other);
    other.name = "read_only_to_guests";
    other.read_only_users = {"guest"};
    rules.shares.push_back(other);
    rules.allows_guests = true;
    other.read_only_users.clear();
    other.name = "for_writers";
    other.write_users = {"v", "guest"};
    rules.shares.push_back(other);
    other.name = "for_writers_but_one";
    other.write_users = {"u"};
    other.read_only_users = {"u"};
    rules.shares.push_back(other);
    other.read_only_users.clear();
    other.name = "for_writer_u";
    rules.shares.push_back(other);
    other.write_users.clear();
    other.name = "of_no_user";
    other.users = server::user_list(std::vector<std::string>{});
    rules.shares.push_back(other);
    other.users.clear();
    other.name = "without_guests";
    other.guests = server::guest_access::none;
    rules.shares.push_back(other);
    other.name = "read_by_guests";
    other.guests = server::guest_access::read;
    rules.shares.push_back(other);
    other.name = "for_hosts";
    other.hosts = {.allowed = {server::ip_network::parse("10.0.0.0/8").value()},
                   .denied = {server::ip_network::parse("10.0.0.9").value()}};
    rules.shares.push_back(other);
    other.hosts = {};
    other.name = "encrypted";
    other.users.clear();
    other.encryption = server::protection::required;
    rules.shares.push_back(other);
    other.name = "access_based";
    other.encryption = server::protection::offered;
    other.hides_unreadable = true;
    rules.shares.push_back(other);
}

class tree_connect_command : public command_test {
protected:
    tree_connect_command() : command_test(add_shares) {}

    static compliant_client::answer connect(compliant_client& from, std::string_view path) {
        const std::string spelled = wire::utf16_of(path).value();
        return from.call(command::tree_connect,
                         wire::tree_connect_args{.path = std::as_bytes(std::span(spelled))});
    }
    compliant_client::answer connect(std::string_view path) { return connect(client(), path); }
    static wire::tree_connect_reply reply_to(compliant_client& from, std::string_view path) {
        const auto said = connect(from, path);
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_tree_connect_reply(said.message()).value();
    }
    wire::tree_connect_reply reply_to(std::string_view path) { return reply_to(client(), path); }
};

TEST_F(tree_connect_command, reports_the_kind_of_the_share_and_the_rights_to_it) {
    EXPECT_EQ(reply_to("\\\\server\\files").type, wire::share_type::disk);
    EXPECT_EQ(reply_to("\\\\server\\files").maximal_access, wire::file_all_access);
    EXPECT_EQ(reply_to("\\\\server\\IPC$").type, wire::share_type::pipe);
    EXPECT_EQ(reply_to("\\\\server\\read_only").maximal_access, only_read);
}

TEST_F(tree_connect_command, reports_that_a_share_hides_unreadable_files) {
    EXPECT_EQ(reply_to("\\\\server\\files").flags, wire::share_flags::manual_caching);
    EXPECT_EQ(reply_to("\\\\server\\access_based").flags, wire::share_flags::access_based_directory_enum);
}

TEST_F(tree_connect_command, limits_the_rights_of_users_that_may_only_read) {
    EXPECT_EQ(reply_to("\\\\server\\read_only_to_u").maximal_access, only_read);
    EXPECT_EQ(reply_to("\\\\server\\read_only_to_guests").maximal_access, wire::file_all_access);
    compliant_client anonymous(where_, 2);
    ASSERT_EQ(anonymous.log_on("", ""), nt_status::success);
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\read_only_to_u").maximal_access, wire::file_all_access);
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\read_only_to_guests").maximal_access, only_read);
}

TEST_F(tree_connect_command, limits_the_rights_of_a_user_that_counts_as_a_guest) {
    where_.accounts.guest = "u";
    compliant_client guest(where_, 2);
    ASSERT_EQ(guest.log_on("u", "p"), nt_status::success);
    EXPECT_EQ(reply_to(guest, "\\\\server\\read_only_to_guests").maximal_access, only_read);
}

TEST_F(tree_connect_command, lets_only_the_named_users_write_if_any_are_named) {
    EXPECT_EQ(reply_to("\\\\server\\for_writers").maximal_access, only_read);
    EXPECT_EQ(reply_to("\\\\server\\for_writer_u").maximal_access, wire::file_all_access);
    EXPECT_EQ(reply_to("\\\\server\\for_writers_but_one").maximal_access, only_read) << "read-only wins";
}

TEST_F(tree_connect_command, lets_guests_only_read_unless_the_share_lets_them_write) {
    compliant_client anonymous(where_, 2);
    ASSERT_EQ(anonymous.log_on("", ""), nt_status::success);
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\files").maximal_access, only_read) << "the default";
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\read_by_guests").maximal_access, only_read);
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\for_writers").maximal_access, wire::file_all_access);
    EXPECT_EQ(reply_to(anonymous, "\\\\server\\for_writer_u").maximal_access, only_read);
    EXPECT_EQ(connect(anonymous, "\\\\server\\without_guests").status(), nt_status::access_denied);
    EXPECT_EQ(reply_to("\\\\server\\without_guests").maximal_access, wire::file_all_access);
}

TEST_F(tree_connect_command, refuses_all_users_if_the_list_of_users_is_empty) {
    EXPECT_EQ(connect("\\\\server\\of_no_user").status(), nt_status::access_denied);
}

TEST_F(tree_connect_command, refuses_a_client_whose_address_the_share_denies) {
    const auto log_on_from = [&](compliant_client& from) {
        EXPECT_EQ(from.log_on("u", "p"), nt_status::success);
    };
    compliant_client allowed(where_, io::socket_address::ip("10.0.0.8", 1).value());
    log_on_from(allowed);
    EXPECT_EQ(connect(allowed, "\\\\server\\for_hosts").status(), nt_status::success);
    for (const char* const address : {"10.0.0.9", "::ffff:10.0.0.9", "11.0.0.1", "2001:db8::1"}) {
        compliant_client denied(where_, io::socket_address::ip(address, 1).value());
        log_on_from(denied);
        EXPECT_EQ(connect(denied, "\\\\server\\for_hosts").status(), nt_status::access_denied) << address;
        EXPECT_EQ(connect(denied, "\\\\server\\files").status(), nt_status::success) << address;
    }
}

// A reload of the shares, as SIGHUP does it.
class reloaded_shares : public tree_connect_command {
protected:
    // Replaces all shares with "files", changed.
    template <class Change>
    void reload_files(Change change) {
        server::share_configuration fresh;
        for (const auto& one : *server_of_test().context().shares.current())
            if (one->configuration().name == "files") fresh = one->configuration();
        change(fresh);
        std::vector<server::share_configuration> shares{fresh};
        server_of_test().replace_shares(std::move(shares));
    }
    nt_status open_f(access_mask access) {
        auto how = compliant_client::for_everything();
        how.desired_access = access;
        return client().try_create("f", how);
    }
};

TEST_F(reloaded_shares, end_the_tree_and_the_opens_of_a_user_who_may_not_connect_any_more) {
    const wire::file_id file = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) { of.users = {"v"}; });
    EXPECT_EQ(write(file, "x"), nt_status::network_name_deleted);
    EXPECT_EQ(client().connect_tree("files"), nt_status::access_denied);
    EXPECT_EQ(server_of_test().context().opens.size(), 0U);
}

TEST_F(reloaded_shares, end_the_tree_of_a_user_who_may_only_read_from_now_on) {
    const wire::file_id file = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) { of.read_only_users = {"u"}; });
    EXPECT_EQ(write(file, "x"), nt_status::network_name_deleted);
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    EXPECT_EQ(open_f(wire::file_all_access), nt_status::access_denied);
}

TEST_F(reloaded_shares, keep_the_tree_of_a_user_who_may_do_as_much_as_before) {
    const wire::file_id file = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) {
        of.users = {"u"};
        of.write_users = {"u"};
        of.comment = "changed";
    });
    EXPECT_EQ(write(file, "x"), nt_status::success);
}

TEST_F(reloaded_shares, widen_no_rights_of_a_tree_that_is_connected) {
    reload_files([](server::share_configuration& of) { of.read_only_users = {"u"}; });
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    reload_files([](server::share_configuration& of) { of.read_only_users.clear(); });
    EXPECT_EQ(open_f(wire::file_all_access), nt_status::access_denied);
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    EXPECT_EQ(open_f(wire::file_all_access), nt_status::success);
}

TEST_F(reloaded_shares, end_the_tree_of_a_client_whose_address_is_denied_from_now_on) {
    const wire::file_id file = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) {
        of.hosts.allowed = {server::ip_network::parse("192.0.2.0/24").value()};
    });
    EXPECT_EQ(write(file, "x"), nt_status::network_name_deleted);
    EXPECT_EQ(client().connect_tree("files"), nt_status::access_denied);
}

TEST_F(reloaded_shares, end_the_tree_of_a_share_with_other_rules_for_files) {
    const wire::file_id file = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) { of.file_rules = 1; });
    EXPECT_EQ(write(file, "x"), nt_status::network_name_deleted);
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    const wire::file_id again = open_for(wire::file_all_access);
    reload_files([](server::share_configuration& of) { of.comment = "changed"; });
    EXPECT_EQ(write(again, "x"), nt_status::success);
}

TEST_F(reloaded_shares, keep_the_tree_of_a_share_that_is_removed) {
    const wire::file_id file = open_for(wire::file_all_access);
    server_of_test().replace_shares({});
    EXPECT_EQ(write(file, "x"), nt_status::success);
}

TEST_F(tree_connect_command, bounds_the_rights_of_all_opens) {
    (void)open_for(wire::file_all_access);
    ASSERT_EQ(client().connect_tree("read_only_to_u"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    EXPECT_EQ(client().try_create("f", how), nt_status::access_denied);
    EXPECT_EQ(client().try_create("none", how), nt_status::access_denied) << "nothing is looked up";
    how.desired_access = wire::file_generic_read;
    how.options = wire::create_options::delete_on_close;
    EXPECT_EQ(client().try_create("f", how), nt_status::access_denied);
    how.options = {};
    how.disposition = wire::create_disposition::create;
    EXPECT_EQ(client().try_create("g", how), nt_status::access_denied);
    how.disposition = wire::create_disposition::overwrite;
    EXPECT_EQ(client().try_create("f", how), nt_status::access_denied);
}

TEST_F(tree_connect_command, bounds_maximum_allowed_and_the_reported_rights) {
    (void)open_for(wire::file_all_access);
    ASSERT_EQ(client().connect_tree("read_only_to_u"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    how.desired_access = access_mask::maximum_allowed;
    how.contexts.maximal_access = wire::maximal_access_query{};
    const auto reply = client().create("f", how);
    ASSERT_TRUE(reply.contexts.maximal_access);
    EXPECT_EQ(reply.contexts.maximal_access->access, only_read);
    EXPECT_EQ(content_of(reply.file), "");
    EXPECT_EQ(write(reply.file, "x"), nt_status::access_denied);
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
    compliant_client unknown_client(where_);
    EXPECT_EQ(unknown_client.connect_tree("files"), nt_status::user_session_deleted);
}

}  // namespace
}  // namespace sluice::smb_simulation
