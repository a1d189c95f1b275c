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
    const auto found = judge_logon(target, refused_with(nt_status::logon_failure), known_account::unknown);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].what.find("or the password"), std::string::npos);
}

TEST(doctor_logon, on_the_host_of_the_server_the_users_file_distinguishes_them) {
    const auto refused = refused_with(nt_status::logon_failure);
    EXPECT_EQ(judge_logon(target, refused, known_account::missing).front().remedy, "sluice user add bob");
    EXPECT_EQ(judge_logon(target, refused, known_account::wrong_password).front().remedy,
              "sluice user passwd bob");
    EXPECT_NE(judge_logon(target, refused, known_account::same_password).front().remedy.find("HUP"),
              std::string::npos);
}

TEST(doctor_logon, other_refusals_have_the_meaning_of_the_status) {
    const auto found =
        judge_logon(target, refused_with(nt_status::account_locked_out), known_account::unknown);
    EXPECT_NE(found.front().evidence.find("locked"), std::string::npos);
}

TEST(doctor_logon, missing_share_and_denied_share_have_different_remedies) {
    logon_facts seen;
    seen.is_logged_on = true;
    seen.share = client_error::of_status("connect", nt_status::bad_network_name);
    EXPECT_NE(judge_logon(target, seen, known_account::unknown).back().what.find("no share 'media'"),
              std::string::npos);
    seen.share = client_error::of_status("connect", nt_status::access_denied);
    EXPECT_NE(judge_logon(target, seen, known_account::unknown).back().what.find("no access"),
              std::string::npos);
}

TEST(doctor_logon, denied_file_is_a_problem_of_the_file) {
    logon_facts seen;
    seen.is_logged_on = seen.is_share_connected = true;
    seen.file = client_error::of_status("open", nt_status::access_denied);
    const auto found = judge_logon(target, seen, known_account::unknown);
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
