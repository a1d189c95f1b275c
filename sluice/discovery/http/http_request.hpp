#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The subset of HTTP/1.1 (RFC 9112) that is needed to request one page, or to send one form.

namespace sluice::http {

/// The longest request that is read: the request line and all headers, and the body of a form.
inline constexpr std::size_t http_request_bytes_max = 8192;
/// The longest body of a form.
inline constexpr std::size_t http_body_bytes_max = 2048;

enum class http_method : std::uint8_t { get, head, post, other };

/// The status for the reply to a request; `ok`: it is valid.
enum class http_status : std::uint16_t {
    ok = 200,
    see_other = 303,
    bad_request = 400,
    unauthorized = 401,
    forbidden = 403,
    not_found = 404,
    method_not_allowed = 405,
    length_required = 411,
    content_too_large = 413,
    unsupported_media_type = 415,
    misdirected_request = 421,
    too_many_requests = 429,
    headers_too_large = 431,
    version_not_supported = 505,
};

/// Returns the reason phrase of a status (RFC 9110, section 15).
[[nodiscard]] std::string_view reason_of(http_status status) noexcept;

/// The headers that a reply may depend on; empty if they are missing. They borrow from the text.
struct http_headers {
    std::string_view host{};
    std::string_view origin{};
    std::string_view fetch_site{};  // Sec-Fetch-Site
    std::string_view cookie{};
    std::string_view authorization{};
    std::string_view content_type{};
};

struct http_request {
    http_status problem = http_status::ok;
    http_method method = http_method::other;
    std::string_view path{};   // path of the target, without a query; borrows from the text
    std::string_view query{};  // likewise; without the question mark
    std::string_view body{};   // likewise; only after parse_http_form
    http_headers headers{};
    std::size_t header_bytes = 0;   // where the content begins
    std::size_t content_bytes = 0;  // of POST: as Content-Length states; not limited
};

/// Returns whether the text contains the end of the headers.
[[nodiscard]] bool has_http_headers(std::string_view read) noexcept;
/// Returns whether the text contains the end of the headers and of the body, or can never be valid.
[[nodiscard]] bool has_http_form(std::string_view read) noexcept;

/// Parses the line and the headers at the start of the text. All headers must be well-formed: no
/// name or line end of a client can be misinterpreted. A header of http_headers, or Content-Length,
/// may occur once. A POST without Content-Length, and a request with a transfer coding, is
/// rejected. Allocates: nothing.
[[nodiscard]] http_request parse_http_request(std::string_view read) noexcept;
/// The same, with the body of a POST. A body that is incomplete, or longer than
/// http_body_bytes_max, is rejected.
[[nodiscard]] http_request parse_http_form(std::string_view read) noexcept;

/// Returns a value of a form (application/x-www-form-urlencoded), or of a query, by its name; the
/// first one. Returns std::nullopt if it is missing, or encoded in an invalid way.
/// Allocates: the value.
[[nodiscard]] std::optional<std::string> form_value(std::string_view form, std::string_view name);
/// The same for a decimal number of 64 bits.
[[nodiscard]] std::optional<std::uint64_t> form_number(std::string_view form, std::string_view name);

}  // namespace sluice::http
