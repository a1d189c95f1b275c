#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/vfs/node_names.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// A server alongside another server, which the tests simulate with answers at the worst times.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using server::peer_lock;
using server::share_mode_lock_byte;
using wire::command;
using wire::nt_status;
using wire::without;
using wire::operator|=;  // NOLINT: for the lock bytes

class played_server final : public server::peer_servers {
public:
    std::unique_ptr<server::peer_file> file(const vfs::file_key&) override {
        return std::make_unique<seen_file>(*this);
    }

    std::function<void()> before_raise;                    // called once
    std::deque<result<share_mode_lock_byte>> conflicting;  // the next answers; afterwards
                                                           // there are no conflicts
    unsigned open_for_seals = 0;   // how often it still has a file open when it is sealed
    unsigned checks_at_seals = 0;  // how often it checks a file when it is sealed
    bool has_locked = false;       // has locked every byte of every file
    unsigned exclusive_claims = 0;
    unsigned files_left_shown = 0;  // at the end of such a claim

private:
    class seen_file final : public server::peer_file {
    public:
        explicit seen_file(played_server& by) noexcept : by_(by) {}
        result<share_mode_lock_byte> raise(share_mode_lock_byte up, share_mode_lock_byte) noexcept override {
            if (const auto act = std::exchange(by_.before_raise, nullptr)) act();
            if (by_.conflicting.empty()) {
                shown_ |= up;
                return share_mode_lock_byte::none;
            }
            const result<share_mode_lock_byte> said = by_.conflicting.front();
            by_.conflicting.pop_front();
            return said;
        }
        void lower(share_mode_lock_byte down) noexcept override { shown_ = without(shown_, down); }
        result<void> claim_exclusively() noexcept override {
            if (by_.checks_at_seals != 0) {
                --by_.checks_at_seals;
                return failure({EAGAIN, "seal"});
            }
            if (by_.open_for_seals == 0) return {};
            --by_.open_for_seals;
            return failure({EBUSY, "seal"});
        }
        void end_exclusive_claim() noexcept override {
            ++by_.exclusive_claims;
            if (shown_ != share_mode_lock_byte::none) ++by_.files_left_shown;
        }
        bool lock(const sync::byte_range&, peer_lock to) noexcept override {
            return not by_.has_locked or to == peer_lock::free;
        }
        bool is_lockable(const sync::byte_range&, peer_lock) noexcept override { return not by_.has_locked; }

    private:
        played_server& by_;
        share_mode_lock_byte shown_ = share_mode_lock_byte::none;
    };
};

