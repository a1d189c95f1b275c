#include "sluice/cli/client_settings/host_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class host_settings_file : public ::testing::Test {
protected:
    host_settings_file() {
        char name[] = "/tmp/sluice-host-settings-XXXXXX";
        directory_ = ::mkdtemp(name);
        path_ = directory_ + "/client.toml";
    }
    ~host_settings_file() override { std::filesystem::remove_all(directory_); }

    void write(const std::string& content) {
        std::ofstream(path_) << content;
        ::chmod(path_.c_str(), 0600);
    }
    [[nodiscard]] std::string problem_of(const std::string& content) {
        write(content);
        const auto read = settings_of_host(path_, "nas");
        return read ? "" : read.error();
    }

    std::string directory_;
    std::string path_;
};

TEST_F(host_settings_file, a_host_has_its_own_table_and_the_others_have_the_default) {
    write(
        "version = 1\n[default]\nuser = \"anna\"\n[host.Nas]\naddress = \"192.0.2.7\"\nport = 4450\nuser = "
        "\"alice\"\n"
        "domain = \"HOME\"\npassword-command = [\"pass\", \"nas\"]\nencrypt = true\n");
    const auto nas = settings_of_host(path_, "NAS");
    ASSERT_TRUE(nas) << nas.error();
    EXPECT_EQ(nas->address, "192.0.2.7");
    EXPECT_EQ(nas->port, 4450);
    EXPECT_EQ(nas->user, "alice");
    EXPECT_EQ(nas->domain, "HOME");
    EXPECT_THAT(nas->password_command, ElementsAre("pass", "nas"));
    EXPECT_TRUE(nas->encrypts);
    const auto other = settings_of_host(path_, "other");
    ASSERT_TRUE(other) << other.error();
    EXPECT_EQ(other->user, "anna");
    EXPECT_FALSE(other->encrypts);
}

TEST_F(host_settings_file, a_name_with_dots_is_one_name_in_quotes) {
    write("[host.\"nas.example.org\"]\nuser = \"alice\"\n");
    EXPECT_EQ(settings_of_host(path_, "nas.example.org").value().user, "alice");
}

TEST_F(host_settings_file, a_missing_file_has_no_settings) {
    EXPECT_TRUE(settings_of_host(path_, "nas")->user.empty());
    EXPECT_TRUE(settings_of_host("", "nas")->user.empty());
}

TEST_F(host_settings_file, errors_are_found_in_the_tables_of_all_hosts) {
    EXPECT_THAT(problem_of("[host.other]\nuse = \"a\"\n"),
                HasSubstr("line 2: [host.other]: unknown setting 'use'"));
    EXPECT_THAT(problem_of("hosts = 1\n"), HasSubstr("unknown setting 'hosts'"));
    EXPECT_THAT(problem_of("host = 1\n"), HasSubstr("'host' must be a table"));
    EXPECT_THAT(problem_of("[host]\nnas = 1\n"), HasSubstr("'nas' must be a table"));
    EXPECT_THAT(problem_of("default = 1\n"), HasSubstr("'default' must be a table"));
    EXPECT_THAT(problem_of("[host.nas]\n[host.NAS]\n"), HasSubstr("occurs twice, because case is ignored"));
    EXPECT_THAT(problem_of("version = 2\n"), HasSubstr("unsupported version"));
    EXPECT_THAT(problem_of("[host.nas]\nport = 65536\n"), HasSubstr("use 0 to 65535"));
    EXPECT_THAT(problem_of("[host.nas"), HasSubstr("line 1: invalid TOML"));
}

TEST_F(host_settings_file, a_password_belongs_to_one_user_and_has_one_source) {
    EXPECT_THAT(problem_of("[host.nas]\npassword-command = [\"pass\"]\n"),
                HasSubstr("a password without a user"));
    EXPECT_THAT(
        problem_of("[host.nas]\nuser = \"a\"\npassword-file = \"/f\"\npassword-command = [\"pass\"]\n"),
        HasSubstr("use either"));
    EXPECT_THAT(problem_of("[host.nas]\nuser = \"a\"\npassword-file = \"f\"\n"), HasSubstr("absolute path"));
}

TEST_F(host_settings_file, a_file_that_others_can_change_is_refused) {
    write("[host.nas]\n");
    ::chmod(path_.c_str(), 0620);
    EXPECT_THAT(settings_of_host(path_, "nas").error(), HasSubstr("other accounts can change the file"));
    ::chmod(path_.c_str(), 0602);
    EXPECT_THAT(settings_of_host(path_, "nas").error(), HasSubstr("other accounts can change the file"));
}

TEST_F(host_settings_file, a_file_that_is_not_regular_or_very_large_is_refused) {
    EXPECT_THAT(settings_of_host(directory_, "nas").error(), HasSubstr("not a regular file"));
    ::mkfifo(path_.c_str(), 0600);
    EXPECT_THAT(settings_of_host(path_, "nas").error(), HasSubstr("not a regular file"));
    std::filesystem::remove(path_);
    EXPECT_THAT(problem_of(std::string((1U << 20) + 8192, '\n')), HasSubstr("more than 1 MiB"));
}

}  // namespace
}  // namespace sluice::cli
