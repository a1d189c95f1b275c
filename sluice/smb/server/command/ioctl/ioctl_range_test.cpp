#include "sluice/smb/wire/fsctl/fsctl_range.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// Controls of ranges of a file: holes, zeros, trimmed ranges.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class range_controls : public command_test {
protected:
    nt_status zero(const wire::file_id& file, const wire::file_range& range) {
        std::array<std::byte, 16> room{};
        byte_writer writer(room);
        wire::encode_set_zero_data(writer, range);
        return control(control_code::set_zero_data, file, *writer.finish()).status();
    }
    compliant_client::answer ask_ranges(const wire::file_id& file, std::uint32_t output_bytes_max = 4096) {
        std::array<std::byte, 16> room{};
        byte_writer writer(room);
        wire::encode_allocated_range(writer, {.offset = 0, .length = 1 << 20});
        return control(control_code::query_allocated_ranges, file, *writer.finish(), output_bytes_max);
    }
    [[nodiscard]] wire::file_id file_of(std::string_view text) {
        const wire::file_id file = open_for(wire::file_all_access);
        EXPECT_EQ(write(file, text), nt_status::success);
        return file;
    }
};

TEST_F(range_controls, write_zeros_and_leave_the_end_of_the_file) {
    const wire::file_id file = file_of("0123456789");
    EXPECT_EQ(zero(file, {.offset = 2, .length = 3}), nt_status::success);
    EXPECT_EQ(content_of(file), "01" + std::string(3, '\0') + "56789");
}

TEST_F(range_controls, write_no_zeros_without_the_right_or_a_range) {
    (void)file_of("0123456789");
    EXPECT_EQ(zero(open_for(wire::file_generic_read), {.length = 1}), nt_status::access_denied);
    EXPECT_EQ(zero(open_directory(), {.length = 1}), nt_status::invalid_parameter);
    EXPECT_EQ(control(control_code::set_zero_data, open_for(wire::file_all_access)).status(),
              nt_status::invalid_parameter);
}

TEST_F(range_controls, report_a_file_that_is_not_sparse_as_allocated_to_its_end) {
    const auto said = ask_ranges(file_of("0123456789"));
    ASSERT_EQ(said.status(), nt_status::success);
    const auto ranges = wire::decode_allocated_ranges(output_of_control(said)).value();
    ASSERT_EQ(ranges.size(), 1U);
    EXPECT_EQ(ranges[0], (wire::file_range{.offset = 0, .length = 10}));
}

TEST_F(range_controls, report_no_range_of_an_empty_file) {
    const auto said = ask_ranges(open_for(wire::file_all_access));
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_TRUE(output_of_control(said).empty());
}

TEST_F(range_controls, refuse_output_without_room_for_a_range) {
    EXPECT_EQ(ask_ranges(file_of("0123456789"), 15).status(), nt_status::buffer_too_small);
}

TEST_F(range_controls, make_a_file_sparse_but_no_directory) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(control(control_code::set_sparse, file).status(), nt_status::success);
    EXPECT_EQ(control(control_code::set_sparse, open_directory()).status(), nt_status::invalid_parameter);
}

TEST_F(range_controls, trim_ranges_to_zeros_and_count_them) {
    const wire::file_id file = file_of("0123456789");
    std::array<std::byte, 128> room{};
    byte_writer writer(room);
    wire::encode_file_level_trim(writer, {{.offset = 0, .length = 2}, {.offset = 4, .length = 2}});
    const auto said = control(control_code::file_level_trim, file, *writer.finish());
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(output_of_control(said)[0], std::byte{2});
    EXPECT_EQ(content_of(file), std::string(2, '\0') + "23" + std::string(2, '\0') + "6789");
}

TEST_F(range_controls, trim_nothing_for_a_request_with_a_key) {
    const wire::file_id file = file_of("0123456789");
    std::array<std::byte, 128> room{};
    byte_writer writer(room);
    wire::encode_file_level_trim(writer, {{.offset = 0, .length = 2}});
    room[0] = std::byte{1};
    EXPECT_EQ(control(control_code::file_level_trim, file, *writer.finish()).status(),
              nt_status::invalid_parameter);
    EXPECT_EQ(content_of(file), "0123456789");
}

class region_controls : public range_controls {
protected:
    compliant_client::answer ask_regions(const wire::file_id& file, const wire::file_region_request& asked,
                                         std::uint32_t output_bytes_max = 4096) {
        std::array<std::byte, 24> room{};
        byte_writer writer(room);
        encode(writer, asked);
        return control(control_code::query_file_regions, file, *writer.finish(), output_bytes_max);
    }
    static std::vector<wire::file_region_request> regions_in(const compliant_client::answer& said) {
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_file_regions(output_of_control(said)).value();
    }
};

TEST_F(region_controls, report_the_data_of_a_file_as_one_region) {
    const wire::file_id file = file_of("0123456789");
    const std::vector<wire::file_region_request> whole{{.range = {.offset = 0, .length = 10}}};
    EXPECT_EQ(regions_in(control(control_code::query_file_regions, file)), whole);
    EXPECT_EQ(regions_in(ask_regions(file, {.range = {.offset = 0, .length = 1024}})), whole);
    const std::vector<wire::file_region_request> part{{.range = {.offset = 4, .length = 3}}};
    EXPECT_EQ(regions_in(ask_regions(file, {.range = {.offset = 4, .length = 3}})), part);
}

TEST_F(region_controls, report_no_region_where_a_file_has_no_data) {
    const wire::file_id file = file_of("0123456789");
    EXPECT_TRUE(regions_in(ask_regions(file, {.range = {.offset = 10, .length = 1}})).empty());
    EXPECT_TRUE(regions_in(ask_regions(file, {.range = {.offset = 1, .length = 0}})).empty());
    EXPECT_TRUE(
        regions_in(control(control_code::query_file_regions, open_for(wire::file_all_access, "empty")))
            .empty());
}

TEST_F(region_controls, refuse_requests_that_are_none) {
    const wire::file_id file = file_of("0123456789");
    const std::array<std::byte, 10> too_short{};
    EXPECT_EQ(control(control_code::query_file_regions, file, too_short).status(),
              nt_status::buffer_too_small);
    EXPECT_EQ(ask_regions(file, {.range = {.length = 1}, .usage = 2}).status(), nt_status::invalid_parameter);
    EXPECT_EQ(ask_regions(file, {.range = {.length = 1}}, 39).status(), nt_status::buffer_too_small);
    EXPECT_EQ(control(control_code::query_file_regions, open_directory()).status(),
              nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation
