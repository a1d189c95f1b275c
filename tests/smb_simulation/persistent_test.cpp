#include <array>
#include <set>
#include <string>

#include "sluice/base/random.hpp"
#include "sluice/vfs/node_names.hpp"
#include "tests/smb_simulation/world/persistent_world.hpp"

// Opens that survive the server process ([MS-SMB2] 3.3.5.9.10, .12).

namespace sluice::smb_simulation {
namespace {

using smb::server::handle_journal;
using smb::wire::access_mask;
using smb::wire::create_args;
using smb::wire::create_options;
using smb::wire::durable_flags;
using smb::wire::file_id;
using smb::wire::header_flags;
using smb::wire::lease_state;
using smb::wire::lock_flags;
using smb::wire::nt_status;

using smb::wire::rename_flags;
using smb::wire::operator|;  // NOLINT: for the flags
constexpr rename_flags posix_replacement = rename_flags::replace_if_exists | rename_flags::posix_semantics;

TEST_F(persistent, open_is_granted_whatever_is_cached) {
    const auto made = owner_->create("f", wanted());
    ASSERT_TRUE(made.contexts.durable_v2.has_value());
    EXPECT_EQ(made.contexts.durable_v2->flags, durable_flags::persistent);
    EXPECT_EQ(now_->journal->slots_in_use(), 1U);
    EXPECT_EQ(close(*owner_, made.file), nt_status::success);
    EXPECT_EQ(now_->journal->slots_in_use(), 0U);
}

TEST_F(persistent, open_is_not_granted_for_attributes_or_directories) {
    auto how = wanted();
    how.desired_access = access_mask::read_attributes;
    EXPECT_FALSE(owner_->create("f", how).contexts.durable_v2.has_value());
    how = wanted();
    how.contexts.durable_v2->create_guid.bytes[0] = std::byte{8};
    how.options = create_options::directory_file;
    EXPECT_FALSE(owner_->create("d", how).contexts.durable_v2.has_value());
}

TEST_F(persistent, open_survives_the_loss_of_its_client_with_its_locks) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(lock(*owner_, made.file, 0), nt_status::success);
    lose_owner();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::success);
    EXPECT_EQ(lock(*owner_, made.file, 0), nt_status::lock_not_granted) << "its own lock is still there";
    EXPECT_EQ(close(*owner_, made.file), nt_status::success);
}

TEST_F(persistent, open_without_its_client_admits_no_other_client) {
    const auto made = owner_->create("f", wanted());
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success) << "while its client is there";
    lose_owner();
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    auto reconnecting = back(wanted(), made.file);
    EXPECT_EQ(other_->try_create("f", reconnecting), nt_status::access_denied) << "another user";
    reconnecting.contexts.durable_reconnect_v2->flags = durable_flags::none;
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->try_create("f", reconnecting), nt_status::object_name_not_found);
    EXPECT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::success);
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
}

TEST_F(persistent, open_ends_when_its_time_has_passed) {
    auto how = wanted();
    how.contexts.durable_v2->timeout_ms = 1000;
    (void)owner_->create("f", how);
    other_ = log_on(2, "v");
    owner_->close_connection();
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    where_.run();  // until nothing is pending
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
    EXPECT_EQ(now_->journal->slots_in_use(), 0U);
}

TEST_F(persistent, open_is_what_a_repeated_create_returns_also_after_its_use) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(write(*owner_, made.file, "used"), nt_status::success);
    EXPECT_EQ(owner_->try_create("f", wanted()), nt_status::duplicate_objectid);
    owner_->flags = header_flags::replay;
    EXPECT_EQ(owner_->create("f", wanted()).file, made.file);
    auto different = wanted();
    different.contexts.durable_v2->flags = durable_flags::none;
    EXPECT_EQ(owner_->try_create("f", different), nt_status::invalid_parameter);
}

TEST_F(persistent, open_is_found_by_its_create_guid_alone) {
    const auto made = owner_->create("f", wanted());
    lose_owner();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f", back(wanted(), {})).file, made.file);
}

