#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// As much of HTTP/1.1 (RFC 9112) as it takes to be asked for one page.

namespace sluice::cli {

/// The longest request that is read: the line and all headers.
inline constexpr std::size_t http_request_bytes_max = 8192;

enum class http_method : std::uint8_t { get, head, other };

/// What is wrong with a request, as the status to answer with; `ok`: nothing.
enum class http_status : std::uint16_t {
    ok = 200,
    bad_request = 400,
    not_found = 404,
    method_not_allowed = 405,
    headers_too_large = 431,
    version_not_supported = 505,
};

struct http_request {
    http_status problem = http_status::ok;
    http_method method = http_method::other;
    std::string_view path{};  // of the target, without a query; borrows from what was read
};

/// Whether the headers' end is in what was read.
[[nodiscard]] bool has_http_headers(std::string_view read) noexcept;

/// The request that begins what was read. Headers are not looked at, but must have the form of such: nothing
/// that a client puts into a name or a line end is taken for something else. Allocates: nothing.
[[nodiscard]] http_request parse_http_request(std::string_view read) noexcept;

}  // namespace sluice::cli
