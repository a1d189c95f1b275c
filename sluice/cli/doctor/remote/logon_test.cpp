#include "sluice/cli/doctor/remote/logon.hpp"

#include <gtest/gtest.h>

// Findings about logons.

namespace sluice::cli::doctor {
namespace {

using smb::client::client_error;
using smb::wire::nt_status;

const remote_target target{.domain = {}, .user = "bob", .host = "nas", .share = "media", .path = "a/b"};

[[nodiscard]] logon_facts refused_with(nt_status status) {
    logon_facts seen;
    seen.logon = client_error::of_status("log on", status);
    return seen;
}

TEST(doctor_logon, over_the_network_a_wrong_user_and_a_wrong_password_are_the_same) {
    const auto found = judge_logon(target, refused_with(nt_status::logon_failure), account_facts{});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].what.find("or the password"), std::string::npos);
}

[[nodiscard]] account_facts in_file(known_account account, bool is_certain) {
    return {.account = account,
            .users_file = "/home/a b/users",
            .users_file_given = {},
            .is_certain = is_certain};
}

TEST(doctor_logon, on_the_host_of_the_server_the_users_file_distinguishes_them) {
    const auto refused = refused_with(nt_status::logon_failure);
    const auto remedy_for = [&](known_account account) {
        return judge_logon(target, refused, in_file(account, true)).front().remedy;
    };
    EXPECT_EQ(remedy_for(known_account::missing), "sluice user add bob");
    EXPECT_EQ(remedy_for(known_account::wrong_password), "sluice user passwd bob");
    EXPECT_NE(remedy_for(known_account::same_password).find("HUP"), std::string::npos);
    account_facts given = in_file(known_account::missing, true);
    given.users_file_given = given.users_file;
    EXPECT_EQ(judge_logon(target, refused, given).front().remedy,
              "sluice user --users-file '/home/a b/users' add bob");
}

TEST(doctor_logon, guessed_users_file_decides_nothing) {
    for (const auto account :
         {known_account::missing, known_account::wrong_password, known_account::same_password}) {
        const auto found =
            judge_logon(target, refused_with(nt_status::logon_failure), in_file(account, false)).front();
        EXPECT_NE(found.what.find("'bob' or the password is wrong"), std::string::npos) << found.what;
        EXPECT_NE(found.evidence.find("if sluice serves with /home/a b/users"), std::string::npos);
        EXPECT_TRUE(found.remedy.starts_with("if sluice serves with")) << found.remedy;
    }
}

TEST(doctor_logon, commands_have_names_in_quotes) {
    remote_target hostile = target;
    hostile.user = "bob;reboot";
    hostile.path = "with space/100%/file";
    const auto refused =
        judge_logon(hostile, refused_with(nt_status::logon_failure), account_facts{}).front().remedy;
    EXPECT_NE(refused.find("sluice user add 'bob;reboot', or"), std::string::npos) << refused;
    EXPECT_TRUE(refused.ends_with("sluice user passwd 'bob;reboot'")) << refused;
    logon_facts seen;
    seen.is_logged_on = seen.is_share_connected = true;
    seen.file = client_error::of_status("open", nt_status::object_name_not_found);
    EXPECT_EQ(judge_logon(hostile, seen, account_facts{}).back().remedy,
              "list the directory: sluice ls smb://bob%3Breboot@nas/media/with%20space/100%25");
}

TEST(doctor_logon, directory_of_a_missing_file_is_listed) {
    logon_facts seen;
    seen.is_logged_on = seen.is_share_connected = true;
    seen.file = client_error::of_status("open", nt_status::object_name_not_found);
    const auto remedy_for = [&](const char* path) {
        remote_target at = target;
        at.path = path;
        return judge_logon(at, seen, account_facts{}).back().remedy;
    };
    EXPECT_EQ(remedy_for("a/b"), "list the directory: sluice ls smb://bob@nas/media/a");
    EXPECT_EQ(remedy_for("b"), "list the directory: sluice ls smb://bob@nas/media");
}

TEST(doctor_logon, denied_share_names_the_setting_of_the_configuration) {
    logon_facts seen;
    seen.is_logged_on = true;
    seen.share = client_error::of_status("connect", nt_status::access_denied);
    EXPECT_NE(
        judge_logon(target, seen, account_facts{}).back().remedy.find("the setting 'user' of the share"),
        std::string::npos);
    seen.share = client_error::of_status("connect", nt_status::bad_network_name);
    EXPECT_EQ(judge_logon(target, seen, account_facts{}).back().remedy,
              "list its shares: sluice ls smb://bob@nas");
}

TEST(doctor_logon, other_refusals_have_the_meaning_of_the_status) {
    const auto found = judge_logon(target, refused_with(nt_status::account_locked_out), account_facts{});
    EXPECT_NE(found.front().evidence.find("locked"), std::string::npos);
}

TEST(doctor_logon, missing_share_and_denied_share_have_different_remedies) {
    logon_facts seen;
    seen.is_logged_on = true;
    seen.share = client_error::of_status("connect", nt_status::bad_network_name);
    EXPECT_NE(judge_logon(target, seen, account_facts{}).back().what.find("no share 'media'"),
              std::string::npos);
    seen.share = client_error::of_status("connect", nt_status::access_denied);
    EXPECT_NE(judge_logon(target, seen, account_facts{}).back().what.find("no access"), std::string::npos);
}

TEST(doctor_logon, denied_file_is_a_problem_of_the_file) {
    logon_facts seen;
    seen.is_logged_on = seen.is_share_connected = true;
    seen.file = client_error::of_status("open", nt_status::access_denied);
    const auto found = judge_logon(target, seen, account_facts{});
    EXPECT_EQ(found.back().check, "file");
    EXPECT_EQ(found.back().level, severity::problem);
}

TEST(doctor_logon, guest_access_to_a_share_is_a_warning) {
    logon_facts open;
    open.is_logged_on = open.is_share_connected = true;
    const auto found = judge_open_access(target, open, {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, severity::warning);
    open.is_share_connected = false;
    EXPECT_EQ(judge_open_access(target, open, {}).front().level, severity::note);
    EXPECT_TRUE(judge_open_access(target, {}, {}).empty());
}

TEST(doctor_speed, reports_the_median_of_the_round_trips) {
    logon_facts seen;
    for (const int each : {100, 90'000, 300})
        seen.echoes.emplace_back(each);
    const auto found = judge_speed(seen);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].what, "a request takes 0.30 ms");
    EXPECT_EQ(found[0].level, severity::note);
}

TEST(doctor_speed, slow_requests_are_a_warning) {
    logon_facts seen;
    seen.echoes.emplace_back(80'000);
    seen.read_bytes = 1'000'000;
    seen.read_took = std::chrono::seconds(1);
    const auto found = judge_speed(seen);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].level, severity::warning);
    EXPECT_NE(found[1].what.find("1.0 MB/s"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli::doctor