TEST_F(persistent, lease_of_an_absent_client_yields_at_once) {
    const auto made = owner_->create("f", wanted(all_caching));
    EXPECT_EQ(made.contexts.lease->state, all_caching);
    other_ = log_on(2, "v");
    lose_owner();
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    owner_ = log_on(1, "u");
    const auto again = owner_->create("f", back(wanted(all_caching), made.file));
    EXPECT_EQ(again.contexts.lease->state, all_caching)
        << "no other client was admitted, so nothing was broken";
}

TEST_F(persistent, open_of_a_killed_server_is_restored_with_lease_and_locks) {
    const auto made = owner_->create("f", wanted(all_caching));
    ASSERT_EQ(lock(*owner_, made.file, 0), nt_status::success);
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    owner_ = log_on(1, "u");
    const auto again = owner_->create("f", back(wanted(all_caching), made.file));
    EXPECT_EQ(again.file, made.file);
    EXPECT_EQ(again.contexts.lease->state, all_caching);
    EXPECT_EQ(again.contexts.lease->v2->epoch, made.contexts.lease->v2->epoch);
    EXPECT_EQ(lock(*owner_, made.file, 0), nt_status::lock_not_granted);
    EXPECT_EQ(lock(*owner_, made.file, 0, lock_flags::unlock), nt_status::success);
    EXPECT_EQ(close(*owner_, made.file), nt_status::success);
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
}

TEST_F(persistent, open_survives_an_orderly_restart_and_several_kills) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(lock(*owner_, made.file, 0), nt_status::success);
    restart();
    kill_and_restart();
    restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->create("f", back(wanted(), made.file)).file, made.file);
    EXPECT_EQ(lock(*owner_, made.file, 0), nt_status::lock_not_granted);
}

TEST_F(persistent, lock_that_was_released_is_not_restored) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(lock(*owner_, made.file, 0), nt_status::success);
    ASSERT_EQ(lock(*owner_, made.file, 0, lock_flags::unlock), nt_status::success);
    kill_and_restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->create("f", back(wanted(), made.file)).file, made.file);
    EXPECT_EQ(lock(*owner_, made.file, 0), nt_status::success);
}

TEST_F(persistent, locks_that_fit_in_one_order_only_are_restored) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(lock(*owner_, made.file, 100), nt_status::success);
    ASSERT_EQ(lock(*owner_, made.file, 0, lock_flags::shared | lock_flags::fail_immediately, 1000),
              nt_status::success);
    kill_and_restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->create("f", back(wanted(), made.file)).file, made.file);
    EXPECT_EQ(lock(*owner_, made.file, 0, lock_flags::unlock, 1000), nt_status::success);
    EXPECT_EQ(lock(*owner_, made.file, 100, lock_flags::unlock), nt_status::success);
}

TEST_F(persistent, cache_that_a_write_has_broken_before_the_kill_is_not_restored) {
    const auto made = owner_->create("f", wanted(lease_state::read | lease_state::handle));
    other_ = log_on(2, "v");
    const auto theirs = other_->create("f", plain());
    ASSERT_EQ(write(*other_, theirs.file, "new"), nt_status::success) << "the break has no answer yet";
    kill_and_restart();
    owner_ = log_on(1, "u");
    const auto again = owner_->create("f", back(wanted(lease_state::read | lease_state::handle), made.file));
    EXPECT_EQ(again.contexts.lease->state, lease_state::none);
}

TEST_F(persistent, open_survives_more_kills_than_failed_restorations_are_allowed) {
    const auto made = owner_->create("f", wanted());
    for (unsigned kills = 0; kills != 2 * handle_journal::attempts_max; ++kills) {
        kill_and_restart();
        owner_ = log_on(1, "u");
        ASSERT_EQ(owner_->create("f", back(wanted(), made.file)).file, made.file);
    }
}

TEST_F(persistent, closed_open_is_not_restored) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
}

TEST_F(persistent, open_that_deletes_on_close_still_does_after_the_kill) {
    auto how = wanted();
    how.options = create_options::delete_on_close;
    const auto made = owner_->create("f", how);
    kill_and_restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->create("f", back(how, made.file)).file, made.file);
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    auto existing = plain();
    existing.disposition = smb::wire::create_disposition::open;
    EXPECT_EQ(owner_->try_create("f", existing), nt_status::object_name_not_found);
}

