#include <memory>
#include <vector>

#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Sessions of several connections ([MS-SMB2] 3.3.5.5.2).

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::nt_status;

class channels : public served {
protected:
    using served::served;
    [[nodiscard]] nt_status close(compliant_client& by, const smb::wire::file_id& file) {
        return by.call(command::close, smb::wire::close_args{.file = file}).status();
    }
};

TEST_F(channels, share_the_opens_of_the_session) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    const auto file = second.create("f").file;
    EXPECT_EQ(close(*first_, file), nt_status::success);
    EXPECT_EQ(close(second, file), nt_status::file_closed);
}

TEST_F(channels, keep_the_session_until_the_last_of_them_ends) {
    auto second = std::make_unique<compliant_client>(where_);
    ASSERT_EQ(second->bind_to(*first_, "u", "p"), nt_status::success);
    const auto file = first_->create("f").file;
    first_.reset();
    EXPECT_EQ(where_.server->gauges().sessions, 1U);
    EXPECT_EQ(close(*second, file), nt_status::success);
    second.reset();
    EXPECT_EQ(where_.server->gauges().sessions, 0U) << "a session ends with its last channel";
}

TEST_F(channels, end_together_at_a_logoff) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    EXPECT_EQ(second.call(command::logoff, smb::wire::logoff_args{}).status(), nt_status::success);
    EXPECT_EQ(close(*first_, {}), nt_status::user_session_deleted);
}

// The message id of a message that is not a reply.
constexpr std::uint64_t unasked = ~std::uint64_t{0};

// A session of two channels, and another client.
class two_channels : public channels {
protected:
    explicit two_channels(void (*adjust)(smb::server::server_configuration&) = nullptr)
        : channels(adjust), second_(where_), other_(where_) {
        EXPECT_EQ(second_.bind_to(*first_, "u", "p"), nt_status::success);
        EXPECT_EQ(other_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(other_.connect_tree("files"), nt_status::success);
    }

    compliant_client second_;
    compliant_client other_;
    smb::wire::file_id file_{};
};

class breaks : public two_channels {
protected:
    // The client of the first channel caches a file that another client opens, which waits.
    breaks() {
        auto how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::batch;
        file_ = first_->create("f", how).file;
        waiting_ = other_.send_create("f");
    }
    void acknowledges_break(compliant_client& by) {
        const auto notification = by.answer_to(unasked);
        ASSERT_EQ(notification.message().header().command, command::oplock_break);
        EXPECT_EQ(by.call(command::oplock_break,
                          smb::wire::oplock_break_args{smb::wire::oplock_break{.file = file_}})
                      .status(),
                  nt_status::success);
        EXPECT_EQ(other_.answer_to(waiting_).status(), nt_status::success);
    }

