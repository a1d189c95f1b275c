#include <gtest/gtest.h>

#include <string>

#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/json_writer.hpp"

namespace sluice::cli {
namespace {

TEST(json_writer, members_and_elements_are_separated_at_every_position) {
    json_writer to;
    to.begin_object().member("a", 1U).member("b", "x").key("c").begin_array();
    to.value(true).begin_object().end_object().value(2.25).null().end_array();
    to.key("d").begin_object().end_object().end_object();
    EXPECT_EQ(to.take(), R"({"a":1,"b":"x","c":[true,{},2.2,null],"d":{}})");
}

TEST(json_writer, a_document_taken_in_pieces_continues_correctly) {
    json_writer to;
    to.begin_array().value(1U);
    std::string text = to.take();
    to.value(2U).end_array();
    EXPECT_EQ(text + to.take(), "[1,2]");
}

TEST(json_value, members_and_elements_are_found_and_missing_ones_are_empty) {
    const auto document =
        json_value::parse(R"( {"a": {"b": [1, -2.5, "x", true, null]}, "n": 18446744073709551615} )");
    ASSERT_TRUE(document);
    const auto& list = (*document)["a"]["b"].elements();
    ASSERT_EQ(list.size(), 5U);
    EXPECT_EQ(list[0].count(), 1U);
    EXPECT_EQ(list[1].number(), -2.5);
    EXPECT_EQ(list[1].count(), 0U);
    EXPECT_EQ(list[2].text(), "x");
    EXPECT_TRUE(list[3].is_true());
    EXPECT_FALSE(list[4].is_number());
    EXPECT_EQ((*document)["n"].count(), UINT64_MAX);
    EXPECT_EQ((*document)["nowhere"]["at all"].text(), "");
}

TEST(json_value, escapes_are_read_as_the_characters_they_mean) {
    const auto document = json_value::parse(R"("\"\\\/\b\f\n\r\t\u00fc\u20ac\ud83d\ude00")");
    ASSERT_TRUE(document);
    EXPECT_EQ(document->text(), "\"\\/\b\f\n\r\t\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(json_value, a_text_that_is_not_exactly_one_document_is_rejected) {
    for (const std::string_view text : {"",
                                        " ",
                                        "{",
                                        "[1,]",
                                        "{\"a\"}",
                                        "{\"a\":1,}",
                                        "{a:1}",
                                        "1 2",
                                        "01",
                                        "1.",
                                        "1e",
                                        "-",
                                        "+1",
                                        "nul",
                                        "\"",
                                        "\"\\x\"",
                                        "\"\\ud800\"",
                                        "\"\\ud800\\u0041\"",
                                        "\"\\udc00\"",
                                        "\"\n\"",
                                        "\"\\u12g4\"",
                                        "[1 2]",
                                        "\"\xff\"",
                                        "1e400"})
        EXPECT_FALSE(json_value::parse(text)) << text;
}

TEST(json_value, nesting_deeper_than_the_limit_is_refused) {
    const auto nested = [](std::size_t depth) {
        return json_value::parse(std::string(depth, '[') + std::string(depth, ']')).has_value();
    };
    EXPECT_TRUE(nested(json_value::depth_max));
    EXPECT_FALSE(nested(json_value::depth_max + 1));
    EXPECT_FALSE(json_value::parse(std::string(1'000'000, '[')));
    std::string objects;
    for (std::size_t i = 0; i != 1'000'000; ++i)
        objects += R"({"a":)";
    EXPECT_FALSE(json_value::parse(objects));
}

}  // namespace
}  // namespace sluice::cli
