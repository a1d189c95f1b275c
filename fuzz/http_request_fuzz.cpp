// The request that `sluice serve --metrics` and `--web` read. Every accepted request begins with
// its method and path, and bytes after its body change nothing. Values of forms are bounded by it.

#include <string>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/web/html_writer.hpp"
#include "sluice/cli/status/web/web_address.hpp"
#include "sluice/cli/status/web/web_sessions.hpp"
#include "sluice/discovery/http/http_request.hpp"

using namespace sluice;
using namespace sluice::cli;
using namespace sluice::http;

namespace {

[[nodiscard]] std::string_view name_of(http_method method) noexcept {
    return method == http_method::get ? "GET " : method == http_method::head ? "HEAD " : "POST ";
}

void check_form(std::string_view form) {
    for (const std::string_view name : {"token", "number", "form", "after", "refresh"})
        if (const auto value = form_value(form, name)) ENSURE(value->size() <= form.size());
    (void)form_number(form, "number");
}

// No text becomes markup.
void check_escaping(std::string_view text) {
    html_writer to;
    const std::string escaped = to.text(text).take();
    ENSURE(escaped.find_first_of("<>\"'") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view read(reinterpret_cast<const char*>(data), size);
    check_form(read);
    check_escaping(read);
    const http_request request = parse_http_request(read);
    if (request.problem != http_status::ok) return 0;
    ENSURE(has_http_headers(read) and request.method != http_method::other);
    ENSURE(request.path.starts_with('/') and
           request.path.find_first_of("? \r\n\t") == std::string_view::npos);
    ENSURE(request.header_bytes <= size and request.body.empty());
    ENSURE(read.starts_with(std::string(name_of(request.method)) + std::string(request.path)));
    const http_request form = parse_http_form(read);
    ENSURE(form.problem != http_status::ok or
           (has_http_form(read) and form.body.size() <= http_body_bytes_max));
    check_form(request.query);
    check_form(form.body);
    (void)web_cookie_in(request.headers.cookie);
    (void)is_own_host(request.headers.host, io::socket_address::loopback_v4(1));
    (void)is_own_form({.host = request.headers.host,
                       .origin = request.headers.origin,
                       .fetch_site = request.headers.fetch_site});
    const std::string longer = std::string(read) + "\r\n\r\n GET /other";
    const http_request again = parse_http_request(longer);
    ENSURE(again.problem == http_status::ok and again.path == request.path and
           again.content_bytes == request.content_bytes);
    return 0;
}
