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

}  // namespace
}  // namespace sluice::http
