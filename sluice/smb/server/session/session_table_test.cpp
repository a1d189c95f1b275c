#include "sluice/smb/server/session/session_table.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {
namespace {

class sessions : public testing::Test {
protected:
    std::shared_ptr<session> add(std::string user, std::byte client, session::phase state) {
        negotiated agreed;
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

TEST_F(sessions, are_alike_by_client_and_user_in_the_order_they_were_made) {
    const auto first = add("alice", std::byte{1}, valid);
    const auto other_user = add("bob", std::byte{1}, valid);
    const auto other_client = add("alice", std::byte{2}, valid);
    const auto second = add("ALICE", std::byte{1}, valid);
    const auto expired = add("alice", std::byte{1}, session::phase::expired);
    EXPECT_EQ(table_.alike(*second), (std::vector{first, second}));
    EXPECT_EQ(table_.alike(*expired), (std::vector{first, second, expired})) << "itself, whatever its state";
}

}  // namespace
}  // namespace sluice::smb::server