TEST_F(persistent, open_that_cannot_be_restored_keeps_others_out_until_it_can) {
    const auto made = owner_->create("f", wanted());
    now_->is_available = false;
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    const auto theirs = other_->create("g", plain());
    EXPECT_EQ(rename(*other_, theirs.file, "f", posix_replacement), nt_status::access_denied);
    now_->is_available = true;
    kill_and_restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f", back(wanted(), made.file)).file, made.file);
}

TEST_F(persistent, open_that_cannot_be_restored_keeps_others_out_until_its_time_ends) {
    const auto made = owner_->create("f", wanted());
    now_->is_available = false;
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::file_not_available);
    where_.run();  // until nothing is pending
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
    EXPECT_EQ(now_->journal->slots_in_use(), 0U);
    now_->is_available = true;
    kill_and_restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::object_name_not_found);
}

TEST_F(persistent, record_of_a_removed_user_is_dropped) {
    (void)owner_->create("f", wanted());
    other_ = log_on(2, "v");
    now_->journal->freeze();
    where_.admit("v");
    restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", plain()), nt_status::success);
}

TEST_F(persistent, record_of_a_missing_file_is_dropped) {
    const auto made = owner_->create("f", wanted());
    now_->journal->freeze();
    ASSERT_TRUE(vfs::remove(**volume_->find("f", vfs::follow_links::no)));
    restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::object_name_not_found);
    EXPECT_EQ(owner_->try_create("f", plain()), nt_status::success);
}

TEST_F(persistent, open_keeps_its_file_from_being_replaced_by_a_posix_rename) {
    const auto made = owner_->create("f", wanted());
    other_ = log_on(2, "v");
    const auto theirs = other_->create("g", plain());
    EXPECT_EQ(rename(*other_, theirs.file, "f", posix_replacement), nt_status::access_denied);
    lose_owner();
    EXPECT_EQ(rename(*other_, theirs.file, "f", posix_replacement), nt_status::access_denied);
    kill_and_restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::success);
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    other_ = log_on(2, "v");
    EXPECT_EQ(rename(*other_, other_->create("g", plain()).file, "f", posix_replacement), nt_status::success);
}

TEST_F(persistent, open_of_a_stream_keeps_the_file_from_being_replaced_or_overwritten) {
    (void)owner_->create("f", plain());
    const auto made = owner_->create("f:s", wanted());
    ASSERT_TRUE(made.contexts.durable_v2.has_value());
    other_ = log_on(2, "v");
    const auto theirs = other_->create("g", plain());
    EXPECT_EQ(rename(*other_, theirs.file, "f", rename_flags::replace_if_exists), nt_status::access_denied);
    EXPECT_EQ(rename(*other_, theirs.file, "f", posix_replacement), nt_status::access_denied);
    lose_owner();
    auto overwriting = plain();
    overwriting.disposition = smb::wire::create_disposition::overwrite;
    EXPECT_EQ(other_->try_create("f", overwriting), nt_status::file_not_available);
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", overwriting), nt_status::file_not_available);
    auto reading = existing();
    reading.desired_access = access_mask::read_data;
    EXPECT_EQ(other_->try_create("f", reading), nt_status::success) << "the file itself is not in use";
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->try_create("f:s", back(wanted(), made.file)), nt_status::success);
}

TEST_F(persistent, open_of_a_stream_of_the_root_is_not_granted) {
    const auto made = owner_->create(":s", wanted());
    EXPECT_FALSE(made.contexts.durable_v2.has_value() and
                 made.contexts.durable_v2->flags == durable_flags::persistent);
}

TEST_F(persistent, open_is_restored_by_the_new_name_of_its_file) {
    const auto made = owner_->create("f", wanted(all_caching));
    ASSERT_EQ(rename(*owner_, made.file, "g"), nt_status::success);
    kill_and_restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("g", plain()), nt_status::file_not_available);
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("g", back(wanted(all_caching), made.file)).file, made.file);
    EXPECT_EQ(close(*owner_, made.file), nt_status::success);
}

