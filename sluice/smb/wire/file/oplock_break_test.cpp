#include "sluice/smb/wire/file/oplock_break.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const oplock_break oplock{.oplock_level = oplock_level::level_2,
                          .file = {.persistent_part = le64(1), .volatile_part = le64(2)}};
const lease_break lease{.key = {.bytes = {std::byte{3}}}, .state = lease_state::read | lease_state::handle};
const lease_break_notification notification{.new_epoch = 4,
                                            .flags = lease_break_flags::acknowledgement_required,
                                            .key = {.bytes = {std::byte{5}}},
                                            .current_state = lease_state::read | lease_state::write,
                                            .new_state = lease_state::read};

TEST(oplock_break, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(oplock_break_args{oplock}),
              some_bytes({24, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(body_of(oplock_break_args{lease}),
              some_bytes({36, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                          0,  0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(body_of(oplock_break_reply{notification}),
              some_bytes({44, 0, 4, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                          0,  0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(oplock_break, is_unchanged_by_a_round_trip) {
    expect_round_trip(oplock_break_args{oplock}, decode_oplock_break);
    expect_round_trip(oplock_break_args{lease}, decode_oplock_break);
    expect_round_trip(oplock_break_reply{oplock}, decode_oplock_break_reply);
    expect_round_trip(oplock_break_reply{lease}, decode_oplock_break_reply);
    expect_round_trip(oplock_break_reply{notification}, decode_oplock_break_reply);
}

TEST(oplock_break, a_client_does_not_send_notifications) {
    expect_refused(message_of(oplock_break_reply{notification}), decode_error::bad_structure_size,
                   decode_oplock_break);
}

TEST(oplock_break, fixed_parts_are_checked) {
    expect_fixed_part_checked(oplock_break_args{oplock}, 24, decode_oplock_break);
    expect_fixed_part_checked(oplock_break_args{lease}, 36, decode_oplock_break);
    expect_fixed_part_checked(oplock_break_reply{oplock}, 24, decode_oplock_break_reply);
    expect_fixed_part_checked(oplock_break_reply{lease}, 36, decode_oplock_break_reply);
    expect_fixed_part_checked(oplock_break_reply{notification}, 44, decode_oplock_break_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
