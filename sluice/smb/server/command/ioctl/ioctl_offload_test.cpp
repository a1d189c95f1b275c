#include <string>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

// Copies by a token ([MS-FSA] 2.1.5.10.20 and 21).

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class offloaded_copy : public command_test {
protected:
    offloaded_copy() : source(open_for(wire::file_all_access, "source")) {
        EXPECT_EQ(write(source, text), nt_status::success);
    }

    template <class Request>
    compliant_client::answer send(compliant_client& by, control_code code, const wire::file_id& file,
                                  const Request& asked, std::uint32_t output_bytes_max = 528) {
        std::array<std::byte, 544> room{};
        byte_writer writer(room);
        encode(writer, asked);
        return by.call(
            command::ioctl,
            wire::ioctl_args{
                .code = code, .file = file, .output_bytes_max = output_bytes_max, .input = *writer.finish()});
    }
    compliant_client::answer read(const wire::file_id& file, const wire::offload_read_request& asked) {
        return send(client(), control_code::offload_read, file, asked);
    }
    wire::offload_read_reply token_of(const wire::file_id& file, const wire::offload_read_request& asked) {
        const auto said = read(file, asked);
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_offload_read_reply(output_of_control(said)).value_or(wire::offload_read_reply{});
    }
    nt_status write_token(const wire::file_id& file, const wire::offload_write_request& asked) {
        const auto said = send(client(), control_code::offload_write, file, asked);
        if (said.status() == nt_status::success)
            EXPECT_EQ(wire::decode_offload_write_reply(output_of_control(said))->length, asked.length);
        return said.status();
    }

    std::uint64_t size_of(const wire::file_id& file) {
        const auto said = query(file, wire::file_information_class::standard);
        return wire::decode_standard_information(output_of(said))->end_of_file;
    }

    const std::string text = std::string(512, 'a') + std::string(512, 'b') + "tail";
    wire::file_id source;
};

TEST_F(offloaded_copy, writes_the_data_that_the_token_stands_for) {
    const auto whole = token_of(source, {.length = 4096});
    EXPECT_EQ(whole.length, 1536U) << "whole sectors";
    const wire::file_id target = open_for(wire::file_all_access, "target");
    ASSERT_EQ(write_token(target, {.length = text.size(), .token = whole.token}), nt_status::success);
    EXPECT_EQ(content_of(target), text.substr(0, 1000));
    ASSERT_EQ(write_token(target, {.length = 512, .token_offset = 512, .token = whole.token}),
              nt_status::success);
    EXPECT_EQ(content_of(target), (std::string(512, 'b') + std::string(512, 'b')).substr(0, 1000));
}

TEST_F(offloaded_copy, is_reported_in_whole_sectors_and_writes_only_the_data) {
    const auto whole = token_of(source, {.length = text.size()});
    EXPECT_EQ(whole.length, 1536U);
    const wire::file_id target = open_for(wire::file_all_access, "target");
    ASSERT_EQ(write_token(target, {.length = whole.length, .token = whole.token}), nt_status::success);
    EXPECT_EQ(content_of(target), text.substr(0, 1000));
    EXPECT_EQ(size_of(target), text.size());
    const auto said =
        send(client(), control_code::offload_write, target,
             wire::offload_write_request{.length = 4096, .token_offset = 1024, .token = whole.token});
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_offload_write_reply(output_of_control(said))->length, 512U) << "the token ends";
}

TEST_F(offloaded_copy, does_not_begin_beyond_the_end_of_the_file) {
    const auto front = token_of(source, {.length = 512});
    const wire::file_id target = open_for(wire::file_all_access, "target");
    EXPECT_EQ(write_token(target, {.offset = 512, .length = 512, .token = front.token}),
              nt_status::end_of_file);
    ASSERT_EQ(write_token(target, {.length = 512, .token = front.token}), nt_status::success);
    EXPECT_EQ(write_token(target, {.offset = 512, .length = 512, .token = front.token}), nt_status::success);
}

// The write has neither ended, nor changed the time of modification yet.
TEST_F(offloaded_copy, is_refused_while_the_source_is_written) {
    const auto front = token_of(source, {.length = 512});
    const wire::file_id target = open_for(wire::file_all_access, "target");
    auto& volume =
        dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
    volume.set_faults({.seed = 3, .delay_max = std::chrono::seconds(1000)});
    const std::uint64_t writing = client().send(
        command::write, wire::write_args{.file = source, .data = std::as_bytes(std::span(text))});
    EXPECT_EQ(write_token(target, {.length = 512, .token = front.token}), nt_status::invalid_token);
    EXPECT_FALSE(client().is_answered(writing)) << "the write should take longer";
    EXPECT_EQ(client().answer_to(writing).status(), nt_status::success);
}

TEST_F(offloaded_copy, within_one_file_moves_overlapping_data) {
    const auto front = token_of(source, {.length = 1024});
    ASSERT_EQ(write_token(source, {.offset = 512, .length = 1024, .token = front.token}), nt_status::success);
    EXPECT_EQ(content_of(source), (std::string(1024, 'a') + std::string(512, 'b')).substr(0, 1000));
}

