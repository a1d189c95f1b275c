#include "sluice/cli/doctor/remote/negotiation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

// Findings about the answers to NEGOTIATE.

namespace sluice::cli::doctor {
namespace {

using smb::client::probed_protocol;
using smb::wire::capabilities;
using smb::wire::dialect;
using smb::wire::security_mode;

const std::chrono::system_clock::time_point now{std::chrono::hours(500'000)};

[[nodiscard]] smb::wire::filetime time_after(std::int64_t seconds) {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
    return smb::wire::filetime_of(smb::wire::unix_time{.seconds = since + seconds, .nanoseconds = 0});
}

// A server that needs no remedy.
[[nodiscard]] negotiation good_server() {
    negotiation seen;
    seen.first.how = reaction::answered;
    seen.first.answer.protocol = probed_protocol::smb2;
    auto& reply = seen.first.answer.reply;
    reply.dialect = dialect::smb_3_1_1;
    reply.security_mode = security_mode::signing_enabled | security_mode::signing_required;
    reply.capabilities = capabilities::large_mtu;
    reply.read_bytes_max = reply.write_bytes_max = reply.transact_bytes_max = 8U << 20;
    reply.system_time = time_after(1);
    reply.has_preauth = true;
    seen.dialects = {dialect::smb_3_1_1};
    seen.ciphers = {smb::wire::cipher::aes_128_gcm};
    seen.signings = {smb::wire::signing_algorithm::aes_gmac};
    seen.is_complete = true;
    return seen;
}

[[nodiscard]] negotiation answer_of(reaction how, probed_protocol protocol) {
    negotiation seen;
    seen.first.how = how;
    seen.first.answer.protocol = protocol;
    return seen;
}

[[nodiscard]] severity worst_of(const std::vector<finding>& all) {
    severity worst = severity::note;
    for (const finding& one : all)
        worst = std::max(worst, one.level);
    return worst;
}

// Returns the text of the only finding about a protocol.
[[nodiscard]] std::string problem_with(const negotiation& seen) {
    const auto found = judge_protocol(445, seen);
    if (found.size() != 1 or found[0].level != severity::problem or found[0].remedy.empty()) return "";
    return found[0].what;
}

TEST(doctor_protocol, good_server_has_notes_only) {
    EXPECT_TRUE(judge_protocol(445, good_server()).empty());
    EXPECT_EQ(worst_of(judge_negotiation(good_server(), now)), severity::note);
    EXPECT_EQ(worst_of(judge_clients(good_server())), severity::note);
}

TEST(doctor_protocol, names_other_protocols) {
    EXPECT_NE(problem_with(answer_of(reaction::answered, probed_protocol::http)).find("HTTP"),
              std::string::npos);
    EXPECT_NE(problem_with(answer_of(reaction::answered, probed_protocol::tls)).find("TLS"),
              std::string::npos);
    EXPECT_NE(problem_with(answer_of(reaction::answered, probed_protocol::ssh)).find("SSH"),
              std::string::npos);
    EXPECT_NE(problem_with(answer_of(reaction::answered, probed_protocol::unknown)).find("unknown"),
              std::string::npos);
    EXPECT_NE(problem_with(answer_of(reaction::answered, probed_protocol::netbios_error)).find("NetBIOS"),
              std::string::npos);
}

TEST(doctor_protocol, silence_differs_from_a_closed_connection) {
    EXPECT_NE(problem_with(answer_of(reaction::silent, probed_protocol::incomplete)).find("does not answer"),
              std::string::npos);
    EXPECT_NE(problem_with(answer_of(reaction::closed, probed_protocol::incomplete)).find("closes"),
              std::string::npos);
    EXPECT_NE(
        problem_with(answer_of(reaction::unreachable, probed_protocol::incomplete)).find("refuses the next"),
        std::string::npos);
}

TEST(doctor_protocol, smb1_alone_is_a_problem_and_in_addition_a_warning) {
    negotiation old = answer_of(reaction::closed, probed_protocol::incomplete);
    old.smb1 = {.how = reaction::answered};
    old.smb1.answer.protocol = probed_protocol::smb1;
    EXPECT_NE(problem_with(old).find("only SMB1"), std::string::npos);
    negotiation both = good_server();
    both.smb1 = old.smb1;
    EXPECT_EQ(worst_of(judge_protocol(445, both)), severity::warning);
}

TEST(doctor_protocol, refusal_and_violation_have_evidence) {
    negotiation refused = answer_of(reaction::answered, probed_protocol::smb2_refused);
    refused.first.answer.status = smb::wire::nt_status::not_supported;
    EXPECT_NE(judge_protocol(445, refused).front().evidence.find("0xc00000bb"), std::string::npos);
    negotiation invalid = answer_of(reaction::answered, probed_protocol::smb2_invalid);
    invalid.first.answer.violation = smb::wire::decode_error::range_outside_message;
    EXPECT_EQ(judge_protocol(445, invalid).front().evidence, "range_outside_message");
}

TEST(doctor_negotiation, clock_that_differs_too_much_for_kerberos_is_a_problem) {
    for (const std::int64_t skew : {-301, 301, 1'000'000}) {
        negotiation seen = good_server();
        seen.first.answer.reply.system_time = time_after(skew);
        EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::problem) << skew;
    }
    negotiation seen = good_server();
    seen.first.answer.reply.system_time = time_after(-200);
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::warning);
}

TEST(doctor_negotiation, extreme_times_are_safe) {
    for (const std::uint64_t ticks : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
        negotiation seen = good_server();
        seen.first.answer.reply.system_time = smb::wire::filetime(ticks);
        EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::problem);
    }
}

TEST(doctor_negotiation, optional_signing_is_a_warning_and_none_a_problem) {
    negotiation seen = good_server();
    seen.first.answer.reply.security_mode = security_mode::signing_enabled;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::warning);
    seen.first.answer.reply.security_mode = security_mode::none;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::problem);
}

TEST(doctor_negotiation, old_dialects_and_small_limits_are_findings) {
    negotiation seen = good_server();
    seen.first.answer.reply.dialect = dialect::smb_2_0_2;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::warning);
    EXPECT_EQ(worst_of(judge_clients(seen)), severity::warning);
    seen = good_server();
    seen.first.answer.reply.read_bytes_max = 65536;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::warning);
    seen.first.answer.reply.read_bytes_max = 0;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::problem);
}

TEST(doctor_negotiation, version_3_1_1_without_hash_is_a_problem) {
    negotiation seen = good_server();
    seen.first.answer.reply.has_preauth = false;
    EXPECT_EQ(worst_of(judge_negotiation(seen, now)), severity::problem);
}

TEST(doctor_negotiation, unknown_codes_have_a_number) {
    EXPECT_EQ(name_of_dialect(dialect(0x0399)), "unknown (0x0399)");
    EXPECT_EQ(name_of_cipher(smb::wire::cipher(9)), "unknown (0x0009)");
    EXPECT_EQ(name_of_signing(smb::wire::signing_algorithm(9)), "unknown (0x0009)");
    EXPECT_EQ(name_of_compression(smb::wire::compression_algorithm(9)), "unknown (0x0009)");
}

}  // namespace
}  // namespace sluice::cli::doctor
