#include <algorithm>
#include <optional>
#include <variant>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/net/unsent_grant.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Found by the simulation of several loops.

namespace sluice::smb_simulation {
namespace {

using smb::wire::nt_status;

class break_of_an_oplock : public served {};

// On another channel, it could overtake the reply to the CREATE: the client would not know the open
// yet, ignore the break, and then assume that it has the oplock that the reply grants ([MS-SMB2]
// 3.3.4.6).
TEST_F(break_of_an_oplock, comes_on_the_channel_that_opened_the_file) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    auto caching = compliant_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::level_2;
    ASSERT_EQ(second.create("f", caching).oplock_level, smb::wire::oplock_level::level_2);
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    auto overwriting = compliant_client::for_everything();
    overwriting.disposition = smb::wire::create_disposition::overwrite;
    (void)other.create("f", overwriting);
    (void)first_->is_answered(0);  // lets the break arrive
    EXPECT_FALSE(first_->is_answered(smb::wire::notification_message_id));
    EXPECT_TRUE(second.is_answered(smb::wire::notification_message_id));
}

// The client does not know the oplock before, and the break would wait for an
// answer that cannot come.
TEST_F(break_of_an_oplock, follows_the_reply_that_grants_it_in_a_compound_that_waits_for_the_break) {
    using smb::wire::command;
    auto caching = compliant_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::batch;
    auto overwriting = compliant_client::for_everything();
    overwriting.disposition = smb::wire::create_disposition::overwrite;
    first_->begin_compound();
    const std::uint64_t first_create = first_->send_create("f", caching);
    const std::uint64_t second_create = first_->send_create("f", overwriting);
    const std::uint64_t last = first_->send(command::echo, smb::wire::echo_args{});
    first_->end_compound();
    const compliant_client::answer granted = first_->answer_to(first_create);
    ASSERT_EQ(granted.status(), nt_status::success);
    const auto opened = smb::wire::decode_create_reply(granted.message()).value();
    EXPECT_EQ(opened.oplock_level, smb::wire::oplock_level::batch);
    EXPECT_TRUE(first_->is_answered(smb::wire::notification_message_id));
    EXPECT_FALSE(first_->is_answered(second_create));
    EXPECT_EQ(first_->call(command::close, smb::wire::close_args{.file = opened.file}).status(),
              nt_status::success);
    EXPECT_EQ(first_->answer_to(second_create).status(), nt_status::success);
    EXPECT_EQ(first_->answer_to(last).status(), nt_status::success);
}

// [MS-SMB2] 3.3.4.2. smbtorture's compound_async.getinfo_middle.
TEST_F(break_of_an_oplock, leads_to_an_interim_reply_for_a_create_with_messages_after_it) {
    using smb::wire::command;
    auto caching = compliant_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::batch;
    const auto held = first_->create("f", caching);
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    other.begin_compound();
    const std::uint64_t create = other.send_create("f");
    const std::uint64_t last = other.send(command::echo, smb::wire::echo_args{});
    other.end_compound();
    const smb::wire::header interim = other.interim_of(create);
    EXPECT_EQ(interim.status, nt_status::pending);
    EXPECT_NE(interim.async_id, 0U);
    EXPECT_FALSE(other.is_answered(last));
    EXPECT_EQ(first_->call(command::close, smb::wire::close_args{.file = held.file}).status(),
              nt_status::success);
    EXPECT_EQ(other.answer_to(create).status(), nt_status::success);
    EXPECT_EQ(other.answer_to(last).status(), nt_status::success);
}

TEST_F(break_of_an_oplock, follows_the_reply_that_returns_it_to_its_client) {
    using smb::wire::command;
    auto caching = compliant_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::batch;
    caching.contexts.durable = true;
    auto again = compliant_client::for_everything();
    again.contexts.durable_reconnect = first_->create("f", caching).file;
    first_->close_connection();
    compliant_client back(where_);
    ASSERT_EQ(back.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(back.connect_tree("files"), nt_status::success);
    auto overwriting = compliant_client::for_everything();
    overwriting.disposition = smb::wire::create_disposition::overwrite;
    back.begin_compound();
    const std::uint64_t returned = back.send_create("f", again);
    const std::uint64_t second_create = back.send_create("f", overwriting);
    back.end_compound();
    const compliant_client::answer granted = back.answer_to(returned);
    ASSERT_EQ(granted.status(), nt_status::success);
    const auto opened = smb::wire::decode_create_reply(granted.message()).value();
    EXPECT_EQ(opened.oplock_level, smb::wire::oplock_level::batch);
    EXPECT_TRUE(back.is_answered(smb::wire::notification_message_id));
    const auto& order = back.arrivals();
    EXPECT_LT(std::ranges::find(order, returned),
              std::ranges::find(order, smb::wire::notification_message_id));
    EXPECT_EQ(back.call(command::close, smb::wire::close_args{.file = opened.file}).status(),
              nt_status::success);
    EXPECT_EQ(back.answer_to(second_create).status(), nt_status::success);
}

// The reply says that the client has the oplock; so a break has to follow that takes it away.
TEST_F(break_of_an_oplock, that_times_out_before_the_reply_that_grants_it_says_that_nothing_is_left) {
    auto caching = compliant_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::batch;
    const auto opened = first_->create("f", caching);
    smb::server::server_context& host = server_of_test().context();
    const auto one = host.opens.find_persistent(opened.file.persistent_part.value());
    ASSERT_NE(one, nullptr);
    std::optional<smb::server::unsent_grant> reply;  // stands for one that is not sent yet
    {
        const smb::server::file_section held(*one->file);
        const auto& its = one->in_file(held).lease;
        ++its->unsent_grants;
        reply.emplace(host, its);
    }
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    EXPECT_EQ(other.create("f").oplock_level, smb::wire::oplock_level::none) << "after the time limit";
    EXPECT_FALSE(first_->is_answered(smb::wire::notification_message_id));
    reply.reset();
    ASSERT_TRUE(first_->is_answered(smb::wire::notification_message_id));
    const auto notification = first_->answer_to(smb::wire::notification_message_id);
    const auto message = smb::wire::decode_oplock_break_reply(notification.message());
    ASSERT_TRUE(message);
    const auto* const of_oplock = std::get_if<smb::wire::oplock_break>(&message->sent);
    ASSERT_NE(of_oplock, nullptr);
    EXPECT_EQ(of_oplock->oplock_level, smb::wire::oplock_level::none);
}

}  // namespace
}  // namespace sluice::smb_simulation
