#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"

#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

// Copies within the server ([MS-SMB2] 3.3.5.15.5 and 3.3.5.15.6).

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class server_side_copy : public command_test {
protected:
    server_side_copy() : source(open_for(wire::file_all_access, "source")) {
        EXPECT_EQ(write(source, "0123456789"), nt_status::success);
    }

    [[nodiscard]] wire::resume_key key_of(const wire::file_id& file) {
        const auto said = control(control_code::srv_request_resume_key, file, {}, 32);
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_resume_key(output_of_control(said)).value();
    }
    compliant_client::answer copy(const wire::file_id& to, const std::vector<wire::copy_chunk>& chunks,
                                  const wire::resume_key& from,
                                  control_code code = control_code::srv_copychunk_write) {
        std::vector<std::byte> room(32 + 24 * chunks.size());
        byte_writer writer{mutable_bytes(room)};
        encode(writer, wire::copy_chunk_request{.source = from, .chunks = chunks});
        return control(code, to, *writer.finish(), 12);
    }

    wire::file_id source;
};

TEST_F(server_side_copy, reports_how_much_of_several_chunks_was_copied) {
    const wire::file_id target = open_for(wire::file_all_access, "target");
    const auto said = copy(target,
                           {{.source_offset = 0, .target_offset = 4, .length = 3},
                            {.source_offset = 7, .target_offset = 0, .length = 2}},
                           key_of(source));
    ASSERT_EQ(said.status(), nt_status::success);
    const auto done = wire::decode_copy_chunk_response(output_of_control(said)).value();
    EXPECT_EQ(done.chunks_written, 2U);
    EXPECT_EQ(done.total_bytes_written, 5U);
    EXPECT_EQ(content_of(target), std::string("78\0\0", 4) + "012");
}

TEST_F(server_side_copy, ends_at_the_first_chunk_that_the_source_does_not_have) {
    const wire::file_id target = open_for(wire::file_all_access, "target");
    const auto said = copy(target, {{.length = 3}, {.source_offset = 8, .length = 3}}, key_of(source));
    EXPECT_EQ(said.status(), nt_status::invalid_view_size);
    EXPECT_EQ(wire::decode_copy_chunk_response(output_of_control(said))->chunks_written, 1U);
}

TEST_F(server_side_copy, is_answered_with_the_limits_if_it_is_too_large) {
    const wire::copy_chunk_limits allowed;
    const wire::file_id target = open_for(wire::file_all_access, "target");
    for (const std::uint32_t length : {0U, allowed.chunk_bytes_max + 1}) {
        const auto said = copy(target, {{.length = length}}, key_of(source));
        EXPECT_EQ(said.status(), nt_status::invalid_parameter);
        EXPECT_EQ(wire::decode_copy_chunk_response(output_of_control(said))->total_bytes_written,
                  allowed.total_bytes_max);
    }
}

TEST_F(server_side_copy, needs_the_key_of_an_open_of_the_session) {
    const wire::file_id target = open_for(wire::file_all_access, "target");
    const wire::resume_key key = key_of(source);
    EXPECT_EQ(copy(target, {{.length = 1}}, {}).status(), nt_status::object_name_not_found);
    ASSERT_EQ(close(source), nt_status::success);
    EXPECT_EQ(copy(target, {{.length = 1}}, key).status(), nt_status::object_name_not_found);
}

TEST_F(server_side_copy, needs_rights_to_both_files) {
    const wire::resume_key key = key_of(source);
    EXPECT_EQ(copy(open_for(wire::file_generic_read, "target"), {{.length = 1}}, key).status(),
              nt_status::access_denied);
    const wire::file_id written_only = open_for(access_mask::write_data, "target");
    EXPECT_EQ(copy(written_only, {{.length = 1}}, key, control_code::srv_copychunk).status(),
              nt_status::access_denied)
        << "the copy could not be read back";
    EXPECT_EQ(copy(written_only, {{.length = 1}}, key).status(), nt_status::success);
    EXPECT_EQ(copy(open_for(wire::file_all_access, "target"), {{.length = 1}}, key_of(written_only)).status(),
              nt_status::access_denied);
}

TEST_F(server_side_copy, is_refused_for_a_directory) {
    EXPECT_EQ(copy(open_directory(), {{.length = 1}}, key_of(source)).status(),
              nt_status::invalid_device_request);
    EXPECT_EQ(
        copy(open_for(wire::file_all_access, "target"), {{.length = 1}}, key_of(open_directory())).status(),
        nt_status::invalid_device_request);
}

TEST_F(server_side_copy, is_refused_by_shared_blocks_where_the_volume_has_none) {
    std::array<std::byte, 64> room{};
    byte_writer writer(room);
    encode(writer, wire::duplicate_extents_request{.source = source, .byte_count = 4096});
    const wire::file_id target = open_for(wire::file_all_access, "target");
    EXPECT_EQ(control(control_code::duplicate_extents_to_file, target, *writer.finish()).status(),
              nt_status::invalid_device_request);
    EXPECT_EQ(control(control_code::duplicate_extents_to_file, target).status(),
              nt_status::invalid_parameter);
}

// FSCTL_DUPLICATE_EXTENTS_TO_FILE on a volume that can share blocks ([MS-FSCC] 2.3.8).
class block_sharing : public command_test {
protected:
    block_sharing()
        : command_test([](server::server_configuration& rules) {
              dynamic_cast<vfs::memory_volume&>(*rules.shares.back().volume).emulate_block_sharing();
          }) {}

    nt_status share(const wire::file_id& from, const wire::file_id& to, std::uint64_t source_offset,
                    std::uint64_t target_offset, std::uint64_t count) {
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        encode(writer, wire::duplicate_extents_request{.source = from,
                                                       .source_offset = source_offset,
                                                       .target_offset = target_offset,
                                                       .byte_count = count});
        return control(control_code::duplicate_extents_to_file, to, *writer.finish()).status();
    }
};

TEST_F(block_sharing, within_a_file_needs_ranges_without_common_bytes) {
    const wire::file_id file = open_for(wire::file_all_access, "f");
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    const wire::file_id other_open = open_for(wire::file_all_access, "f");
    EXPECT_EQ(share(file, file, 0, 4, 5), nt_status::not_supported);
    EXPECT_EQ(share(other_open, file, 4, 0, 5), nt_status::not_supported);
    EXPECT_EQ(share(file, file, 3, 3, 1), nt_status::not_supported);
    EXPECT_EQ(content_of(file), "0123456789");
    EXPECT_EQ(share(file, file, 0, 5, 5), nt_status::success);
    EXPECT_EQ(content_of(file), "0123401234");
}

TEST_F(block_sharing, needs_a_sparse_target_only_for_a_sparse_source) {
    const wire::file_id source = open_for(wire::file_all_access, "source");
    const wire::file_id target = open_for(wire::file_all_access, "target");
    ASSERT_EQ(write(source, "0123"), nt_status::success);
    ASSERT_EQ(write(target, "abcd"), nt_status::success);
    ASSERT_EQ(control(control_code::set_sparse, target).status(), nt_status::success);
    EXPECT_EQ(share(source, target, 0, 2, 2), nt_status::success);
    EXPECT_EQ(content_of(target), "ab01");
    EXPECT_EQ(share(target, source, 0, 0, 2), nt_status::not_supported);
}

}  // namespace
}  // namespace sluice::smb_simulation
