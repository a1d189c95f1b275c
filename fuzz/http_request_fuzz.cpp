// The request that `sluice serve --metrics` reads. Every accepted request begins with its method
// and path, and bytes after its headers change nothing.

#include <string>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/http/http_request.hpp"

using namespace sluice;
using namespace sluice::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view read(reinterpret_cast<const char*>(data), size);
    const http_request request = parse_http_request(read);
    if (request.problem != http_status::ok) return 0;
    ENSURE(has_http_headers(read) and request.method != http_method::other);
    ENSURE(request.path.starts_with('/') and
           request.path.find_first_of("? \r\n\t") == std::string_view::npos);
    const std::string method = request.method == http_method::get    ? "GET "
                               : request.method == http_method::head ? "HEAD "
                                                                     : "POST ";
    const std::string beginning = method + std::string(request.path);
    ENSURE(request.header_bytes <= size);
    ENSURE(read.starts_with(beginning));
    const std::string longer = std::string(read) + "\r\n\r\n GET /other";
    const http_request again = parse_http_request(longer);
    ENSURE(again.problem == http_status::ok and again.path == request.path);
    return 0;
}