TEST_F(persistent, open_of_a_stream_is_restored_after_its_file_has_another_name) {
    const auto file = owner_->create("f", plain());
    const auto made = owner_->create("f:s", wanted());
    ASSERT_EQ(rename(*owner_, file.file, "g"), nt_status::success);
    kill_and_restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("g:s", back(wanted(), made.file)).file, made.file);
}

TEST_F(persistent, open_is_returned_for_the_old_name_of_its_file_if_the_reply_to_the_rename_is_lost) {
    const auto made = owner_->create("f", wanted(all_caching));
    ASSERT_EQ(rename(*owner_, made.file, "g"), nt_status::success);
    lose_owner();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f", back(wanted(all_caching), made.file)).file, made.file);
    kill_and_restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f", back(wanted(all_caching), made.file)).file, made.file);
}

TEST_F(persistent, open_of_a_stream_keeps_its_name) {
    const auto made = owner_->create("f:s", wanted());
    EXPECT_EQ(rename(*owner_, made.file, ":t"), nt_status::access_denied);
    kill_and_restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f:s", back(wanted(), made.file)).file, made.file);
}

TEST_F(persistent, open_of_a_stream_without_its_client_does_not_concern_other_streams) {
    (void)owner_->create("f:s", wanted());
    other_ = log_on(2, "v");
    lose_owner();
    auto overwriting = plain();
    overwriting.disposition = smb::wire::create_disposition::overwrite_if;
    EXPECT_EQ(other_->try_create("f:t", overwriting), nt_status::success);
}

TEST_F(persistent, open_of_a_stream_keeps_its_file_over_an_orderly_restart) {
    const auto made = owner_->create("f:s", wanted());
    ASSERT_TRUE(made.contexts.durable_v2.has_value());
    auto deleting = plain();
    deleting.options = create_options::delete_on_close;
    other_ = log_on(2, "v");
    ASSERT_EQ(close(*other_, other_->create("f", deleting).file), nt_status::success);
    restart();
    owner_ = log_on(1, "u");
    EXPECT_EQ(owner_->create("f:s", back(wanted(), made.file)).file, made.file);
}

// A request of the client may still use the open: its record must not wait for that one.
TEST_F(persistent, deletion_that_another_client_has_undone_is_not_restored) {
    const auto made = owner_->create("f", wanted());
    ASSERT_EQ(write(*owner_, made.file, "data"), nt_status::success);
    other_ = log_on(2, "v");
    const auto theirs = other_->create("f", plain());
    auto used = where_.server->context().opens.find_persistent(made.file.persistent_part.value());
    ASSERT_NE(used, nullptr);
    ASSERT_EQ(set_deletion(*owner_, made.file, true), nt_status::success);
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    ASSERT_EQ(set_deletion(*other_, theirs.file, false), nt_status::success);
    now_->journal->freeze();
    used.reset();
    restart();
    other_ = log_on(2, "v");
    EXPECT_EQ(other_->try_create("f", existing()), nt_status::success);
    where_.run();  // until nothing is pending
    EXPECT_EQ(other_->try_create("f", existing()), nt_status::success);
}

TEST_F(persistent, deletion_of_a_closed_open_is_carried_out_after_a_kill) {
    const auto made = owner_->create("f", wanted());
    other_ = log_on(2, "v");
    const auto theirs = other_->create("f", wanted(lease_state::none, std::byte{9}));
    ASSERT_EQ(theirs.contexts.durable_v2->flags, durable_flags::persistent);
    ASSERT_EQ(set_deletion(*owner_, made.file, true), nt_status::success);
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    kill_and_restart();
    other_ = log_on(2, "v");
    ASSERT_EQ(other_->try_create("f", back(wanted(lease_state::none, std::byte{9}), theirs.file)),
              nt_status::success);
    where_.run();
    ASSERT_EQ(close(*other_, theirs.file), nt_status::success);
    EXPECT_EQ(other_->try_create("f", existing()), nt_status::object_name_not_found);
}