class peers : public testing::Test {
protected:
    peers() {
        EXPECT_EQ(client_->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(client_->connect_tree("files"), nt_status::success);
    }
    ~peers() override {
        client_.reset();
        world_.stop();
    }

    nt_status create(wire::create_args how = compliant_client::for_everything()) {
        return client_->answer_to(client_->send_create("file", how)).status();
    }
    [[nodiscard]] wire::file_id create_doomed() {
        wire::create_args how = compliant_client::for_everything();
        how.options = wire::create_options::delete_on_close;
        return client_->create("file", how).file;
    }
    nt_status close(const wire::file_id& of) {
        return client_->call(command::close, wire::close_args{.file = of}).status();
    }
    [[nodiscard]] result<vfs::node_ptr> found() {
        return world_.server->context().shares.current()->front()->volume().find("file",
                                                                                 vfs::follow_links::yes);
    }
    [[nodiscard]] wire::lock_args args_of(const wire::file_id& file) {
        return {.file = file, .elements = wire::lock_list(std::span(&element_, 1))};
    }

    static result<share_mode_lock_byte> busy() { return failure({EAGAIN, "raise"}); }

    played_server other_;
    world world_{io::simulation_options{.seed = 1}, 1, nullptr, &other_};
    std::unique_ptr<compliant_client> client_ = std::make_unique<compliant_client>(world_);
    wire::raw_lock_element element_ = wire::encode_lock_element(
        {.offset_bytes = 0, .length_bytes = 1, .flags = wire::lock_flags::exclusive});
};

TEST_F(peers, that_inspect_a_file_are_awaited_but_not_indefinitely) {
    other_.conflicting.assign(5, busy());
    EXPECT_EQ(create(), nt_status::success) << "created once";
    other_.conflicting.assign(5, busy());
    EXPECT_EQ(create(), nt_status::success);
    other_.conflicting.assign(1000, busy());
    EXPECT_EQ(create(), nt_status::sharing_violation);
    EXPECT_GT(other_.conflicting.size(), 900U);
    EXPECT_LT(other_.conflicting.size(), 990U);
}

TEST_F(peers, report_conflicts_and_other_errors_are_failures) {
    other_.conflicting = {share_mode_lock_byte::denies_reading};
    EXPECT_EQ(create(), nt_status::sharing_violation);
    other_.conflicting = {share_mode_lock_byte::goes};
    EXPECT_EQ(create(), nt_status::delete_pending);
    other_.conflicting = {failure({ENOLCK, "raise"})};
    EXPECT_EQ(create(), nt_status::insufficient_resources);
    other_.conflicting = {share_mode_lock_byte::none, share_mode_lock_byte::denies_reading};
    EXPECT_EQ(client_->answer_to(client_->send_create("file:stream")).status(), nt_status::sharing_violation)
        << "the peers of the file are also asked for a stream";
}

TEST_F(peers, that_remove_a_file_while_it_is_opened_leave_no_open_of_an_unnamed_file) {
    ASSERT_EQ(close(client_->create("file").file), nt_status::success);
    other_.before_raise = [this] { EXPECT_TRUE(vfs::remove(**found())); };
    EXPECT_EQ(client_->create("file").action, wire::create_action::created);
    EXPECT_TRUE(found());
    other_.before_raise = [this] { EXPECT_TRUE(vfs::remove(**found())); };
    wire::create_args existing = compliant_client::for_everything();
    existing.disposition = wire::create_disposition::open;
    EXPECT_EQ(create(existing), nt_status::object_name_not_found);
}

TEST_F(peers, keep_a_file_pending_removal_until_they_have_closed_it) {
    const wire::file_id file = create_doomed();
    other_.open_for_seals = 10;
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_TRUE(found());
    EXPECT_EQ(create(), nt_status::delete_pending);
    world_.run();
    EXPECT_FALSE(found());
    EXPECT_EQ(other_.exclusive_claims, 1U);
    EXPECT_EQ(create(), nt_status::success);
}

TEST_F(peers, that_have_closed_a_file_let_it_go_before_the_reply) {
    const wire::file_id file = create_doomed();
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_FALSE(found());
    EXPECT_EQ(other_.exclusive_claims, 1U);
    EXPECT_EQ(other_.files_left_shown, 0U) << "another file may have its number now";
}

// The inode number of a file that another server has just removed may be used again.
TEST_F(peers, that_check_a_file_delay_its_removal_and_the_reply) {
    const wire::file_id file = create_doomed();
    other_.checks_at_seals = 3;
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_FALSE(found());
    EXPECT_EQ(other_.exclusive_claims, 1U);
}

TEST_F(peers, that_check_a_file_again_and_again_do_not_delay_the_reply_without_end) {
    const wire::file_id file = create_doomed();
    other_.checks_at_seals = 1000;
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_TRUE(found());
    EXPECT_EQ(create(), nt_status::delete_pending);
    other_.checks_at_seals = 0;
    world_.run();
    EXPECT_FALSE(found());
}

// Not a success before it is known.
TEST_F(peers, that_have_closed_a_file_leave_its_removal_to_fail_before_the_reply) {
    const wire::file_id file = create_doomed();
    ASSERT_TRUE(vfs::remove(**found()));
    EXPECT_NE(close(file), nt_status::success);
    EXPECT_EQ(other_.exclusive_claims, 1U);
}

TEST_F(peers, do_not_keep_a_file_pending_removal_when_the_server_ends) {
    const wire::file_id file = create_doomed();
    other_.open_for_seals = 1000;
    EXPECT_EQ(close(file), nt_status::success);
    world_.stop();
    EXPECT_FALSE(found());
    EXPECT_GT(other_.open_for_seals, 900U);
}

TEST_F(peers, that_replace_a_file_while_it_is_created_have_their_file_opened_and_kept) {
    other_.before_raise = [this] {
        EXPECT_TRUE(vfs::remove(**found()));
        EXPECT_TRUE(world_.server->context().shares.current()->front()->volume().create("file", {}));
    };
    wire::create_args fresh = compliant_client::for_everything();
    fresh.disposition = wire::create_disposition::create;
    EXPECT_EQ(create(fresh), nt_status::object_name_collision);
    EXPECT_TRUE(found());
}

TEST_F(peers, identify_files_by_inode_so_that_none_becomes_a_link) {
    const wire::file_id file = client_->create("file").file;
    std::array<std::byte, 256> room;
    byte_writer writer(room);
    ASSERT_TRUE(encode(writer, wire::reparse_symlink{.substitute = "x", .print = "x", .relative = true}));
    const wire::ioctl_args asked{
        .code = wire::control_code::set_reparse_point, .file = file, .input = *writer.finish()};
    EXPECT_EQ(client_->call(command::ioctl, asked).status(), nt_status::not_supported);
    EXPECT_EQ((*found())->kind(), vfs::node_kind::file);
}

TEST_F(peers, prevent_client_caching) {
    wire::create_args greedy = compliant_client::for_everything();
    greedy.oplock_level = wire::oplock_level::batch;
    EXPECT_EQ(client_->create("file", greedy).oplock_level, wire::oplock_level::none);
}

TEST_F(peers, that_have_locked_a_range_are_awaited) {
    const wire::file_id file = client_->create("file").file;
    other_.has_locked = true;
    const std::uint64_t waiting = client_->send(command::lock, args_of(file));
    EXPECT_NE(client_->async_id_of(waiting), 0U);
    EXPECT_FALSE(client_->is_answered(waiting));
    const wire::read_args reading{.file = file, .length_bytes = 1};
    EXPECT_EQ(client_->call(command::read, reading).status(), nt_status::file_lock_conflict);
    other_.has_locked = false;
    EXPECT_EQ(client_->answer_to(waiting).status(), nt_status::success);
}

TEST_F(peers, that_have_locked_a_range_do_not_delay_the_end_of_a_waiting_client) {
    const wire::file_id file = client_->create("file").file;
    other_.has_locked = true;
    const std::uint64_t waiting = client_->send(command::lock, args_of(file));
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_EQ(client_->answer_to(waiting).status(), nt_status::range_not_locked);
}

}  // namespace
}  // namespace sluice::smb_simulation
