#include "sluice/smb/wire/file/flush.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// FLUSH ([MS-SMB2] 3.3.5.11).

namespace sluice::smb_simulation {
namespace {

class flush_command : public command_test {
protected:
    nt_status flush(const wire::file_id& file) {
        return status_of(command::flush, wire::flush_args{.file = file});
    }
};

TEST_F(flush_command, needs_the_right_to_write_or_to_append) {
    EXPECT_EQ(flush(open_for(access_mask::write_data)), nt_status::success);
    EXPECT_EQ(flush(open_for(access_mask::append_data)), nt_status::success);
    EXPECT_EQ(flush(open_for(wire::file_generic_read)), nt_status::access_denied);
}

TEST_F(flush_command, of_a_pipe_has_nothing_to_do) {
    EXPECT_EQ(flush(open_pipe()), nt_status::success);
}

TEST_F(flush_command, of_an_open_that_has_ended_is_refused) {
    EXPECT_EQ(flush(closed_file()), nt_status::file_closed);
}

}  // namespace
}  // namespace sluice::smb_simulation
