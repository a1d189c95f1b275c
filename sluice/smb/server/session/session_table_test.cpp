#include "sluice/smb/server/session/session_table.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {
namespace {

class sessions : public testing::Test {
protected:
    std::shared_ptr<session> add(std::string user, std::byte client, session::phase state,
                                 wire::dialect dialect = wire::dialect::smb_3_1_1) {
        negotiated agreed;
        agreed.dialect = dialect;
        agreed.client.bytes[0] = client;
        const auto fresh =
            std::make_shared<session>(table_.take_id(), agreed, *std::pmr::get_default_resource());
        fresh->user.name = std::move(user);
        EXPECT_TRUE(fresh->make_valid(std::nullopt));
        if (state == session::phase::expired) {
            EXPECT_TRUE(fresh->expire(1));
        }
        table_.add(fresh);
        return fresh;
    }

    static constexpr auto valid = session::phase::valid;
    session_table table_{41};
};

TEST_F(sessions, have_ids_that_follow_the_one_before) {
    EXPECT_EQ(add("a", std::byte{1}, valid)->id, 42U);
    EXPECT_EQ(add("b", std::byte{1}, valid)->id, 43U);
    table_.remove(43);
    EXPECT_EQ(table_.find(43), nullptr);
    EXPECT_EQ(table_.take_id(), 44U) << "no ID is used again";
    EXPECT_EQ(table_.size(), 1U);
}

TEST_F(sessions, are_listed_in_parts_in_the_order_they_were_made) {
    const auto first = add("a", std::byte{1}, valid);
    const auto second = add("b", std::byte{1}, valid);
    const auto third = add("c", std::byte{1}, valid);
    EXPECT_EQ(table_.after(0, 2), (std::vector{first, second}));
    EXPECT_EQ(table_.after(second->id, 2), std::vector{third});
    EXPECT_EQ(table_.last_id(), third->id);
    table_.remove(second->id);
    EXPECT_EQ(table_.after(first->id, 2), std::vector{third});
    EXPECT_EQ(table_.after(second->id, 2), std::vector{third}) << "after one that has ended";
    EXPECT_TRUE(table_.after(third->id, 2).empty());
}

TEST_F(sessions, end_by_the_first_claim_alone) {
    const auto one = add("a", std::byte{1}, valid);
    EXPECT_TRUE(one->claim_end());
    EXPECT_FALSE(one->claim_end());
}

TEST_F(sessions, are_alike_by_client_and_user_in_the_order_they_were_made) {
    const auto first = add("alice", std::byte{1}, valid);
    const auto other_user = add("bob", std::byte{1}, valid);
    const auto other_client = add("alice", std::byte{2}, valid);
    const auto second = add("ALICE", std::byte{1}, valid);
    const auto expired = add("alice", std::byte{1}, session::phase::expired);
    EXPECT_EQ(table_.alike(*second), (std::vector{first, second}));
    EXPECT_EQ(table_.alike(*expired), (std::vector{first, second, expired})) << "itself, whatever its state";
}

TEST_F(sessions, claim_one_dialect_for_each_user_and_client) {
    constexpr auto older = wire::dialect::smb_3_0_2;
    const auto first = add("alice", std::byte{1}, valid);
    EXPECT_TRUE(table_.claim_dialect(*first));
    EXPECT_TRUE(table_.claim_dialect(*add("ALICE", std::byte{1}, valid))) << "the same dialect";
    EXPECT_FALSE(table_.claim_dialect(*add("Alice", std::byte{1}, valid, older)));
    EXPECT_TRUE(table_.claim_dialect(*add("alice", std::byte{2}, valid, older))) << "another client";
    EXPECT_TRUE(table_.claim_dialect(*add("bob", std::byte{1}, valid, older))) << "another user";
}

TEST_F(sessions, that_are_expired_keep_their_dialect_and_those_that_are_gone_do_not) {
    const auto first = add("alice", std::byte{1}, session::phase::expired);
    const auto second = add("alice", std::byte{1}, valid, wire::dialect::smb_3_0_2);
    EXPECT_TRUE(table_.claim_dialect(*first));
    EXPECT_FALSE(table_.claim_dialect(*second)) << "the first may authenticate again";
    EXPECT_TRUE(first->end(false, [] {}).has_value());
    EXPECT_TRUE(table_.claim_dialect(*second));
}

}  // namespace
}  // namespace sluice::smb::server
