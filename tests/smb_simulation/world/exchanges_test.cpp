#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Exchanges that no orderly client makes, each described message by message.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

constexpr std::uint32_t large_bytes = 8U << 20;

class exchanges : public served {
protected:
    // With enough buffers for the limit of one connection.
    exchanges()
        : served([](server::server_configuration& c) { c.bounds.buffer_bytes = std::size_t{1} << 30; }) {}

    // Returns a file so long that two READs of all of it do not fit into one frame.
    wire::file_id large_file() {
        const wire::file_id made = client().create("large").file;
        std::array<std::byte, 8> size{};
        byte_writer writer(size);
        encode(writer, wire::end_of_file_information{.end_of_file = large_bytes});
        const wire::set_info_args growing{
            .type = wire::info_type::file,
            .information_class = static_cast<std::uint8_t>(wire::file_information_class::end_of_file),
            .file = made,
            .input = size};
        EXPECT_EQ(client().call(command::set_info, growing).status(), nt_status::success);
        return made;
    }

    // Reads the file `count` times in one compound, and returns the replies.
    std::vector<compliant_client::answer> read_in_one_frame(const wire::file_id& file, unsigned count) {
        constexpr std::uint16_t charge = large_bytes / 65536;
        client().credits_wanted = 512;
        while (client().credits() < count * charge)
            EXPECT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
        client().charge = charge;
        client().begin_compound();
        std::vector<std::uint64_t> ids;
        for (unsigned i = 0; i != count; ++i)
            ids.push_back(
                client().send(command::read, wire::read_args{.file = file, .length_bytes = large_bytes}));
        client().end_compound();
        client().charge = 1;
        std::vector<compliant_client::answer> answers;
        for (const std::uint64_t id : ids)
            answers.push_back(client().answer_to(id));
        EXPECT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
        return answers;
    }
};

TEST_F(exchanges, with_replies_that_do_not_fit_one_frame_are_answered_in_several) {
    for (const compliant_client::answer& got : read_in_one_frame(large_file(), 3)) {
        EXPECT_EQ(got.status(), nt_status::success);
        EXPECT_GE(got.bytes.size(), large_bytes);
    }
}

TEST_F(exchanges, with_replies_beyond_the_limit_are_refused_from_there_on) {
    const auto answers = read_in_one_frame(large_file(), 6);
    EXPECT_EQ(answers.front().status(), nt_status::success);
    EXPECT_EQ(answers.back().status(), nt_status::insufficient_resources);
}

// Replies are tested here; the WRITEs of a large copy use the same limit.
TEST_F(exchanges, wait_while_others_use_all_buffers_of_their_connection) {
    const wire::file_id file = large_file();
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    const wire::file_id directory = client().create("d", how).file;
    constexpr std::uint16_t charge = 5 * 16;  // for 5 MiB, for which 8 MiB are reserved
    client().credits_wanted = 512;
    while (client().credits() < 6 * charge)
        ASSERT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
    client().charge = charge;
    std::vector<std::uint64_t> reads;
    for (int i = 0; i != 5; ++i)
        reads.push_back(
            client().send(command::read, wire::read_args{.file = file, .length_bytes = charge << 16U}));
    client().charge = 1;
    const std::uint64_t watching = client().send(
        command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1000, .file = directory, .filter = wire::completion_filter(0xfff)});
    where_.run();  // as far as the server gets while its replies are not read
    for (const std::uint64_t each : reads)
        EXPECT_EQ(client().answer_to(each).status(), nt_status::success);
    EXPECT_FALSE(client().is_answered(watching));
    client().cancel(client().async_id_of(watching));
    EXPECT_EQ(client().answer_to(watching).status(), nt_status::cancelled);
}

TEST_F(exchanges, are_cancelled_only_for_the_session_that_began_them) {
    const wire::raw_lock_element range = wire::encode_lock_element(
        {.offset_bytes = 0, .length_bytes = 100, .flags = wire::lock_flags::exclusive});
    wire::lock_args locking{.file = client().create("locked").file,
                            .elements = wire::lock_list(std::span(&range, 1))};
    EXPECT_EQ(client().call(command::lock, locking).status(), nt_status::success);
    locking.file = client().create("locked").file;
    const std::uint64_t waiting = client().send(command::lock, locking);
    const std::uint64_t async_id = client().async_id_of(waiting);
    EXPECT_NE(async_id, 0U);
    const compliant_client::request_ids its_own = client().current_ids();

    client().use_ids({.session = its_own.session + 1000, .tree = its_own.tree});
    client().cancel(async_id);
    client().use_ids(its_own);
    EXPECT_FALSE(client().is_answered(waiting)) << "cancelled for an unknown session";

    client().use_ids({});
    ASSERT_EQ(client().log_on("u", "p"), nt_status::success);
    EXPECT_NE(client().current_ids().session, its_own.session);
    client().cancel(async_id);
    EXPECT_FALSE(client().is_answered(waiting)) << "cancelled for another session";

    client().use_ids(its_own);
    client().cancel(async_id);
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::cancelled);
}

