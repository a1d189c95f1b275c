#include "sluice/cli/status/web/web_sessions.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace sluice::cli {
namespace {

constexpr std::string_view token = "0123456789abcdef";

class web_sessions_test : public testing::Test {
protected:
    simulated_clock clock;
    predictable_secrets_for_simulation random{1};
    web_sessions sessions{token, clock, random};
};

TEST_F(web_sessions_test, exactly_the_token_is_accepted) {
    EXPECT_TRUE(sessions.is_token(token));
    for (const std::string_view wrong : {"", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF"})
        EXPECT_FALSE(sessions.is_token(wrong)) << wrong;
}

TEST_F(web_sessions_test, a_cookie_finds_its_session_until_that_ends) {
    const std::string cookie = sessions.begin();
    const std::string other = sessions.begin();
    EXPECT_NE(cookie, other);
    EXPECT_EQ(cookie.size(), 32U);
    const auto found = sessions.find(cookie);
    ASSERT_TRUE(found.has_value());
    EXPECT_NE(found->form_token, sessions.find(other)->form_token);
    EXPECT_NE(found->form_token, cookie);
    EXPECT_FALSE(sessions.find("").has_value());
    EXPECT_FALSE(sessions.find(cookie.substr(1)).has_value());
    sessions.end(cookie);
    EXPECT_FALSE(sessions.find(cookie).has_value());
    EXPECT_TRUE(sessions.find(other).has_value());
}

TEST_F(web_sessions_test, an_idle_session_ends_and_every_session_has_an_end) {
    const std::string cookie = sessions.begin();
    clock.advance(web_sessions::idle_max);
    EXPECT_TRUE(sessions.find(cookie).has_value());
    clock.advance(web_sessions::idle_max + std::chrono::seconds(1));
    EXPECT_FALSE(sessions.find(cookie).has_value());
    const std::string busy = sessions.begin();
    for (int i = 0; i != 12 * 4; ++i) {
        EXPECT_TRUE(sessions.find(busy).has_value());
        clock.advance(std::chrono::minutes(15));
    }
    clock.advance(std::chrono::minutes(1));
    EXPECT_FALSE(sessions.find(busy).has_value());
}

TEST_F(web_sessions_test, the_session_that_was_idle_longest_makes_room) {
    const std::string idle = sessions.begin();
    clock.advance(std::chrono::seconds(1));
    const std::string second = sessions.begin();
    for (std::size_t i = 2; i != web_sessions::sessions_max; ++i)
        (void)sessions.begin();
    clock.advance(std::chrono::seconds(1));
    EXPECT_TRUE(sessions.find(second).has_value());
    (void)sessions.begin();
    EXPECT_FALSE(sessions.find(idle).has_value());
    EXPECT_TRUE(sessions.find(second).has_value());
}

TEST(web_cookie, it_is_found_among_others_by_its_whole_name) {
    EXPECT_EQ(web_cookie_in("a=b; sluice_web=x"), "x");
    EXPECT_EQ(web_cookie_in("sluice_web=x=y; a=b"), "x=y");
    for (const std::string_view header :
         {"", "sluice_web", "xsluice_web=1", "sluice_web2=1", ";;", "a=sluice_web=1"})
        EXPECT_EQ(web_cookie_in(header), "") << header;
}

class web_token_file : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(::mkdtemp(directory.data()), nullptr); }
    void TearDown() override {
        (void)::unlink(path().c_str());
        (void)::rmdir(directory.c_str());
    }
    [[nodiscard]] std::string path() const { return directory + "/token"; }
    [[nodiscard]] std::expected<std::string, std::string> read(const std::string& content,
                                                               mode_t mode = 0600) {
        (void)::unlink(path().c_str());
        std::FILE* const file = std::fopen(path().c_str(), "we");
        EXPECT_NE(file, nullptr);
        EXPECT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
        (void)std::fclose(file);
        EXPECT_EQ(::chmod(path().c_str(), mode), 0);
        return read_web_token(path());
    }
    std::string directory = "/tmp/sluice_token_XXXXXX";
};

TEST_F(web_token_file, its_first_line_is_the_token) {
    EXPECT_EQ(read(std::string(token)), token);
    EXPECT_EQ(read(std::string(token) + "  \r\n# comment\n"), token);
    EXPECT_EQ(read(std::string(token) + "\n", 0400), token);
    EXPECT_EQ(read(std::string(web_token_bytes_max, 'x'))->size(), web_token_bytes_max);
}

TEST_F(web_token_file, a_short_or_long_token_or_one_that_others_can_read_is_refused) {
    EXPECT_NE(read("short\n").error().find("its first line has 5 characters"), std::string::npos);
    EXPECT_FALSE(read("").has_value());
    EXPECT_FALSE(read("\n" + std::string(token)).has_value());
    EXPECT_FALSE(read(std::string(web_token_bytes_max + 1, 'x')).has_value());
    EXPECT_NE(read(std::string(token), 0640).error().find("chmod 600"), std::string::npos);
    EXPECT_FALSE(read(std::string(token), 0604).has_value());
    EXPECT_FALSE(read_web_token(path() + "-missing").has_value());
    EXPECT_NE(read_web_token(directory).error().find("not a regular file"), std::string::npos);
}

TEST_F(web_token_file, a_pipe_is_refused_and_does_not_block) {
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    EXPECT_NE(read_web_token(path()).error().find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
