#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"

// Shares that refer to other servers: NEGOTIATE, TREE_CONNECT, CREATE, and the referrals themselves
// ([MS-SMB2] 3.3.5.15.2, [MS-DFSC] 3.2.5).

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

void add_referrals(server::server_configuration& rules) {
    server::share_configuration other;
    other.name = "Elsewhere";
    other.referral = {"\\first\\share", "\\second\\share\\directory"};
    rules.shares.push_back(other);
    other.name = "of_others";
    other.users = {"v"};
    rules.shares.push_back(other);
    other.users.clear();
    other.name = "encrypted";
    other.encryption = server::protection::required;
    rules.shares.push_back(other);
}

void add_referrals_for_guests(server::server_configuration& rules) {
    add_referrals(rules);
    rules.allows_guests = true;
}

void add_referrals_of_smb_2(server::server_configuration& rules) {
    add_referrals(rules);
    rules.dialect_max = wire::dialect::smb_2_1;
}

std::vector<std::byte> request_for(std::string_view path, std::uint16_t version_max = 4) {
    std::vector<std::byte> room(4096);
    byte_writer writer(room);
    EXPECT_TRUE(
        encode(writer, wire::dfs_referral_request{.version_max = version_max, .path = std::string(path)}));
    room.resize(writer.position());
    return room;
}

class referrals : public command_test {
protected:
    explicit referrals(void (*adjust)(server::server_configuration&) = add_referrals) : command_test(adjust) {
        EXPECT_EQ(client().connect_tree("IPC$"), nt_status::success);
    }

    compliant_client::answer ask(bytes_view input, control_code code = control_code::dfs_get_referrals,
                                 std::uint32_t output_bytes_max = 4096) {
        return control(code, wire::file_id_of_no_file, input, output_bytes_max);
    }
    nt_status refusal_of(std::string_view path) { return ask(request_for(path)).status(); }
    wire::dfs_referral_reply referral_of(std::string_view path, std::uint16_t version_max = 4) {
        const auto said = ask(request_for(path, version_max));
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_dfs_referral_reply(output_of_control(said)).value();
    }
    wire::tree_connect_reply connect(std::string_view share) {
        const std::string path = wire::utf16_of("\\\\server\\" + std::string(share)).value();
        const auto said = client().call(command::tree_connect,
                                        wire::tree_connect_args{.path = std::as_bytes(std::span(path))});
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_tree_connect_reply(said.message()).value();
    }
};

TEST_F(referrals, name_the_targets_in_their_order) {
    const wire::dfs_referral_reply reply = referral_of("\\server\\elsewhere\\a\\b");
    EXPECT_EQ(reply.version, 4);
    EXPECT_EQ(reply.path, "\\server\\elsewhere");
    EXPECT_EQ(reply.path_consumed_bytes, 2 * reply.path.size());
    EXPECT_EQ(reply.time_to_live_seconds, server::limits::referral_time_to_live.count());
    EXPECT_EQ(reply.targets, (std::vector<std::string>{"\\first\\share", "\\second\\share\\directory"}));
}

TEST_F(referrals, count_the_path_that_they_replace_in_utf16) {
    const wire::dfs_referral_reply reply = referral_of("\\ß漢😀\\ELSEWHERE");
    EXPECT_EQ(reply.path, "\\ß漢😀\\ELSEWHERE");
    EXPECT_EQ(reply.path_consumed_bytes, 2 * (1 + 4 + 1 + 9));
}

TEST_F(referrals, are_not_found_for_paths_without_a_server) {
    EXPECT_EQ(refusal_of("\\\\elsewhere\\a"), nt_status::not_found);
    EXPECT_EQ(refusal_of("\\\\server\\elsewhere"), nt_status::not_found);
}

TEST_F(referrals, have_the_newest_version_that_the_client_knows) {
    for (std::uint16_t version = 1; version <= 4; ++version)
        EXPECT_EQ(referral_of("\\server\\elsewhere", version).version, version);
    EXPECT_EQ(referral_of("\\server\\elsewhere", 0xffff).version, 4);
    EXPECT_EQ(referral_of("\\server\\elsewhere", 1).targets.size(), 2U);
    EXPECT_EQ(ask(request_for("\\server\\elsewhere", 0)).status(), nt_status::invalid_parameter);
}

TEST_F(referrals, are_found_by_extended_requests) {
    std::array<std::byte, 256> room{};
    byte_writer writer(room);
    ASSERT_TRUE(encode(writer, wire::dfs_referral_request_ex{.path = "\\server\\elsewhere", .site = "here"}));
    const auto said = ask(*writer.finish(), control_code::dfs_get_referrals_ex);
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_dfs_referral_reply(output_of_control(said))->targets.size(), 2U);
}

TEST_F(referrals, are_found_on_the_trees_of_all_shares) {
    for (const auto* const share : {"files", "elsewhere"}) {
        ASSERT_EQ(client().connect_tree(share), nt_status::success);
        EXPECT_EQ(referral_of("\\server\\elsewhere").targets.size(), 2U);
    }
}

TEST_F(referrals, do_not_exist_for_domains_directories_and_unknown_shares) {
    for (const auto* const path :
         {"", "\\", "\\domain", "\\domain\\", "\\server\\none", "\\server\\files", "\\server\\files\\a",
          "\\server\\IPC$", "\\domain\\SYSVOL", "\\\\server\\elsewhere"})
        EXPECT_EQ(refusal_of(path), nt_status::not_found) << path;
}