TEST_F(exchanges, that_end_the_session_of_a_waiting_create_leave_no_open_behind) {
    auto caching = compliant_client::for_everything();
    caching.oplock_level = wire::oplock_level::batch;
    const wire::file_id holder = client().create("shared", caching).file;
    const compliant_client::request_ids first = client().current_ids();

    client().use_ids({});
    ASSERT_EQ(client().log_on("u", "p"), nt_status::success);
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    const std::uint64_t create = client().send_create("shared");
    EXPECT_NE(client().async_id_of(create), 0U) << "the oplock of the first open is being broken";
    const compliant_client::request_ids second = client().current_ids();

    // In one frame, so that the CREATE has been resumed, but has not continued, when its session
    // ends.
    client().begin_compound();
    client().use_ids(first);
    const std::uint64_t close = client().send(command::close, wire::close_args{.file = holder});
    client().use_ids(second);
    const std::uint64_t logoff = client().send(command::logoff, wire::logoff_args{});
    client().end_compound();
    EXPECT_EQ(client().answer_to(close).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(logoff).status(), nt_status::success);
    EXPECT_TRUE(wire::is_error(client().answer_to(create).status())) << "an ended session opens no files";
}

// A file with two opens: one caches its handle, the other renames it.
class renames : public served {
protected:
    renames() {
        auto caching = compliant_client::for_everything();
        caching.oplock_level = wire::oplock_level::lease;
        caching.contexts.lease =
            wire::lease{.key = {}, .state = wire::lease_state::read | wire::lease_state::handle};
        holder = client().create("old", caching).file;
        file = client().create("old").file;
        byte_writer writer(name_);
        EXPECT_TRUE(encode(writer, wire::rename_information{.replace_if_exists = false, .target = "new"}));
        renaming = {.type = wire::info_type::file,
                    .information_class = static_cast<std::uint8_t>(wire::file_information_class::rename),
                    .file = file,
                    .input = *writer.finish()};
    }
    void let_go() {
        EXPECT_EQ(client().call(command::close, wire::close_args{.file = holder}).status(),
                  nt_status::success);
    }

    wire::file_id holder{};
    wire::file_id file{};
    wire::set_info_args renaming{};

private:
    std::array<std::byte, 64> name_{};
};

// Like Linux clients.
TEST_F(renames, in_a_compound_wait_for_cached_handles_and_then_continue) {
    client().begin_compound();
    const std::uint64_t rename = client().send(command::set_info, renaming);
    const std::uint64_t close = client().send(command::close, wire::close_args{.file = file});
    client().end_compound();
    EXPECT_FALSE(client().is_answered(rename)) << "the handle is cached, and its holder has not answered";
    let_go();
    EXPECT_EQ(client().answer_to(rename).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(close).status(), nt_status::success);
    EXPECT_EQ(client().call(command::close, wire::close_args{.file = client().create("new").file}).status(),
              nt_status::success);
}

// smbtorture's compound_async.rename_last.
TEST_F(renames, in_a_compound_that_wait_delay_the_replies_before_them) {
    auto without_state = compliant_client::for_everything();
    without_state.oplock_level = wire::oplock_level::lease;
    without_state.contexts.lease = wire::lease{.key = {{std::byte{1}}}, .state = wire::lease_state::none};
    client().begin_compound();
    const std::uint64_t create = client().send_create("old", without_state);
    const std::uint64_t rename = client().send(command::set_info, renaming);
    client().end_compound();
    EXPECT_FALSE(client().is_answered(create));
    EXPECT_FALSE(client().is_answered(rename));
    let_go();
    EXPECT_EQ(client().answer_to(create).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(rename).status(), nt_status::success);
}

TEST_F(renames, that_wait_count_as_waiting_requests) {
    client().credits_wanted = 512;
    while (client().credits() < server::limits::pending_requests_per_connection_max + 16)
        ASSERT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
    std::vector<std::uint64_t> waiting;
    for (std::size_t i = 0; i != server::limits::pending_requests_per_connection_max; ++i)
        waiting.push_back(client().send(command::set_info, renaming));
    EXPECT_FALSE(client().is_answered(waiting.back()));
    EXPECT_EQ(client().call(command::set_info, renaming).status(), nt_status::insufficient_resources);
    let_go();
    for (const std::uint64_t each : waiting)
        EXPECT_NE(client().answer_to(each).status(), nt_status::insufficient_resources);
}

}  // namespace
}  // namespace sluice::smb_simulation
