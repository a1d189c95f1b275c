#include "bench/harness/json_row.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::bench {
namespace {

TEST(json_row, keeps_the_order_of_its_fields) {
    json_row row;
    row.add("b", "x").add("a", 1u);
    EXPECT_EQ(row.text(), R"({"b":"x","a":1})");
}

TEST(json_row, escapes_quotes_backslashes_and_control_characters) {
    json_row row;
    row.add("a\"b", std::string_view("\\ \n\0 µ", 7));
    EXPECT_EQ(row.text(), R"({"a\"b":"\\ \u000a\u0000 µ"})");
}

TEST(json_row, rounds_numbers_to_six_digits_and_writes_them_short) {
    json_row row;
    row.add("a", 1234567.0).add("b", 0.1).add("c", 2.0 / 3).add("d", 0.0).add("e", -1e-9);
    EXPECT_EQ(row.text(), R"({"a":1234570,"b":0.1,"c":0.666667,"d":0,"e":-1e-09})");
}

TEST(json_row, has_no_spelling_for_numbers_that_are_not_finite) {
    json_row row;
    row.add("a", std::numeric_limits<double>::infinity()).add("b", std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(row.text(), R"({"a":null,"b":null})");
}

TEST(json_row, is_an_object_even_without_fields) {
    EXPECT_EQ(json_row().text(), "{}");
}

}  // namespace
}  // namespace sluice::bench
