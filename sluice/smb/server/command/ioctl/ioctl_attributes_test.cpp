#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"

// Controls of a file's properties: compression, object identifiers.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class attribute_controls : public command_test {
protected:
    nt_status set_compression(const wire::file_id& file, wire::compression_format format) {
        std::array<std::byte, 2> room{};
        byte_writer writer(room);
        encode(writer, wire::compression_state{.format = format});
        return control(control_code::set_compression, file, *writer.finish()).status();
    }
    wire::compression_format compression_of(const wire::file_id& file) {
        const auto said = control(control_code::get_compression, file);
        return wire::decode_compression_state(output_of_control(said))->format;
    }
    bool is_shown_as_compressed(const wire::file_id& file) {
        const auto basic = query(file, wire::file_information_class::basic);
        const auto shown = wire::decode_basic_information(output_of(basic)).value();
        const auto asked = query(file, wire::file_information_class::compression);
        const auto compression = wire::decode_compression_information(output_of(asked)).value();
        EXPECT_EQ(wire::has(shown.attributes, wire::file_attributes::compressed),
                  compression.format == wire::compression_format::lznt1);
        return compression.format == wire::compression_format::lznt1;
    }
};

TEST_F(attribute_controls, compress_a_file_and_end_that_again) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(compression_of(file), wire::compression_format::none);
    EXPECT_EQ(set_compression(file, wire::compression_format::preferred), nt_status::success);
    EXPECT_EQ(compression_of(file), wire::compression_format::lznt1);
    EXPECT_TRUE(is_shown_as_compressed(file));
    EXPECT_EQ(set_compression(file, wire::compression_format::none), nt_status::success);
    EXPECT_EQ(compression_of(file), wire::compression_format::none);
    EXPECT_FALSE(is_shown_as_compressed(file));
}

TEST_F(attribute_controls, compress_a_file_without_changing_a_frozen_change_time) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto change_time = [&] {
        const auto basic = query(file, wire::file_information_class::basic);
        return wire::decode_basic_information(output_of(basic)).value().changed;
    };
    const wire::filetime made = change_time();
    constexpr wire::filetime freeze(~std::uint64_t{0});
    ASSERT_EQ(set_information(file, wire::file_information_class::basic,
                              wire::basic_information{.changed = freeze}),
              nt_status::success);
    where_.clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(set_compression(file, wire::compression_format::preferred), nt_status::success);
    EXPECT_EQ(change_time(), made);
}

TEST_F(attribute_controls, compress_directories_and_what_is_created_in_them) {
    const wire::file_id directory = open_directory();
    EXPECT_EQ(set_compression(directory, wire::compression_format::lznt1), nt_status::success);
    EXPECT_EQ(compression_of(directory), wire::compression_format::lznt1);
    EXPECT_EQ(compression_of(open_for(wire::file_all_access, "d\\inherits")),
              wire::compression_format::lznt1);
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::no_compression;
    EXPECT_EQ(compression_of(client().create("d\\plain", how).file), wire::compression_format::none);
}

TEST_F(attribute_controls, compress_nothing_without_the_right_or_a_known_format) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(set_compression(file, wire::compression_format(3)), nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::set_compression, file).status(), nt_status::invalid_parameter);
    EXPECT_EQ(set_compression(open_for(wire::file_generic_read), wire::compression_format::lznt1),
              nt_status::access_denied);
    EXPECT_EQ(compression_of(file), wire::compression_format::none);
}

TEST_F(attribute_controls, give_each_file_an_identifier_that_stays) {
    const auto identifier = [&](std::string_view name) {
        const auto said =
            control(control_code::create_or_get_object_id, open_for(wire::file_all_access, name));
        return wire::decode_object_id(output_of_control(said))->id;
    };
    const wire::guid first = identifier("a");
    EXPECT_EQ(identifier("a"), first);
    EXPECT_NE(identifier("b"), first);
}

TEST_F(attribute_controls, return_the_identifier_with_those_of_its_birth_and_without_a_domain) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto said = control(control_code::get_object_id, file);
    const wire::object_id known = wire::decode_object_id(output_of_control(said)).value();
    const auto& [volume, birth, domain] = known.birth_volume_object_and_domain;
    EXPECT_NE(known.id, wire::guid{});
    EXPECT_NE(volume, wire::guid{});
    EXPECT_EQ(birth, known.id);
    EXPECT_EQ(domain, wire::guid{});
    const auto again = control(control_code::create_or_get_object_id, file);
    EXPECT_EQ(wire::decode_object_id(output_of_control(again)).value(), known);
}

TEST_F(attribute_controls, keep_no_snapshots_of_streams) {
    EXPECT_EQ(
        control(control_code::refs_stream_snapshot_management, open_for(wire::file_all_access)).status(),
        nt_status::not_supported);
}

TEST_F(attribute_controls, refuse_output_without_room) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(control(control_code::get_compression, file, {}, 1).status(), nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::create_or_get_object_id, file, {}, 63).status(),
              nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::get_object_id, file, {}, 63).status(), nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::srv_enumerate_snapshots, file, {}, 15).status(),
              nt_status::invalid_parameter);
}

class marked_handles : public attribute_controls {
protected:
    wire::file_id open_unbuffered(std::string_view name = "f") {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::no_intermediate_buffering;
        return client().create(name, how).file;
    }
    nt_status mark(const wire::file_id& file, std::uint32_t handle_info) {
        std::array<std::byte, 24> room{};
        byte_writer writer(room);
        encode(writer, wire::mark_handle_request{.copy_number = 0, .handle_info = handle_info});
        return control(control_code::mark_handle, file, *writer.finish(), 0).status();
    }
    static constexpr std::uint32_t read_copy = wire::mark_handle_request::read_copy;
    static constexpr std::uint32_t not_read_copy = wire::mark_handle_request::not_read_copy;
};

TEST_F(marked_handles, read_the_only_copy_of_the_data) {
    EXPECT_EQ(mark(open_unbuffered(), not_read_copy), nt_status::success);
    EXPECT_EQ(mark(open_unbuffered(), read_copy), nt_status::not_redundant_storage);
}

TEST_F(marked_handles, are_of_files_that_are_opened_without_buffering) {
    EXPECT_EQ(mark(open_for(wire::file_all_access), not_read_copy), nt_status::invalid_parameter);
    EXPECT_EQ(mark(open_directory(), not_read_copy), nt_status::directory_not_supported);
}

TEST_F(marked_handles, have_exactly_one_mark) {
    for (const std::uint32_t marks : {0U, read_copy | not_read_copy, 1U})
        EXPECT_EQ(mark(open_unbuffered(), marks), nt_status::invalid_parameter) << marks;
    EXPECT_EQ(control(control_code::mark_handle, open_unbuffered(), {}, 0).status(),
              nt_status::buffer_too_small);
}

}  // namespace
}  // namespace sluice::smb_simulation