    std::uint64_t waiting_ = 0;
};

TEST_F(breaks, are_sent_on_the_first_channel) {
    acknowledges_break(*first_);
    EXPECT_FALSE(second_.is_answered(unasked));
}

TEST_F(breaks, are_sent_on_another_channel_if_the_first_reads_nothing) {
    const auto asked_at = where_.clock.steady_now();
    acknowledges_break(second_);
    EXPECT_LT(where_.clock.steady_now() - asked_at, std::chrono::seconds(3))
        << "the server waited for the first channel";
}

TEST_F(breaks, are_sent_on_another_channel_if_the_first_is_lost_with_them) {
    first_->close_connection();
    acknowledges_break(second_);
}

TEST_F(breaks, keep_no_session_of_a_connection_that_ends_while_a_compound_waits_for_them) {
    const smb::auth::credentials who{.user = "u",
                                     .domain = {},
                                     .workstation = {},
                                     .target_name = {},
                                     .hash = smb::auth::nt_hash::of_password("p").value()};
    smb::auth::initiating_negotiator somebody(who, where_.secrets, where_.clock);
    const auto token = std::get<smb::auth::step_continue>(somebody.step({})).token;
    compliant_client staying(where_);
    ASSERT_EQ(staying.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(staying.connect_tree("files"), nt_status::success);
    compliant_client leaving(where_);
    ASSERT_EQ(leaving.bind_to(staying, "u", "p"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.contexts.durable_v2.emplace();
    how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
    leaving.send_create("f", how);  // it continues to wait, and its connection with it
    leaving.begin_compound();
    leaving.send_create("f");
    leaving.use_ids({});
    leaving.send(command::session_setup, smb::wire::session_setup_args{.security_blob = token});
    leaving.end_compound();
    EXPECT_FALSE(other_.is_answered(waiting_)) << "the server has received both, and they wait";
    leaving.fall_silent();  // pending requests are still answered
    EXPECT_FALSE(other_.is_answered(waiting_)) << "in the meantime the server has detected the loss";
    EXPECT_EQ(where_.server->gauges().sessions, 3U) << "no session was begun on the ending connection";
    acknowledges_break(*first_);
}

TEST_F(breaks, keep_a_create_of_a_lost_channel_waiting_for_them) {
    compliant_client second_of_other(where_);
    ASSERT_EQ(second_of_other.bind_to(other_, "u", "p"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.contexts.durable_v2.emplace();
    how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
    const std::uint64_t lost = second_of_other.send_create("f", how);
    ASSERT_FALSE(second_of_other.is_answered(lost));
    second_of_other.close_connection();
    EXPECT_FALSE(other_.is_answered(waiting_))
        << "in the meantime the server has detected the loss of the channel";
    other_.channel_sequence = 1;
    other_.flags = smb::wire::header_flags::replay;
    const std::uint64_t again = other_.send_create("f", how);
    EXPECT_EQ(other_.answer_to(again).status(), nt_status::file_not_available);
    acknowledges_break(*first_);
    other_.flags = smb::wire::header_flags::replay;
    EXPECT_EQ(close(other_, other_.create("f", how).file), nt_status::success);
    EXPECT_EQ(where_.server->gauges().opens, 2U) << "one for each of the two CREATEs without a GUID";
}

TEST_F(breaks, leave_no_open_to_a_session_that_ends_while_its_lost_channel_waits_for_them) {
    compliant_client second_of_other(where_);
    ASSERT_EQ(second_of_other.bind_to(other_, "u", "p"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.contexts.durable_v2.emplace();
    how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
    const std::uint64_t lost = second_of_other.send_create("f", how);
    ASSERT_FALSE(second_of_other.is_answered(lost));
    second_of_other.close_connection();
    EXPECT_FALSE(other_.is_answered(waiting_)) << "the server has detected that the channel is lost";
    std::vector<std::unique_ptr<compliant_client>> copies;
    for (std::size_t i = 0; i != smb::server::limits::channels_per_session_max; ++i) {
        compliant_client& one = *copies.emplace_back(std::make_unique<compliant_client>(where_));
        (void)one.answer_to(one.send_copy(second_of_other.first_of_authentication()));
    }
    EXPECT_EQ(other_.call(command::logoff, smb::wire::logoff_args{}).status(), nt_status::success);
    ASSERT_EQ(first_->answer_to(unasked).message().header().command, command::oplock_break);
    EXPECT_EQ(first_
                  ->call(command::oplock_break,
                         smb::wire::oplock_break_args{smb::wire::oplock_break{.file = file_}})
                  .status(),
              nt_status::success);
    EXPECT_EQ(where_.server->gauges().opens, 1U) << "that of the first client";
}

// A channel is lost after each number of sent bytes: a request in flight is carried out once when
// its client repeats it on another channel ([MS-SMB2] 3.2.7.1, 3.3.5.2.10).
class failover {
public:
    failover(world& where, std::size_t arriving_bytes) : first_(where), second_(where) {
        EXPECT_EQ(first_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(first_.connect_tree("files"), nt_status::success);
        EXPECT_EQ(second_.bind_to(first_, "u", "p"), nt_status::success);
        second_.sends_at_most = arriving_bytes;
    }

    /// Returns whether the second channel survived.
    bool run() {
        auto how = compliant_client::for_everything();
        how.disposition = smb::wire::create_disposition::create;  // a second CREATE would fail with
                                                                  // a collision
        how.oplock_level = smb::wire::oplock_level::batch;
        how.contexts.durable_v2.emplace();
        how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
        const std::string name = smb::wire::utf16_of("new").value();
        how.name = std::as_bytes(std::span(name));
        const auto made = ask(command::create, how);
        if (made.status() != nt_status::success) return fail("create", made.status());
        const auto file = smb::wire::decode_create_reply(made.message()).value().file;
        const smb::wire::raw_lock_element exclusively = smb::wire::encode_lock_element(
            {.offset_bytes = 0,
             .length_bytes = 10,
             .flags = smb::wire::lock_flags::exclusive | smb::wire::lock_flags::fail_immediately});
        expect("lock", ask(command::lock, smb::wire::lock_args{
                                              .file = file,
                                              .sequence_number = 1,
                                              .sequence_index = 1,
                                              .elements = smb::wire::lock_list(std::span(&exclusively, 1))}));
        const std::string text = "once";
        expect("write", ask(command::write,
                            smb::wire::write_args{
                                .file = file, .offset_bytes = 3, .data = std::as_bytes(std::span(text))}));
        const auto closed = ask(command::close, smb::wire::close_args{.file = file});
        // If it was closed before its reply was lost, the open no longer exists.
        const bool is_closed = closed.status() == nt_status::success or
                               (has_failed_ and closed.status() == nt_status::file_closed);
        EXPECT_TRUE(is_closed) << smb::wire::name_of(closed.status());
        return not has_failed_;
    }
    [[nodiscard]] std::uint64_t size_of_file() { return first_.create("new").information.end_of_file_bytes; }

private:
    // Uses the second channel while it exists, then the first.
    template <class Args>
    compliant_client::answer ask(command code, const Args& args) {
        if (not has_failed_) {
            auto answered = second_.call(code, args);
            if (not answered.bytes.empty()) return answered;
            has_failed_ = true;
            first_.channel_sequence = 1;
            first_.flags = smb::wire::header_flags::replay;
        }
        auto answered = first_.call(code, args);
        first_.flags = smb::wire::header_flags::none;
        return answered;
    }
    void expect(const char* what, const compliant_client::answer& said) {
        EXPECT_EQ(said.status(), nt_status::success) << what << ": " << smb::wire::name_of(said.status());
    }
    bool fail(const char* what, nt_status why) {
        ADD_FAILURE() << what << ": " << smb::wire::name_of(why);
        return true;
    }

    compliant_client first_;
    compliant_client second_;
    bool has_failed_ = false;
};

TEST(channels_that_die, have_every_request_carried_out_once_on_the_others) {
    bool has_lived = false;
    std::size_t cut = 0;
    for (; not has_lived; cut += 7) {
        SCOPED_TRACE(cut);
        world where(io::simulation_options{.seed = cut}, cut);
        {
            failover client(where, cut);
            has_lived = client.run();
            EXPECT_EQ(client.size_of_file(), 7U);
        }
        where.stop();
        ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_GT(cut, 400U) << "four requests are longer than that";
}

TEST_F(channels, reject_changes_sent_before_a_failure) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    const auto file = first_->create("f").file;
    const std::string text = "now";
    const smb::wire::write_args write{.file = file, .data = std::as_bytes(std::span(text))};
    first_->channel_sequence = 1;
    EXPECT_EQ(first_->call(command::write, write).status(), nt_status::success);
    EXPECT_EQ(second.call(command::write, write).status(), nt_status::file_not_available);
    second.channel_sequence = 1;
    EXPECT_EQ(second.call(command::write, write).status(), nt_status::success);
    EXPECT_EQ(close(second, file), nt_status::success);
}

// A slow file: writes to it are in progress for up to a second.
void have_slow_files(smb::server::server_configuration& of) {
    static_cast<vfs::memory_volume&>(*of.shares.front().volume)
        .set_faults({.delay_max = std::chrono::seconds(1)});
}

class ends_of_opens : public two_channels {
protected:
    ends_of_opens() : two_channels(have_slow_files) {
        auto alone = compliant_client::for_everything();
        alone.share_access = smb::wire::share_access::none;
        file_ = first_->create("f", alone).file;
        const std::string text = "written";
        writing_ = first_->send(command::write,
                                smb::wire::write_args{.file = file_, .data = std::as_bytes(std::span(text))});
        EXPECT_FALSE(first_->is_answered(writing_)) << "it is in progress";
    }
    // Checks that another client, whose open was refused before, finds the written data.
    void is_found_written_by_another() {
        EXPECT_EQ(other_.create("f").information.end_of_file_bytes, 7U);
        EXPECT_EQ(first_->answer_to(writing_).status(), nt_status::success);
    }

    std::uint64_t writing_ = 0;
};

TEST_F(ends_of_opens, come_after_the_writes_of_another_channel) {
    const std::uint64_t close_task =
        second_.send(command::close,
                     smb::wire::close_args{.flags = smb::wire::close_flags::query_attributes, .file = file_});
    EXPECT_FALSE(second_.is_answered(close_task)) << "it waits for the write";
    EXPECT_EQ(second_.call(command::close, smb::wire::close_args{.file = file_}).status(),
              nt_status::file_closed)
        << "no request can use it in the meantime";
    const auto closed = second_.answer_to(close_task);
    EXPECT_EQ(closed.status(), nt_status::success);
    EXPECT_EQ(smb::wire::decode_close_reply(closed.message()).value().information.end_of_file_bytes, 7U);
    is_found_written_by_another();
}

TEST_F(ends_of_opens, make_other_opens_of_the_file_wait_for_that) {
    second_.send(command::close, smb::wire::close_args{.file = file_});
    is_found_written_by_another();
}

TEST_F(ends_of_opens, come_after_the_writes_at_a_logoff_too) {
    EXPECT_EQ(second_.call(command::logoff, smb::wire::logoff_args{}).status(), nt_status::success);
    EXPECT_EQ(other_.create("f").information.end_of_file_bytes, 7U);
}

}  // namespace
}  // namespace sluice::smb_simulation
