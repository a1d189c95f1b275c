#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// The subset of HTTP/1.1 (RFC 9112) that is needed to request one page.

namespace sluice::http {

/// The longest request that is read: the request line and all headers.
inline constexpr std::size_t http_request_bytes_max = 8192;

enum class http_method : std::uint8_t { get, head, post, other };

/// The status for the reply to a request; `ok`: it is valid.
enum class http_status : std::uint16_t {
    ok = 200,
    bad_request = 400,
    not_found = 404,
    method_not_allowed = 405,
    length_required = 411,
    headers_too_large = 431,
    version_not_supported = 505,
};

struct http_request {
    http_status problem = http_status::ok;
    http_method method = http_method::other;
    std::string_view path{};        // path of the target, without a query; borrows from the text
    std::size_t header_bytes = 0;   // where the content begins
    std::size_t content_bytes = 0;  // of POST: as Content-Length states; not limited
};

/// Returns whether the text contains the end of the headers.
[[nodiscard]] bool has_http_headers(std::string_view read) noexcept;

/// Parses the request at the start of the text. The parser uses no header but the Content-Length of
/// POST: a POST without one, or with two, is rejected. All headers must be well-formed, so that no
/// name or line end of a client can be misinterpreted. Allocates: nothing.
[[nodiscard]] http_request parse_http_request(std::string_view read) noexcept;

}  // namespace sluice::http
