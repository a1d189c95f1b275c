#include "sluice/cli/status/web/html_writer.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::cli {
namespace {

[[nodiscard]] std::string html_of(std::string_view text) {
    html_writer to;
    return to.text(text).take();
}

TEST(html_writer, a_name_never_becomes_markup) {
    EXPECT_EQ(html_of("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    EXPECT_EQ(html_of("\" onmouseover=\"x"), "&quot; onmouseover=&quot;x");
    EXPECT_EQ(html_of("a&amp;b"), "a&amp;amp;b");
}

TEST(html_writer, characters_that_deceive_the_reader_are_replaced) {
    EXPECT_EQ(html_of("a\x1b[1m\nb"), "a?[1m?b");
    EXPECT_EQ(html_of("\xe2\x80\xaegpj.exe"), "?gpj.exe");
    EXPECT_EQ(html_of("\xff\xc0\xaf"), "???");
    EXPECT_EQ(html_of("Grüße"), "Grüße");
}

TEST(html_writer, a_long_text_is_cut_between_characters) {
    std::string text(html_writer::text_bytes_max - 1, 'x');
    EXPECT_EQ(html_of(text + "y"), text + "y");
    EXPECT_EQ(html_of(text + "ü"), text + "…");
    EXPECT_EQ(html_of(std::string(1'000'000, '\x80')), "…");
}

TEST(html_writer, numbers_are_finite) {
    html_writer to;
    to.add("<b>").number(18'446'744'073'709'551'615U).add("</b>").decimal(1.25);
    to.decimal(std::numeric_limits<double>::infinity()).decimal(std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(to.take(), "<b>18446744073709551615</b>1.20.00.0");
}

}  // namespace
}  // namespace sluice::cli