TEST_F(referrals, do_not_exist_for_users_that_may_not_connect) {
    EXPECT_EQ(refusal_of("\\server\\of_others"), nt_status::not_found);
    EXPECT_EQ(refusal_of("\\server\\encrypted"), nt_status::not_found) << "the session has no cipher";
}

TEST_F(referrals, need_a_well_formed_request) {
    EXPECT_EQ(ask({}).status(), nt_status::invalid_parameter);
    const auto request = request_for("\\server\\elsewhere");
    EXPECT_EQ(ask(*bytes_view(request).first(request.size() - 2)).status(), nt_status::invalid_parameter);
    EXPECT_EQ(ask(request, control_code::dfs_get_referrals_ex).status(), nt_status::invalid_parameter);
    EXPECT_EQ(refusal_of("server\\elsewhere"), nt_status::invalid_parameter);
    EXPECT_EQ(refusal_of("\\server\\" + std::string(1500, 'a')), nt_status::invalid_parameter);
}

TEST_F(referrals, that_are_too_large_name_fewer_targets) {
    const auto request = request_for("\\server\\elsewhere");
    const wire::dfs_referral_reply whole = referral_of("\\server\\elsewhere");
    const auto bytes = static_cast<std::uint32_t>(wire::encoded_bytes_of(whole).value());
    const auto one = ask(request, control_code::dfs_get_referrals, bytes - 1);
    ASSERT_EQ(one.status(), nt_status::success);
    EXPECT_EQ(wire::decode_dfs_referral_reply(output_of_control(one))->targets,
              (std::vector<std::string>{"\\first\\share"}));
    const auto none = ask(request, control_code::dfs_get_referrals, 60);
    EXPECT_EQ(none.status(), nt_status::buffer_overflow);
    EXPECT_TRUE(output_of_control(none).empty());
}

TEST_F(referrals, are_announced_by_negotiate_and_tree_connect) {
    EXPECT_TRUE(wire::has(client().server_capabilities(), wire::capabilities::dfs));
    const wire::tree_connect_reply reply = connect("elsewhere");
    EXPECT_EQ(reply.type, wire::share_type::disk);
    EXPECT_EQ(reply.flags, wire::share_flags::dfs | wire::share_flags::dfs_root);
    EXPECT_EQ(reply.capabilities, wire::share_capabilities::dfs);
    EXPECT_EQ(connect("files").flags, wire::share_flags::manual_caching);
    EXPECT_EQ(connect("files").capabilities, wire::share_capabilities::none);
}

TEST_F(referrals, cover_no_file) {
    ASSERT_EQ(client().connect_tree("elsewhere"), nt_status::success);
    for (const auto* const name : {"", "a", "a\\b"})
        EXPECT_EQ(client().try_create(name, compliant_client::for_everything()), nt_status::path_not_covered);
    EXPECT_EQ(query(wire::file_id_of_no_file, wire::file_information_class::basic).status(),
              nt_status::file_closed);
    EXPECT_EQ(client().connect_tree("of_others"), nt_status::access_denied);
}

TEST_F(referrals, come_and_go_with_a_reload) {
    std::vector<server::share_configuration> shares;
    const auto now = server_of_test().context().shares.current();
    for (const auto& each : *now)
        if (not each->is_pipes()) shares.push_back(each->configuration());
    std::vector<server::share_configuration> changed = shares;
    changed.at(1).referral = {"\\third\\share"};
    server_of_test().replace_shares(std::move(changed));
    EXPECT_EQ(referral_of("\\server\\elsewhere").targets, (std::vector<std::string>{"\\third\\share"}));
    std::erase_if(shares, [](const server::share_configuration& each) { return each.volume == nullptr; });
    server_of_test().replace_shares(std::move(shares));
    EXPECT_EQ(refusal_of("\\server\\elsewhere"), nt_status::fs_driver_required);
    compliant_client later(where_, 2);
    EXPECT_FALSE(wire::has(later.server_capabilities(), wire::capabilities::dfs));
}

TEST_F(referrals, that_a_reload_removes_end_for_connected_clients) {
    std::vector<server::share_configuration> shares;
    const auto now = server_of_test().context().shares.current();
    for (const auto& each : *now)
        if (each->has_volume()) shares.push_back(each->configuration());
    ASSERT_EQ(client().connect_tree("elsewhere"), nt_status::success);
    EXPECT_EQ(client().try_create("f", compliant_client::for_everything()), nt_status::path_not_covered);
    server_of_test().replace_shares(std::move(shares));
    EXPECT_EQ(client().try_create("f", compliant_client::for_everything()), nt_status::network_name_deleted);
}

class referrals_in_smb_2 : public referrals {
protected:
    referrals_in_smb_2() : referrals(add_referrals_of_smb_2) {}
};

TEST_F(referrals_in_smb_2, are_announced_and_found) {
    EXPECT_TRUE(wire::has(client().server_capabilities(), wire::capabilities::dfs));
    EXPECT_EQ(referral_of("\\server\\elsewhere").targets.size(), 2U);
}

class referrals_for_guests : public referrals {
protected:
    referrals_for_guests() : referrals(add_referrals_for_guests) {}
};

TEST_F(referrals_for_guests, are_found_if_guests_are_allowed) {
    EXPECT_EQ(client().log_on("", ""), nt_status::success);
    EXPECT_EQ(client().connect_tree("IPC$"), nt_status::success);
    EXPECT_EQ(referral_of("\\server\\elsewhere").targets.size(), 2U);
}

}  // namespace
}  // namespace sluice::smb_simulation