TEST_F(persistent, deletion_by_an_open_without_a_record_survives_an_orderly_restart) {
    const auto made = owner_->create("f", wanted());
    auto deleting = plain();
    deleting.options = create_options::delete_on_close;
    (void)owner_->create("f", deleting);
    restart();
    owner_ = log_on(1, "u");
    ASSERT_EQ(owner_->try_create("f", back(wanted(), made.file)), nt_status::success);
    ASSERT_EQ(close(*owner_, made.file), nt_status::success);
    EXPECT_EQ(owner_->try_create("f", existing()), nt_status::object_name_not_found);
}

// Random clients, one request at a time, until the process is killed.
class persistent_at_random : public persistent, public testing::WithParamInterface<std::uint64_t> {
protected:
    struct promised {
        std::optional<file_id> file;
        create_args how;
        lease_state caching = lease_state::none;
        std::set<std::uint64_t> locks;
        file_id of_other{};
    };
    static constexpr std::size_t files = 3;
    static constexpr std::uint64_t ranges = 4;

    [[nodiscard]] static std::string name_of(std::size_t i) { return "f" + std::to_string(i); }

    void open(promised& of, std::size_t i) {
        constexpr std::array choices{lease_state::none, lease_state::read,
                                     lease_state::read | lease_state::handle, all_caching};
        of.how = wanted(choices[random_.below(choices.size())], static_cast<std::byte>(++guids_));
        const auto made = owner_->create(name_of(i), of.how);
        ASSERT_TRUE(made.contexts.durable_v2.has_value());
        ASSERT_EQ(made.contexts.durable_v2->flags, durable_flags::persistent);
        of.file = made.file;
        of.caching = made.contexts.lease ? made.contexts.lease->state : lease_state::none;
    }
    void step() {
        const std::size_t i = random_.below(files);
        promised& of = promises_[i];
        if (not of.file) return open(of, i);
        const std::uint64_t where = random_.below(ranges) * 10;
        switch (random_.below(5)) {
            case 0:
                EXPECT_EQ(close(*owner_, *of.file), nt_status::success);
                of.file.reset();
                of.locks.clear();
                break;
            case 1:
                // Unless all is cached, the other client may write.
                if (write(*other_, of.of_other, "beyond", 1000) == nt_status::success)
                    of.caching = lease_state::none;
                break;
            default:
                if (of.locks.insert(where).second) {
                    EXPECT_EQ(lock(*owner_, *of.file, where), nt_status::success);
                } else {
                    of.locks.erase(where);
                    EXPECT_EQ(lock(*owner_, *of.file, where, lock_flags::unlock), nt_status::success);
                }
        }
    }
    void check(std::size_t i) {
        promised& of = promises_[i];
        const nt_status before = other_->try_create(name_of(i), plain());
        EXPECT_EQ(before, of.file ? nt_status::file_not_available : nt_status::success);
        if (not of.file) return;
        const auto again = owner_->create(name_of(i), back(of.how, *of.file));
        EXPECT_EQ(again.file, *of.file);
        EXPECT_EQ(again.contexts.lease ? again.contexts.lease->state : lease_state::none, of.caching);
        const auto theirs = other_->create(name_of(i), plain());
        for (std::uint64_t where = 0; where != ranges * 10; where += 10)
            EXPECT_EQ(lock(*other_, theirs.file, where),
                      of.locks.contains(where) ? nt_status::lock_not_granted : nt_status::success);
    }

    seeded_random random_{GetParam()};
    std::array<promised, files> promises_;
    unsigned guids_ = 10;
};

TEST_P(persistent_at_random, promises_hold_after_a_kill) {
    other_ = log_on(2, "v");
    for (std::size_t i = 0; i != files; ++i)
        promises_[i].of_other = other_->create(name_of(i), plain()).file;
    for (std::uint64_t steps = 1 + random_.below(40); steps != 0; --steps)
        ASSERT_NO_FATAL_FAILURE(step());
    kill_and_restart();
    other_ = log_on(2, "v");
    owner_ = log_on(1, "u");
    for (std::size_t i = 0; i != files; ++i)
        check(i);
}

INSTANTIATE_TEST_SUITE_P(seeds, persistent_at_random, testing::Range(std::uint64_t{0}, std::uint64_t{60}));

}  // namespace
}  // namespace sluice::smb_simulation
