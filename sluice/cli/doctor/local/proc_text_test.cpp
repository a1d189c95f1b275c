#include "sluice/cli/doctor/local/proc_text.hpp"

#include <gtest/gtest.h>

#include <limits>

// Texts of /proc, also truncated and hostile ones.

namespace sluice::cli::doctor {
namespace {

constexpr const char* tcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:01BD 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 12345 1 0 "
    "100 0\n"
    "   1: 0100007F:05A5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 "
    "0\n"
    "   2: 0100007F:01BD 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 100 "
    "0\n"
    "   3: nonsense\n"
    "   4: 00000000:ZZZZ 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 79 1 0 100 "
    "0\n"
    "   5: 00000000:01BD 00000000:0000 0A 0000";

TEST(doctor_proc, finds_listening_sockets_only) {
    const auto found = parse_listeners(tcp);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0], (tcp_listener{.port = 445, .user_id = 998, .inode = 12345, .is_loopback = false}));
    EXPECT_EQ(found[1], (tcp_listener{.port = 1445, .user_id = 0, .inode = 77, .is_loopback = true}));
}

TEST(doctor_proc, recognises_loopback_addresses_of_ipv6) {
    const auto line = [](const char* address) {
        return std::string("0: ") + address + ":01BD 0:0 0A 0:0 0:0 0 0 0 1\n";
    };
    EXPECT_TRUE(parse_listeners(line("00000000000000000000000001000000")).front().is_loopback);
    EXPECT_TRUE(parse_listeners(line("0000000000000000FFFF00000100007F")).front().is_loopback);
    EXPECT_FALSE(parse_listeners(line("00000000000000000000000000000000")).front().is_loopback);
}

TEST(doctor_proc, reads_the_pressure_of_the_last_ten_seconds) {
    constexpr const char* text =
        "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.25 avg60=0 avg300=0 total=1\n";
    EXPECT_EQ(parse_pressure(text, "some"), 12.5);
    EXPECT_EQ(parse_pressure(text, "full"), 3.25);
    EXPECT_EQ(parse_pressure("", "full"), std::nullopt);
    EXPECT_EQ(parse_pressure("full avg10=x", "full"), std::nullopt);
    EXPECT_EQ(parse_pressure("full avg10=1e99", "full"), std::nullopt);
    EXPECT_EQ(parse_pressure("full avg10=nan", "full"), std::nullopt);
}

TEST(doctor_proc, recognises_instructions_for_encryption) {
    const auto intel = parse_cpu("processor: 0\nflags\t\t: fpu aes pclmulqdq vaes vpclmulqdq\n");
    EXPECT_TRUE(intel.has_aes and intel.has_carryless_multiply and intel.has_vector_aes);
    const auto arm = parse_cpu("Features\t: fp asimd aes pmull\n");
    EXPECT_TRUE(arm.has_aes and arm.has_carryless_multiply and not arm.has_vector_aes);
    EXPECT_FALSE(parse_cpu("flags : vaes\n").has_vector_aes);
    EXPECT_FALSE(parse_cpu("").is_known);
}

TEST(doctor_proc, reads_links_of_sockets) {
    EXPECT_EQ(parse_socket_link("socket:[12]"), 12U);
    for (const char* const text :
         {"", "socket:[", "socket:[]", "socket:[1", "pipe:[1]", "socket:[-1]", "socket:[1x]"})
        EXPECT_EQ(parse_socket_link(text), std::nullopt) << text;
}

TEST(doctor_proc, reads_numbers_until_the_first_other_word) {
    EXPECT_EQ(parse_numbers("4096\t16384 x 1"), (std::vector<std::uint64_t>{4096, 16384}));
    EXPECT_TRUE(parse_numbers("99999999999999999999").empty());
}

TEST(doctor_proc, reads_user_and_limits_of_a_process) {
    EXPECT_EQ(parse_user_id("Name:\tsluice\nUid:\t1\t2\t3\t4\n"), 4U);
    EXPECT_EQ(parse_user_id("Uid:\t1\n"), std::nullopt);
    constexpr const char* limits =
        "Max open files            1024                 524288               files\n"
        "Max locked memory         unlimited            unlimited            bytes\n";
    EXPECT_EQ(parse_limit(limits, "Max open files"), 1024U);
    EXPECT_EQ(parse_limit(limits, "Max locked memory"), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(parse_limit(limits, "Max processes"), std::nullopt);
}

TEST(doctor_proc, account_of_a_unit_counts_only_for_its_configuration) {
    constexpr const char* unit =
        "[Service]\nExecStart=/usr/bin/sluice serve --config /etc/sluice/sluice.toml\nUser= sluice \n";
    EXPECT_EQ(parse_unit_user(unit, "/etc/sluice/sluice.toml"), "sluice");
    EXPECT_EQ(parse_unit_user(unit, "/srv/other.toml"), "");
    EXPECT_EQ(parse_unit_user(unit, ""), "");
    EXPECT_EQ(parse_unit_user("/etc/sluice/sluice.toml\n# User=x\n", "/etc/sluice/sluice.toml"), "");
}

}  // namespace
}  // namespace sluice::cli::doctor
