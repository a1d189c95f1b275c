#include "sluice/cli/migration/smb_conf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sluice::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The files that a configuration includes.
using files = std::map<std::string, std::string>;

smb_conf parse(std::string_view content, const files& others = {}) {
    return parse_smb_conf("smb.conf", content,
                          [&](const std::string& path) -> std::expected<std::string, std::string> {
                              const auto found = others.find(path);
                              if (found == others.end()) return std::unexpected(path + ": missing");
                              return found->second;
                          });
}

std::string value_of(const smb_conf& from, std::size_t section, std::string_view name) {
    const smb_parameter* const found =
        section < from.sections.size() ? from.sections[section].find(name) : nullptr;
    return found == nullptr ? "(none)" : found->value;
}

TEST(smb_conf, names_ignore_case_and_white_space_and_have_synonyms) {
    const auto read = parse("WORK group = A\n[My  Files]\n Write OK = Yes\n public=no\ncreate mode = 0640\n");
    ASSERT_THAT(read.problems, IsEmpty());
    ASSERT_THAT(read.sections, SizeIs(2));
    EXPECT_EQ(value_of(read, 0, "workgroup"), "A");
    EXPECT_EQ(read.sections[1].name, "My Files");
    EXPECT_EQ(value_of(read, 1, "readonly"), "no");
    EXPECT_EQ(value_of(read, 1, "guestok"), "no");
    EXPECT_EQ(value_of(read, 1, "createmask"), "0640");
    EXPECT_EQ(read.sections[1].parameters[0].shown, "Write OK");
    EXPECT_EQ(read.sections[1].parameters[0].place.line, 3U);
}

TEST(smb_conf, a_backslash_continues_a_line_and_remarks_are_skipped) {
    const auto read = parse("; remark\n# [x]\n[a]\ncomment = one \\\n   two\\\n\npath = /srv\\\n");
    ASSERT_THAT(read.sections, SizeIs(2));
    EXPECT_EQ(value_of(read, 1, "comment"), "one two");
    EXPECT_EQ(value_of(read, 1, "path"), "/srv");
    EXPECT_EQ(read.sections[1].find("path")->place.line, 7U);
}

TEST(smb_conf, a_section_that_comes_again_continues_and_the_last_value_is_in_effect) {
    const auto read = parse("[a]\npath = /one\n[b]\n[A]\npath = /two\n");
    ASSERT_THAT(read.sections, SizeIs(3));
    EXPECT_EQ(value_of(read, 1, "path"), "/two");
    EXPECT_THAT(read.sections[1].parameters, SizeIs(1));
}

TEST(smb_conf, an_included_file_continues_the_section) {
    const auto read = parse("[a]\ninclude = more.conf\n", {{"more.conf", "path = /srv\n[b]\npath = /b\n"}});
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(value_of(read, 1, "path"), "/srv");
    EXPECT_EQ(value_of(read, 2, "path"), "/b");
    EXPECT_EQ(read.sections[1].find("path")->place.file, "more.conf");
}

TEST(smb_conf, a_cycle_of_includes_ends_with_an_error) {
    const auto read = parse("include = b\n[a]\npath = /a\n",
                            {{"b", "include = c\n"}, {"c", "include = b\ninclude = smb.conf\n"}});
    ASSERT_THAT(read.problems, SizeIs(2));
    EXPECT_THAT(read.problems[0].text, HasSubstr("includes itself"));
    EXPECT_EQ(value_of(read, 1, "path"), "/a");
}

TEST(smb_conf, files_that_include_one_another_twice_are_bounded) {
    files others;
    for (int i = 0; i != 7; ++i) {
        const std::string next = "include = f" + std::to_string(i + 1) + "\n";
        others["f" + std::to_string(i)] = next + next + next + next;
    }
    others["f7"] = "";
    const auto read = parse("include = f0\n", others);
    EXPECT_THAT(read.problems, SizeIs(smb_conf_limits::problems_max));
}

TEST(smb_conf, a_copy_has_the_parameters_that_the_section_does_not_set) {
    const auto read =
        parse("[base]\npath = /base\ncomment = base\n[a]\ncomment = a\ncopy = base\nread only = no\n");
    EXPECT_EQ(value_of(read, 2, "path"), "/base");
    EXPECT_EQ(value_of(read, 2, "comment"), "a");
    EXPECT_EQ(value_of(read, 2, "readonly"), "no");
}

TEST(smb_conf, parameters_of_a_section_that_is_ignored_belong_to_no_other) {
    const auto read = parse("[a]\npath = /a\n[]\npath = /b\nvalid users =\n[c]\npath = /c\n");
    ASSERT_THAT(read.problems, SizeIs(1));
    EXPECT_EQ(value_of(read, 1, "path"), "/a");
    EXPECT_EQ(value_of(read, 1, "validusers"), "(none)");
    EXPECT_EQ(value_of(read, 2, "path"), "/c");
}

TEST(smb_conf, a_restriction_that_cannot_be_read_is_recorded) {
    const std::string users(9000, 'a');
    EXPECT_TRUE(parse("[a]\nvalid users = " + users + "\n").sections[1].lacks_restriction);
    EXPECT_TRUE(parse("[a]\nvalid users = \xff\n").sections[1].lacks_restriction);
    EXPECT_TRUE(parse("[a]\nwriteable = a\x01\n").sections[1].lacks_restriction);
    EXPECT_FALSE(parse("[a]\ncomment = \xff\n").sections[1].lacks_restriction);
}

TEST(smb_conf, lists_have_several_separators_and_quotes) {
    EXPECT_THAT(smb_list("a, b;c  \"d e\"\t@f"), ElementsAre("a", "b", "c", "d e", "@f"));
    EXPECT_THAT(smb_list(" ,; "), IsEmpty());
}

TEST(smb_conf, only_substitutions_that_do_not_depend_on_the_client_have_a_value) {
    EXPECT_EQ(smb_substituted("/srv/%S/100%%", "a"), "/srv/a/100%");
    EXPECT_EQ(smb_substituted("/srv/%U", "a"), std::unexpected<std::string>("%U"));
    EXPECT_EQ(smb_substituted("/srv/%", "a"), std::unexpected<std::string>("%"));
}

TEST(smb_conf, booleans_have_four_forms_each) {
    for (const char* const word : {"yes", "TRUE", "On", "1"})
        EXPECT_EQ(smb_boolean(word), true) << word;
    for (const char* const word : {"no", "False", "off", "0"})
        EXPECT_EQ(smb_boolean(word), false) << word;
    EXPECT_FALSE(smb_boolean("maybe"));
}

}  // namespace
}  // namespace sluice::cli