TEST_F(offloaded_copy, within_one_file_moves_overlapping_data_in_several_parts) {
    constexpr std::size_t part = 1U << 20;
    const wire::file_id large = open_for(wire::file_all_access, "large");
    for (std::size_t i = 0; i != 3; ++i)
        ASSERT_EQ(write(large, std::string(1000, static_cast<char>('0' + i)), i * part), nt_status::success);
    const auto two = token_of(large, {.length = 2 * part});
    ASSERT_EQ(write_token(large, {.offset = part, .length = 2 * part, .token = two.token}),
              nt_status::success);
    const auto said = client().call(
        command::read, wire::read_args{.file = large, .offset_bytes = 2 * part, .length_bytes = 1});
    EXPECT_EQ(static_cast<char>(wire::decode_read_reply(said.message())->data[0]), '1');
}

TEST_F(offloaded_copy, of_nothing_needs_no_data) {
    const auto empty = token_of(source, {});
    EXPECT_EQ(empty.length, 0U);
    EXPECT_EQ(write_token(open_for(wire::file_all_access, "target"), {}), nt_status::success);
}

TEST_F(offloaded_copy, begins_and_ends_at_sectors_or_at_the_end_of_all_data) {
    for (const wire::offload_read_request& asked :
         {wire::offload_read_request{.offset = 1, .length = 511}, wire::offload_read_request{.length = 511},
          wire::offload_read_request{.length = text.size() + 1}})
        EXPECT_EQ(read(source, asked).status(), nt_status::invalid_parameter);
    EXPECT_EQ(read(source, {.offset = 2048, .length = 512}).status(), nt_status::end_of_file);
    const auto all = token_of(source, {.length = text.size()});
    const wire::file_id target = open_for(wire::file_all_access, "target");
    for (const wire::offload_write_request& asked :
         {wire::offload_write_request{.length = 511, .token = all.token},
          wire::offload_write_request{.length = 512, .token_offset = 4, .token = all.token},
          wire::offload_write_request{.length = 512, .token_offset = 2048, .token = all.token},
          wire::offload_write_request{.offset = 3, .length = 512, .token = all.token}})
        EXPECT_EQ(write_token(target, asked), nt_status::invalid_parameter);
}

TEST_F(offloaded_copy, needs_the_content_and_the_open_that_the_token_was_made_of) {
    const wire::file_id target = open_for(wire::file_all_access, "target");
    wire::offload_write_request asked{.length = 512, .token = token_of(source, {.length = 512}).token};
    asked.token.id[0] ^= std::byte{1};
    EXPECT_EQ(write_token(target, asked), nt_status::invalid_token);
    asked.token.id[0] ^= std::byte{1};
    EXPECT_EQ(write_token(target, asked), nt_status::success);
    ASSERT_EQ(write(source, "x"), nt_status::success);
    EXPECT_EQ(write_token(target, asked), nt_status::invalid_token) << "the content has changed";
    asked.token = token_of(source, {.length = 512}).token;
    EXPECT_EQ(write_token(target, asked), nt_status::success);
    ASSERT_EQ(close(source), nt_status::success);
    EXPECT_EQ(write_token(target, asked), nt_status::invalid_token) << "the open has ended";
}

TEST_F(offloaded_copy, ends_with_the_lifetime_of_the_token) {
    const wire::file_id target = open_for(wire::file_all_access, "target");
    const auto brief = token_of(source, {.lifetime_ms = 1000, .length = 512});
    const auto usual = token_of(source, {.length = 512});
    where_.clock.advance(std::chrono::seconds(2));
    EXPECT_EQ(write_token(target, {.length = 512, .token = brief.token}), nt_status::invalid_token);
    EXPECT_EQ(write_token(target, {.length = 512, .token = usual.token}), nt_status::success);
}

TEST_F(offloaded_copy, is_for_the_user_of_the_token_alone) {
    where_.admit(std::vector<std::string>{"u", "v"});
    const auto token = token_of(source, {.length = 512}).token;
    for (const auto& [user, outcome] :
         {std::pair{"v", nt_status::invalid_token}, std::pair{"u", nt_status::success}}) {
        compliant_client other(where_, 2);
        ASSERT_EQ(other.log_on(user, "p"), nt_status::success);
        ASSERT_EQ(other.connect_tree("files"), nt_status::success);
        const wire::file_id target = other.create(user).file;
        const wire::offload_write_request asked{.length = 512, .token = token};
        EXPECT_EQ(send(other, control_code::offload_write, target, asked).status(), outcome) << user;
    }
}

TEST_F(offloaded_copy, needs_rights_to_both_files) {
    const auto token = token_of(source, {.length = 512}).token;
    EXPECT_EQ(write_token(open_for(wire::file_generic_read, "target"), {.length = 512, .token = token}),
              nt_status::access_denied);
    EXPECT_EQ(read(open_for(wire::file_generic_write, "target"), {}).status(), nt_status::access_denied);
}

TEST_F(offloaded_copy, is_refused_for_directories_and_without_room_for_the_reply) {
    EXPECT_EQ(read(open_directory(), {}).status(), nt_status::offload_read_file_not_supported);
    EXPECT_EQ(write_token(open_directory(), {}), nt_status::offload_write_file_not_supported);
    EXPECT_EQ(control(control_code::offload_read, source).status(), nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::offload_write, source).status(), nt_status::invalid_parameter);
    EXPECT_EQ(send(client(), control_code::offload_read, source, wire::offload_read_request{}, 527).status(),
              nt_status::buffer_too_small);
    EXPECT_EQ(send(client(), control_code::offload_write, source, wire::offload_write_request{}, 15).status(),
              nt_status::buffer_too_small);
}

}  // namespace
}  // namespace sluice::smb_simulation
