#include "sluice/cli/doctor/remote/reach.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "sluice/cli/doctor/remote/resolution.hpp"

// Findings about names, connections and paths.

namespace sluice::cli::doctor {
namespace {

using std::chrono::milliseconds;

[[nodiscard]] resolution failed_with(int code) {
    return {.addresses = {}, .code = code, .is_timed_out = false, .took = milliseconds(3)};
}

TEST(doctor_name, missing_name_has_a_remedy) {
    const auto found = judge_resolution("nas", failed_with(ENOENT), {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, severity::problem);
    EXPECT_NE(found[0].remedy.find("/etc/hosts"), std::string::npos);
}

TEST(doctor_name, mdns_name_without_resolver_names_the_package) {
    EXPECT_EQ(judge_resolution("nas.LOCAL", failed_with(ENOENT), {}).front().remedy,
              "apt install libnss-mdns");
    const resolver_files with_mdns{
        .hosts = {}, .nsswitch = "hosts: files mdns4_minimal dns\n", .resolv_conf = {}};
    EXPECT_NE(judge_resolution("nas.local", failed_with(ENOENT), with_mdns).front().remedy,
              "apt install libnss-mdns");
}

TEST(doctor_name, silent_resolver_differs_from_a_missing_name) {
    const auto found = judge_resolution(
        "nas", failed_with(EAGAIN), {.hosts = {}, .nsswitch = {}, .resolv_conf = "nameserver 192.0.2.1\n"});
    EXPECT_NE(found[0].what.find("no name server answered"), std::string::npos);
    EXPECT_NE(found[0].evidence.find("192.0.2.1"), std::string::npos);
}

TEST(doctor_name, slow_lookup_is_a_warning) {
    resolution slow{.addresses = {io::socket_address::loopback_v4(445)}, .took = milliseconds(2500)};
    const auto found = judge_resolution("nas", slow, {});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[1].level, severity::warning);
}

TEST(doctor_name, hosts_file_is_read_as_the_system_does) {
    const char* const hosts = "# 192.0.2.9 nas\n192.0.2.1\tother NAS # nas2\nbroken\n::1 nas\n";
    EXPECT_EQ(hosts_entries(hosts, "nas"), (std::vector<std::string>{"192.0.2.1", "::1"}));
    EXPECT_TRUE(hosts_entries(hosts, "nas2").empty());
}

TEST(doctor_name, remedy_for_a_slow_lookup_is_a_line_of_etc_hosts) {
    const auto line_for = [](const char* address) {
        const resolution slow{.addresses = {io::socket_address::ip(address, 445).value()},
                              .took = milliseconds(2500)};
        return judge_resolution("nas", slow, {}).back().remedy;
    };
    EXPECT_TRUE(line_for("192.0.2.7").starts_with("add a line '192.0.2.7 nas' to")) << line_for("192.0.2.7");
    EXPECT_TRUE(line_for("2001:db8::7").starts_with("add a line '2001:db8::7 nas' to"))
        << line_for("2001:db8::7");
}

TEST(doctor_connection, distinguishes_closed_filtered_and_unroutable) {
    EXPECT_EQ(reach_of(0), reach::open);
    EXPECT_EQ(reach_of(ECONNREFUSED), reach::closed);
    EXPECT_EQ(reach_of(ETIMEDOUT), reach::filtered);
    EXPECT_EQ(reach_of(EHOSTUNREACH), reach::no_route);
    EXPECT_EQ(reach_of(EPERM), reach::local_refusal);
    EXPECT_EQ(reach_of(ECONNRESET), reach::other);
}

TEST(doctor_connection, each_failure_is_a_problem_with_errno_and_time) {
    for (const int code : {ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EACCES, EIO}) {
        const connect_attempt one{.address = "192.0.2.1:445", .code = code, .took = milliseconds(7)};
        const auto found = judge_attempts("nas", 445, std::span(&one, 1));
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found[0].level, severity::problem);
        EXPECT_NE(found[0].evidence.find("after 7 ms"), std::string::npos);
        EXPECT_FALSE(found[0].remedy.empty());
    }
}

TEST(doctor_connection, one_bad_address_of_two_is_a_warning) {
    const std::vector<connect_attempt> both{{.address = "[2001:db8::1]:445", .code = ETIMEDOUT},
                                            {.address = "192.0.2.1:445", .code = 0}};
    EXPECT_EQ(judge_attempts("nas", 445, both).front().level, severity::warning);
}

TEST(doctor_path, explains_distance_tunnels_and_losses) {
    EXPECT_EQ(judge_path({.round_trip_us = 300, .mtu = 1500, .congestion_control = "cubic"}).size(), 1U);
    const auto bad = judge_path(
        {.round_trip_us = 90'000, .retransmissions = 2, .mtu = 1400, .congestion_control = "cubic"});
    EXPECT_EQ(bad.size(), 4U);
}

}  // namespace
}  // namespace sluice::cli::doctor
