#include "sluice/smb/server/session/administrators.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

// Accounts in which case matters.
class exact_accounts final : public auth::account_source {
public:
    std::optional<auth::account> find(std::string_view, std::string_view) noexcept override {
        return std::nullopt;
    }
    bool is_same(const account_name& one, const account_name& other) const noexcept override {
        return one.user == other.user and one.domain == other.domain;
    }
};

TEST(administrators_of_server, are_the_users_that_the_accounts_identify) {
    const exact_accounts accounts;
    administrators some;
    some.publish({"boss", "other"});
    EXPECT_TRUE(some.contain(accounts, {.name = "boss", .domain = {}}));
    EXPECT_FALSE(some.contain(accounts, {.name = "BOSS", .domain = {}})) << "another account";
    EXPECT_FALSE(some.contain(accounts, {.name = "boss", .domain = "ELSEWHERE"}));
    some.publish({});
    EXPECT_FALSE(some.contain(accounts, {.name = "boss", .domain = {}}));
}

TEST(administrators_of_server, exclude_guests_and_the_anonymous) {
    const exact_accounts accounts;
    administrators some;
    some.publish({"boss", ""});
    EXPECT_FALSE(some.contain(accounts, {.name = "boss", .domain = {}, .is_guest = true}));
    EXPECT_FALSE(some.contain(accounts, {.name = "", .domain = {}, .is_anonymous = true}));
}

}  // namespace
}  // namespace sluice::smb::server
