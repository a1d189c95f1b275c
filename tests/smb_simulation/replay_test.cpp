#include <unistd.h>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// A CREATE that is repeated, because its reply may have been lost ([MS-SMB2] 3.3.5.9.10).

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::header_flags;
using smb::wire::nt_status;

class replay : public served {
protected:
    static smb::wire::create_args repeatable() {
        auto how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::none;
        how.contexts.durable_v2.emplace();
        how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
        return how;
    }
    void use(const smb::wire::create_reply& one) {
        const smb::wire::query_info_args question{.information_class = 4,  // FileBasicInformation
                                                  .output_bytes_max = 100,
                                                  .file = one.file};
        EXPECT_EQ(client().call(command::query_info, question).status(), nt_status::success);
    }
};

TEST_F(replay, returns_the_same_open_until_it_was_used) {
    const auto first = client().create("f", repeatable());
    client().flags = header_flags::replay;
    EXPECT_EQ(client().create("f", repeatable()).file, first.file);
    client().flags = header_flags::none;
    use(first);
    client().flags = header_flags::replay;
    EXPECT_NE(client().create("f", repeatable()).file, first.file);
}

// A client that reconnects to an open that it had made durable ([MS-SMB2] 3.3.5.9.7).
class coming_back : public served {
protected:
    explicit coming_back(void (*adjust)(smb::server::server_configuration&) = nullptr)
        : served(adjust), second_(where_) {
        EXPECT_EQ(second_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(second_.connect_tree("files"), nt_status::success);
        auto how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::batch;
        how.contexts.durable = true;
        file_ = first_->create("f", how).file;
        auto again = how;
        again.contexts.durable = false;
        again.contexts.durable_reconnect = file_;
        waiting_ = second_.send_create("f", again);
    }

    compliant_client second_;
    smb::wire::file_id file_{};
    std::uint64_t waiting_ = 0;
};

TEST_F(coming_back, finds_an_open_whose_lost_connection_has_just_been_detected) {
    EXPECT_FALSE(second_.is_answered(waiting_)) << "it still belongs to the earlier session";
    first_->close_connection();
    EXPECT_EQ(second_.answer_to(waiting_).status(), nt_status::success);
}

TEST_F(coming_back, does_not_get_an_open_that_its_owner_still_has) {
    EXPECT_EQ(second_.answer_to(waiting_).status(), nt_status::object_name_not_found);
    EXPECT_EQ(first_->call(command::close, smb::wire::close_args{.file = file_}).status(),
              nt_status::success);
}

// The tree of the open is replaced, and with it the volume that acts as the account of the user.
class coming_back_as_an_account : public coming_back {
protected:
    coming_back_as_an_account() : coming_back(act_as_accounts) {}

private:
    static void act_as_accounts(smb::server::server_configuration& of) {
        if (::geteuid() != 0) return;  // only root may
        of.account_of = [](const std::string&) {
            return std::optional(vfs::unix_account{.user_id = ::geteuid(), .group_id = ::getegid()});
        };
    }
};

TEST_F(coming_back_as_an_account, uses_an_open_whose_first_tree_has_ended) {
    first_->close_connection();
    ASSERT_EQ(second_.answer_to(waiting_).status(), nt_status::success);
    const smb::wire::query_info_args question{.information_class = 4,  // FileBasicInformation
                                              .output_bytes_max = 100,
                                              .file = file_};
    EXPECT_EQ(second_.call(command::query_info, question).status(), nt_status::success);
    EXPECT_EQ(second_.call(command::close, smb::wire::close_args{.file = file_}).status(),
              nt_status::success);
}

// The same with a lease and a locked range: the client's cached state must still be valid.
class coming_back_with_a_lock : public served {
protected:
    // Returns the status of the reconnect.
    nt_status after_losing(smb::wire::lease_state held) {
        compliant_client second(where_);
        EXPECT_EQ(second.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(second.connect_tree("files"), nt_status::success);
        auto how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::lease;
        how.contexts.lease = {.key = {}, .state = held};
        how.contexts.durable = true;
        const smb::wire::file_id file = first_->create("f", how).file;
        const auto element =
            smb::wire::encode_lock_element({.offset_bytes = 10, .length_bytes = 10, .flags = at_once});
        const smb::wire::lock_args locking{.file = file,
                                           .elements = smb::wire::lock_list(std::span(&element, 1))};
        EXPECT_EQ(first_->call(command::lock, locking).status(), nt_status::success);
        auto again = how;
        again.contexts.durable = false;
        again.contexts.durable_reconnect = file;
        first_->close_connection();
        return second.answer_to(second.send_create("f", again)).status();
    }
    static constexpr auto at_once =
        smb::wire::lock_flags::exclusive | smb::wire::lock_flags::fail_immediately;
    static constexpr auto read_and_handle = smb::wire::lease_state::read | smb::wire::lease_state::handle;
};

TEST_F(coming_back_with_a_lock, keeps_it_if_it_may_have_cached_writes) {
    EXPECT_EQ(after_losing(read_and_handle | smb::wire::lease_state::write), nt_status::success);
}

TEST_F(coming_back_with_a_lock, must_open_again_if_it_may_not) {
    EXPECT_EQ(after_losing(read_and_handle), nt_status::object_name_not_found);
}

}  // namespace
}  // namespace sluice::smb_simulation
