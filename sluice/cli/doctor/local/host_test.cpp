#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sluice/cli/doctor/local/access_walk.hpp"
#include "sluice/cli/doctor/local/file_system_facts.hpp"
#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/local/port_owner.hpp"
#include "sluice/cli/doctor/page_findings.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"

// Findings about the port, the path and the file system of a share.

namespace sluice::cli::doctor {
namespace {

constexpr std::uint64_t gib = 1U << 30;

// A directory of this test, removed at its end.
class own_directory {
public:
    own_directory() {
        char name[] = "/tmp/sluice-doctor-XXXXXX";
        path_ = ::mkdtemp(name);
    }
    own_directory(const own_directory&) = delete;
    own_directory& operator=(const own_directory&) = delete;
    ~own_directory() { std::filesystem::remove_all(path_); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

[[nodiscard]] port_facts port_of_another_program() {
    return {.port = 445,
            .listeners = {{.port = 445, .user_id = 0, .inode = 1}},
            .owner = {.process = 7, .name = "smbd"}};
}

TEST(doctor_port, names_the_program_that_has_it) {
    const auto found = judge_port(port_of_another_program());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, severity::problem);
    EXPECT_NE(found[0].what.find("smbd (process 7)"), std::string::npos);
    EXPECT_NE(found[0].remedy.find("systemctl disable --now smbd"), std::string::npos);
}

TEST(doctor_port, names_the_account_of_a_program_that_is_not_visible) {
    port_facts seen = port_of_another_program();
    seen.owner = {};
    EXPECT_NE(judge_port(seen).front().what.find("account 0"), std::string::npos);
}

TEST(doctor_port, server_on_loopback_alone_is_a_problem) {
    port_facts seen = port_of_another_program();
    seen.is_of_sluice = true;
    EXPECT_EQ(judge_port(seen).front().level, severity::note);
    seen.listeners.front().is_loopback = true;
    EXPECT_EQ(judge_port(seen).front().level, severity::problem);
}

TEST(doctor_port, free_port_may_need_a_permission) {
    EXPECT_EQ(judge_port({.port = 445, .listeners = {}, .owner = {}}).front().level, severity::warning);
    EXPECT_EQ(judge_port({.port = 445, .listeners = {}, .owner = {}, .is_root = true}).front().level,
              severity::note);
    EXPECT_EQ(judge_port({.port = 1445, .listeners = {}, .owner = {}}).front().level, severity::note);
    EXPECT_EQ(judge_port({.port = 445, .listeners = {}, .owner = {}, .first_free_port = 445}).front().level,
              severity::note);
}

TEST(doctor_access, the_class_of_the_account_decides) {
    const server_account account{.user_id = 10, .groups = {20, 21}};
    EXPECT_EQ(missing_bits(account, {.user_id = 10, .group_id = 20, .mode = 0077}, 7),
              7U);  // owner, not others
    EXPECT_EQ(missing_bits(account, {.user_id = 1, .group_id = 21, .mode = 0750}, 7), 2U);
    EXPECT_EQ(missing_bits(account, {.user_id = 1, .group_id = 1, .mode = 0751}, 1), 0U);
    EXPECT_EQ(missing_bits({.user_id = 0, .groups = {}}, {.user_id = 1, .group_id = 1, .mode = 0}, 7), 0U);
    EXPECT_EQ(bits_text(5), "r-x");
}

TEST(doctor_access, names_the_first_component_that_prevents_access) {
    const own_directory own;
    ASSERT_EQ(::chmod(own.path().c_str(), 0755), 0);
    const std::string outer = own.path() + "/outer";
    const std::string inner = outer + "/inner";
    ASSERT_TRUE(std::filesystem::create_directories(inner));
    ASSERT_EQ(::chmod(outer.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(inner.c_str(), 0755), 0);
    const server_account other{.user_id = 4'000'000'000, .groups = {}};
    const auto barrier = walk(other, inner, 5);
    ASSERT_TRUE(barrier);
    EXPECT_EQ(barrier->component, outer);
    EXPECT_EQ(barrier->missing, 1U);
    ASSERT_EQ(::chmod(outer.c_str(), 0711), 0);
    EXPECT_FALSE(walk(other, inner + "/", 5));
    EXPECT_EQ(walk(other, inner, 7)->missing, 2U);
    EXPECT_FALSE(walk(other, "/", 5));
}

TEST(doctor_access, missing_directory_and_file_on_the_way_have_their_error) {
    const own_directory own;
    ASSERT_EQ(::chmod(own.path().c_str(), 0755), 0);
    std::ofstream(own.path() + "/file") << "x";
    const auto account = server_account::of_this_process();
    EXPECT_EQ(walk(account, own.path() + "/none/deep", 5)->code, ENOENT);
    EXPECT_EQ(walk(account, own.path() + "/none/deep", 5)->component, own.path() + "/none");
    EXPECT_EQ(walk(account, own.path() + "/file/deep", 5)->code, ENOTDIR);
}

[[nodiscard]] file_system_facts good_disk() {
    return {.type = "ext4",
            .total_bytes = 100 * gib,
            .free_bytes = 50 * gib,
            .total_inodes = 1000,
            .free_inodes = 500};
}

[[nodiscard]] severity worst_of(const file_system_facts& seen, bool is_read_only_share = false) {
    severity worst = severity::note;
    for (const finding& one : judge_file_system("media", "/srv/media", seen, is_read_only_share))
        worst = std::max(worst, one.level);
    return worst;
}

TEST(doctor_findings, own_port_of_a_server_is_not_in_use_by_another_program) {
    auto listener = io::listening_socket_handle::listen(io::socket_address::loopback_v4(0));
    ASSERT_TRUE(listener);
    const auto address = listener->local_address();
    ASSERT_TRUE(address);
    serve_options options;
    options.port = address->port();
    const auto has_problem_of_port = [](const std::vector<finding>& all) {
        return std::ranges::any_of(all, [](const finding& one) {
            return one.check == "port" and one.what.find("another program") != std::string::npos;
        });
    };
    EXPECT_TRUE(has_problem_of_port(findings(options, {})));
    EXPECT_FALSE(has_problem_of_port(findings(options, {address->text()})));
}

TEST(doctor_findings, a_user_with_a_password_in_the_options_needs_no_users_file) {
    const auto complains = [](const std::vector<finding>& all) {
        return std::ranges::any_of(
            all, [](const finding& one) { return one.check == "users" and one.level != severity::note; });
    };
    serve_options options;
    options.users_file = "/none/users";
    options.users = {"alice"};
    EXPECT_TRUE(complains(findings(options, {})));
    options.users = {"alice", "bob%secret"};
    EXPECT_FALSE(complains(findings(options, {})));
}

TEST(doctor_findings, the_page_has_them_with_their_weight_and_remedy) {
    serve_options options;
    options.users_file = "/none/users";
    options.users = {"bob%secret"};
    const auto has_users = [](const std::vector<cli::finding>& all) {
        return std::ranges::any_of(all, [](const cli::finding& one) {
            return one.severity == finding_severity::warning and one.evidence == "/none/users" and
                   one.hint == "sluice user --users-file /none/users add NAME";
        });
    };
    EXPECT_FALSE(has_users(page_checks(options, {})())) << "its password counts, although it is not kept";
    options.users.clear();
    EXPECT_TRUE(has_users(page_checks(options, {})()));
}

TEST(doctor_file_system, good_disk_has_notes_only) {
    EXPECT_EQ(worst_of(good_disk()), severity::note);
}

TEST(doctor_file_system, full_disk_is_a_problem_unless_clients_cannot_write) {
    file_system_facts full = good_disk();
    full.free_bytes = 0;
    EXPECT_EQ(worst_of(full), severity::problem);
    EXPECT_EQ(worst_of(full, true), severity::note);
    full.free_bytes = gib;
    EXPECT_EQ(worst_of(full), severity::warning);
    file_system_facts no_inodes = good_disk();
    no_inodes.free_inodes = 0;
    EXPECT_EQ(worst_of(no_inodes), severity::problem);
    no_inodes.total_inodes = 0;  // it has no such limit, as btrfs
    EXPECT_EQ(worst_of(no_inodes), severity::note);
}

TEST(doctor_file_system, read_only_mount_is_a_problem_for_a_writable_share) {
    file_system_facts seen = good_disk();
    seen.is_read_only = true;
    EXPECT_EQ(worst_of(seen), severity::problem);
    EXPECT_EQ(worst_of(seen, true), severity::note);
}

TEST(doctor_file_system, missing_attributes_and_network_disks_are_warnings) {
    file_system_facts seen = good_disk();
    seen.has_attributes = false;
    EXPECT_EQ(worst_of(seen), severity::warning);
    seen = good_disk();
    seen.type = "nfs";
    EXPECT_EQ(worst_of(seen), severity::warning);
}

TEST(doctor_file_system, reads_facts_of_a_mounted_one) {
    const auto seen = facts_of_file_system("/proc");
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->type, "0x9fa0");
    EXPECT_EQ(name_of_file_system(0xef53), "ext4");
    EXPECT_FALSE(facts_of_file_system("/none"));
}

}  // namespace
}  // namespace sluice::cli::doctor
