#include "sluice/discovery/http/http_request.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::http {
namespace {

http_request parse(std::string_view text) {
    return parse_http_request(text);
}

TEST(http_request, get_and_head_name_a_path_without_its_query) {
    const http_request got = parse("GET /metrics?from=x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(got.problem, http_status::ok);
    EXPECT_EQ(got.method, http_method::get);
    EXPECT_EQ(got.path, "/metrics");
    EXPECT_EQ(parse("HEAD / HTTP/1.0\r\n\r\n").method, http_method::head);
}

TEST(http_request, other_methods_are_rejected_as_not_allowed) {
    EXPECT_EQ(parse("DELETE /metrics HTTP/1.1\r\n\r\n").problem, http_status::method_not_allowed);
    EXPECT_EQ(parse("get /metrics HTTP/1.1\r\n\r\n").problem, http_status::method_not_allowed);
}

TEST(http_request, a_post_states_the_length_of_its_content_once) {
    const http_request got = parse("POST /a HTTP/1.1\r\ncontent-LENGTH: 12 \r\n\r\ncontent");
    EXPECT_EQ(got.problem, http_status::ok);
    EXPECT_EQ(got.method, http_method::post);
    EXPECT_EQ(got.content_bytes, 12U);
    EXPECT_EQ(got.header_bytes, 41U);
    EXPECT_EQ(parse("POST /a HTTP/1.1\r\n\r\n").problem, http_status::length_required);
    EXPECT_EQ(parse("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").problem,
              http_status::length_required);
    for (const std::string_view length :
         {"-1", "", "1x", "99999999999999999999999", "1\r\nContent-Length: 1"})
        EXPECT_EQ(parse("POST /a HTTP/1.1\r\nContent-Length: " + std::string(length) + "\r\n\r\n").problem,
                  http_status::bad_request)
            << length;
}

TEST(http_request, other_versions_are_refused) {
    EXPECT_EQ(parse("GET / HTTP/2\r\n\r\n").problem, http_status::version_not_supported);
    EXPECT_EQ(parse("GET /\r\n\r\n").problem, http_status::bad_request);
}

TEST(http_request, an_ambiguous_request_line_is_rejected) {
    for (const std::string_view line :
         {"GET  / HTTP/1.1", " GET / HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1 ",
          "GET http://x/ HTTP/1.1", "GET /\t HTTP/1.1", "G(T / HTTP/1.1", "GET /\x80 HTTP/1.1", ""})
        EXPECT_EQ(parse(std::string(line) + "\r\n\r\n").problem,
                  line == "GET / HTTP/1.1 " ? http_status::version_not_supported : http_status::bad_request)
            << line;
}

TEST(http_request, a_request_with_malformed_headers_is_rejected) {
    for (const std::string_view header :
         {"no colon", "Na me: x", " Folded: x", "Name : x", "Name: a\nb", "Name: \x01", ": x"})
        EXPECT_EQ(parse("GET / HTTP/1.1\r\n" + std::string(header) + "\r\n\r\n").problem,
                  http_status::bad_request)
            << header;
}

TEST(http_request, an_endless_request_is_too_large_and_a_truncated_one_is_rejected) {
    const std::string endless = "GET / HTTP/1.1\r\nX: " + std::string(http_request_bytes_max, 'x');
    EXPECT_EQ(parse(endless).problem, http_status::headers_too_large);
    EXPECT_EQ(parse("GET / HTTP/1.1\r\nX: y\r\n").problem, http_status::bad_request);
    EXPECT_FALSE(has_http_headers("GET / HTTP/1.1\r\n"));
}

TEST(http_request, a_form_has_the_body_that_its_length_announces) {
    const std::string head = "POST /logon HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 7\r\n\r\n";
    EXPECT_FALSE(has_http_form(head.substr(0, head.size() - 2)));
    EXPECT_FALSE(has_http_form(head + "token="));
    EXPECT_TRUE(has_http_form(head + "token=x"));
    const std::string whole = head + "token=x and more";
    const http_request got = parse_http_form(whole);
    EXPECT_EQ(got.problem, http_status::ok);
    EXPECT_EQ(got.method, http_method::post);
    EXPECT_EQ(got.body, "token=x");
    EXPECT_EQ(got.headers.host, "localhost:1");
    EXPECT_EQ(parse_http_form(head + "token=").problem, http_status::bad_request);
    EXPECT_EQ(parse_http_form("GET / HTTP/1.1\r\nContent-Length: 7\r\n\r\n").problem, http_status::ok);
}

TEST(http_request, a_body_without_a_clear_length_is_rejected) {
    for (const std::string_view headers :
         {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: -1\r\n", "Content-Length: 1, 1\r\n",
          "Content-Length:\r\n", "Content-Length: 99999999999999999999999\r\n"}) {
        const std::string text = "POST / HTTP/1.1\r\n" + std::string(headers) + "\r\nx";
        EXPECT_EQ(parse(text).problem, http_status::bad_request) << headers;
        EXPECT_TRUE(has_http_form(text)) << headers;
    }
    for (const std::string_view headers :
         {"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\nContent-Length: 1\r\n",
          "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"})
        for (const std::string_view method : {"GET", "POST"}) {
            const std::string text = std::string(method) + " / HTTP/1.1\r\n" + std::string(headers) + "\r\nx";
            EXPECT_EQ(parse(text).problem, http_status::length_required) << headers;
            EXPECT_TRUE(has_http_form(text)) << headers;
        }
    const std::string long_body = "POST / HTTP/1.1\r\nContent-Length: 2049\r\n\r\n";
    EXPECT_EQ(parse(long_body).problem, http_status::ok);
    EXPECT_EQ(parse_http_form(long_body).problem, http_status::content_too_large);
    EXPECT_TRUE(has_http_form(long_body));
}

TEST(http_request, a_header_that_replies_depend_on_may_occur_once) {
    for (const std::string_view name :
         {"Host", "ORIGIN", "Cookie", "Authorization", "Sec-Fetch-Site", "content-type"}) {
        const std::string line = std::string(name) + ": \r\n";
        EXPECT_EQ(parse("GET / HTTP/1.1\r\n" + line + line + "\r\n").problem, http_status::bad_request)
            << name;
    }
    EXPECT_EQ(parse("GET / HTTP/1.1\r\nX: 1\r\nX: 2\r\nHost:\t a \r\n\r\n").headers.host, "a");
}

TEST(http_request, values_of_a_form_are_decoded) {
    EXPECT_EQ(form_value("a=1&token=x%2By+z&token=2", "token"), "x+y z");
    EXPECT_EQ(form_value("token", "token"), "");
    EXPECT_EQ(form_value("xtoken=1", "token"), std::nullopt);
    for (const std::string_view invalid : {"t=%", "t=%1", "t=%zz", "t=%+1", "t=% 1"})
        EXPECT_EQ(form_value(invalid, "t"), std::nullopt) << invalid;
    EXPECT_EQ(form_number("number=18446744073709551615", "number"), UINT64_MAX);
    for (const std::string_view invalid :
         {"number=18446744073709551616", "number=-1", "number=1x", "number=", "n=1"})
        EXPECT_EQ(form_number(invalid, "number"), std::nullopt) << invalid;
}

}  // namespace
}  // namespace sluice::http
