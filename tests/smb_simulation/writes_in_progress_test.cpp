#include <cstring>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// While a file is being written, no other client begins to cache its content.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::lease_state;
using wire::nt_status;

class writes_in_progress : public served {
protected:
    writes_in_progress() : second_(where_, 2) {
        EXPECT_EQ(second_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(second_.connect_tree("files"), nt_status::success);
    }

    // Makes transfers take some seconds of simulated time from now on.
    void slow_down() {
        auto& volume =
            dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
        volume.set_faults({.seed = 3, .delay_max = std::chrono::seconds(1000)});
    }
    std::uint64_t send_write(const wire::file_id& to) {
        static constexpr std::array<std::byte, 4> some{};
        return client().send(command::write, wire::write_args{.file = to, .data = some});
    }
    static wire::create_args with_lease(std::byte key, lease_state wanted) {
        auto how = compliant_client::for_everything();
        how.oplock_level = wire::oplock_level::lease;
        how.contexts.lease.emplace(wire::lease{.key = {}, .state = wanted});
        how.contexts.lease->key.bytes[0] = key;
        return how;
    }
    static wire::create_args with_oplock(wire::oplock_level wanted) {
        auto how = compliant_client::for_everything();
        how.oplock_level = wanted;
        return how;
    }
    static lease_state granted(const wire::create_reply& said) {
        return said.contexts.lease ? said.contexts.lease->state : lease_state::none;
    }
    static constexpr auto read_and_handle = lease_state::read | lease_state::handle;

    compliant_client second_;
};

TEST_F(writes_in_progress, leave_other_clients_without_a_lease) {
    const auto file = client().create("f");
    slow_down();
    const std::uint64_t writing = send_write(file.file);
    const auto fresh = second_.create("f", with_lease(std::byte{1}, read_and_handle));
    EXPECT_EQ(granted(fresh), lease_state::none);
    EXPECT_FALSE(client().is_answered(writing)) << "the write should take longer";
    EXPECT_EQ(client().answer_to(writing).status(), nt_status::success);
    const auto later = second_.create("f", with_lease(std::byte{1}, read_and_handle));
    EXPECT_EQ(granted(later), read_and_handle);
}

TEST_F(writes_in_progress, leave_other_opens_without_an_oplock) {
    const auto file = client().create("f");
    slow_down();
    const std::uint64_t writing = send_write(file.file);
    EXPECT_EQ(second_.create("f", with_oplock(wire::oplock_level::level_2)).oplock_level,
              wire::oplock_level::none);
    EXPECT_FALSE(client().is_answered(writing));
    EXPECT_EQ(client().answer_to(writing).status(), nt_status::success);
    EXPECT_EQ(second_.create("f", with_oplock(wire::oplock_level::level_2)).oplock_level,
              wire::oplock_level::level_2);
}

TEST_F(writes_in_progress, count_until_they_end_even_if_their_open_has_ended) {
    const auto file = client().create("f");
    slow_down();
    (void)send_write(file.file);
    (void)client().send(command::close, wire::close_args{.file = file.file});
    EXPECT_EQ(granted(second_.create("f", with_lease(std::byte{1}, read_and_handle))), lease_state::none);
}

TEST_F(writes_in_progress, keep_their_file_from_becoming_a_link) {
    const auto file = client().create("f");
    slow_down();
    const std::uint64_t writing = send_write(file.file);
    std::array<std::byte, 256> room;
    byte_writer writer(room);
    ASSERT_TRUE(encode(writer, wire::reparse_symlink{.substitute = "x", .print = "x", .relative = true}));
    const wire::ioctl_args asked{
        .code = wire::control_code::set_reparse_point, .file = file.file, .input = *writer.finish()};
    EXPECT_EQ(client().call(command::ioctl, asked).status(), nt_status::sharing_violation);
    EXPECT_EQ(client().answer_to(writing).status(), nt_status::success);
}

TEST_F(writes_in_progress, do_not_break_the_writers_own_lease) {
    const auto file = client().create("f", with_lease(std::byte{1}, read_and_handle));
    ASSERT_EQ(granted(file), read_and_handle);
    slow_down();
    const std::uint64_t writing = send_write(file.file);
    const auto again = client().create("f", with_lease(std::byte{1}, read_and_handle));
    EXPECT_EQ(granted(again), read_and_handle);
    EXPECT_FALSE(client().is_answered(writing));
}

// The server reads a part of the source, and then writes it.
TEST_F(writes_in_progress, break_leases_granted_during_the_read_of_a_copy) {
    const auto file = client().create("f");
    ASSERT_EQ(client().answer_to(send_write(file.file)).status(), nt_status::success);
    std::array<std::byte, 64> room{};
    byte_writer writer(room);
    wire::resume_key source{};
    std::memcpy(source.data(), &file.file, sizeof file.file);
    const std::vector<wire::copy_chunk> chunks{{.source_offset = 0, .target_offset = 100, .length = 4}};
    encode(writer, wire::copy_chunk_request{.source = source, .chunks = chunks});
    const wire::ioctl_args copy{.code = wire::control_code::srv_copychunk,
                                .file = file.file,
                                .output_bytes_max = 12,
                                .input = *writer.finish()};
    slow_down();
    const std::uint64_t copying = client().send(command::ioctl, copy);
    const auto reader = second_.create("f", with_lease(std::byte{1}, lease_state::read));
    EXPECT_EQ(granted(reader), lease_state::read) << "nothing is written yet";
    EXPECT_FALSE(client().is_answered(copying));
    EXPECT_EQ(client().answer_to(copying).status(), nt_status::success);
    constexpr std::uint64_t of_notifications = ~std::uint64_t{0};
    EXPECT_TRUE(second_.is_answered(of_notifications)) << "the reader must drop its cache";
}

}  // namespace
}  // namespace sluice::smb_simulation
