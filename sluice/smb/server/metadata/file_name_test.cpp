#include "sluice/smb/server/metadata/file_name.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {
namespace {

using wire::nt_status;

[[nodiscard]] std::expected<file_name, nt_status> parse(std::string_view text) {
    const std::string utf16 = wire::utf16_of(text).value();
    return parse_file_name(std::as_bytes(std::span(utf16)));
}

TEST(file_name, has_slashes_where_clients_write_backslashes) {
    const auto name = parse("dir\\Ünter\\file.txt");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->path, "dir/Ünter/file.txt");
    EXPECT_FALSE(name->names_stream);
}

TEST(file_name, that_is_empty_means_the_root) {
    EXPECT_TRUE(parse("")->is_root());
}

TEST(file_name, may_end_with_a_separator_and_then_means_a_directory) {
    EXPECT_EQ(parse("dir\\")->path, "dir");
    EXPECT_TRUE(parse("dir\\")->ends_with_separator);
}

TEST(file_name, names_a_stream_behind_a_colon_with_or_without_its_type) {
    EXPECT_EQ(parse("f:s")->stream, "s");
    EXPECT_EQ(parse("f:s:$data")->stream, "s");
    const auto unnamed = parse("f::$DATA");
    ASSERT_TRUE(unnamed);
    EXPECT_TRUE(unnamed->names_stream);
    EXPECT_EQ(unnamed->stream, "");
    EXPECT_TRUE(parse("d::$INDEX_ALLOCATION")->names_directory_index);
}

TEST(file_name, refuses_paths_that_lead_out_of_the_share_or_nowhere) {
    EXPECT_EQ(parse("..").error(), nt_status::object_path_syntax_bad);
    EXPECT_EQ(parse(".\\..\\a").error(), nt_status::object_path_syntax_bad);
    EXPECT_EQ(parse("a\\b\\..\\..\\..\\c").error(), nt_status::object_path_syntax_bad);
    EXPECT_EQ(parse("\\a").error(), nt_status::invalid_parameter);
    EXPECT_EQ(parse("$extend\\$Quota:$Q:$INDEX_ALLOCATION").error(), nt_status::object_path_not_found);
    EXPECT_EQ(parse("a/b").error(), nt_status::object_name_invalid);
    EXPECT_EQ(parse("a/../b").error(), nt_status::object_name_invalid);
}

TEST(file_name, loses_components_of_one_and_two_dots) {
    EXPECT_EQ(parse(".")->path, "");
    EXPECT_EQ(parse(".\\a\\.\\b\\.")->path, "a/b");
    EXPECT_EQ(parse("a\\b\\..\\c")->path, "a/c");
    EXPECT_EQ(parse("a\\b\\..\\..\\c")->path, "c");
    EXPECT_EQ(parse("a\\b\\..")->path, "a");
    EXPECT_EQ(parse("a\\.:s")->stream, "s");
    EXPECT_EQ(parse("a\\...\\..b")->path, "a/.../..b");
}

TEST(file_name, with_two_dots_as_its_second_component_is_refused) {
    EXPECT_EQ(parse("a\\..\\b").error(), nt_status::invalid_parameter);
    EXPECT_EQ(parse("a\\..").error(), nt_status::invalid_parameter);
    EXPECT_EQ(parse("a\\.\\..\\b").error(), nt_status::invalid_parameter);
}

TEST(file_name, with_an_empty_component_leads_to_a_directory_that_does_not_exist) {
    EXPECT_EQ(parse("a\\\\b").error(), nt_status::object_path_not_found);
    EXPECT_EQ(parse("a\\\\").error(), nt_status::object_path_not_found);
    EXPECT_EQ(parse("a\\\\b*").error(), nt_status::object_name_invalid) << "an invalid name comes first";
}

TEST(file_name, refuses_a_directory_index_of_a_named_stream) {
    EXPECT_EQ(parse("d:s:$INDEX_ALLOCATION").error(), nt_status::invalid_parameter);
    EXPECT_TRUE(parse("d:$i30:$INDEX_ALLOCATION")->names_directory_index);
}

TEST(file_name, refuses_characters_and_lengths_no_file_can_have) {
    for (const std::string_view text :
         {"a*", "a?", "<a", "a>", "a|b", "\"", "a\x01", "a:", "a:b:$X", "a:b\\c"})
        EXPECT_EQ(parse(text).error(), nt_status::object_name_invalid) << text;
    EXPECT_TRUE(parse(std::string(255, 'x')));
    EXPECT_EQ(parse(std::string(256, 'x')).error(), nt_status::object_name_invalid);
    const std::byte half{0x41};
    EXPECT_EQ(parse_file_name({&half, 1}).error(), nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb::server
