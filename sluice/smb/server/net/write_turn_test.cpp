#include "sluice/smb/server/net/write_turn.hpp"

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

// Writes through an open that keeps times, while SET_INFO changes which, and to what.

namespace sluice::smb_simulation {
namespace {

using wire::basic_information;
using wire::filetime;

constexpr filetime long_ago(std::uint64_t{126'000'000'000'000'000});  // in 2000
constexpr filetime less_long_ago(std::uint64_t{127'000'000'000'000'000});
constexpr filetime freeze(~std::uint64_t{0});
constexpr filetime thaw(~std::uint64_t{1});

class write_with_sticky_times : public command_test {
protected:
    // The largest delay of a transfer, in simulated time.
    void set_delay(std::chrono::seconds longest) {
        auto& volume =
            dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
        volume.set_faults({.seed = 3, .delay_max = longest, .transfers_at_once = true});
    }
    std::uint64_t send_write() {
        static constexpr std::array<std::byte, 4> some{};
        return client().send(command::write, wire::write_args{.file = file, .data = some});
    }
    std::uint64_t send_times(const basic_information& times) {
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        encode(writer, times);
        return client().send(command::set_info,
                             wire::set_info_args{.information_class = static_cast<std::uint8_t>(
                                                     wire::file_information_class::basic),
                                                 .file = file,
                                                 .input = *writer.finish()});
    }
    void await(std::uint64_t message_id) {
        EXPECT_EQ(client().answer_to(message_id).status(), nt_status::success);
    }
    static basic_information all(filetime time) {
        return {.accessed = time, .written = time, .changed = time};
    }
    basic_information times() {
        const auto said = query(file, wire::file_information_class::basic);
        return wire::decode_basic_information(output_of(said)).value();
    }
    void expect_times(const basic_information& wanted) {
        const basic_information found = times();
        EXPECT_EQ(found.accessed, wanted.accessed);
        EXPECT_EQ(found.written, wanted.written);
        EXPECT_EQ(found.changed, wanted.changed);
    }

    wire::file_id file = open_for(wire::file_all_access);
};

TEST_F(write_with_sticky_times, leaves_those_that_are_set_in_its_course) {
    await(send_times(all(long_ago)));
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t writing = send_write();
    await(send_times(all(less_long_ago)));
    await(writing);
    expect_times(all(less_long_ago));
}

TEST_F(write_with_sticky_times, leaves_the_first_that_are_set_in_its_course) {
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t writing = send_write();
    await(send_times(all(long_ago)));
    EXPECT_FALSE(client().is_answered(writing)) << "the write should take longer";
    await(writing);
    expect_times(all(long_ago));
}

TEST_F(write_with_sticky_times, leaves_those_that_are_frozen_in_its_course) {
    const basic_information made = times();
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t writing = send_write();
    await(send_times(all(freeze)));
    EXPECT_FALSE(client().is_answered(writing)) << "the write should take longer";
    await(writing);
    expect_times(made);
}

TEST_F(write_with_sticky_times, changes_those_that_are_thawed_in_its_course) {
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t writing = send_write();
    await(send_times(all(long_ago)));
    await(send_times(all(thaw)));
    EXPECT_FALSE(client().is_answered(writing)) << "the write should take longer";
    await(writing);
    EXPECT_GT(times().accessed, long_ago);
    EXPECT_GT(times().written, long_ago);
    EXPECT_GT(times().changed, long_ago);
}

TEST_F(write_with_sticky_times, keeps_them_when_several_are_sent_together) {
    await(send_times(all(long_ago)));
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t first = send_write();
    const std::uint64_t second = send_write();
    await(first);
    await(second);
    expect_times(all(long_ago));
}

// Both wait for the turn that the write has.
TEST_F(write_with_sticky_times, does_not_make_one_of_two_set_infos_lose_the_other) {
    await(send_times({.changed = freeze}));
    set_delay(std::chrono::seconds(1000));
    const std::uint64_t writing = send_write();
    const std::uint64_t one = send_times({.accessed = freeze});
    const std::uint64_t other = send_times({.written = freeze});
    await(writing);
    await(one);
    await(other);
    const basic_information kept = times();
    set_delay(std::chrono::seconds(0));
    where_.clock.advance(std::chrono::seconds(1));
    await(send_write());
    expect_times(kept);
}

}  // namespace
}  // namespace sluice::smb_simulation
