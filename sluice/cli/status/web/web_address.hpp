#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::cli {

/// Returns the address of a web page: a port on the loopback interface, a loopback address with a
/// port, or unix:PATH. Errors: the rule that the text violates, with the remedy. Pure function.
[[nodiscard]] std::expected<io::socket_address, std::string> web_address(const std::string& text);

/// For --web: returns the rule that a text violates; empty if it is valid or empty.
[[nodiscard]] std::string validate_web(const std::string& text);

/// Returns whether the page at `own` may answer a request with this Host header (RFC 9110, section
/// 7.2): localhost, 127.0.0.1, [::1] or its own address, with any port, because ssh -L changes it.
/// A page of another site cannot send these names: its own name may lead to this address (DNS
/// rebinding), but browsers send the name. Pure function.
[[nodiscard]] bool is_own_host(std::string_view host, const io::socket_address& own) noexcept;

/// The headers by which a browser says which page has sent a form.
struct form_origin {
    std::string_view host{};
    std::string_view origin{};
    std::string_view fetch_site{};  // Sec-Fetch-Site
};
/// Returns whether a form was not sent by a page of another site. If both headers are missing, the
/// sender is not a browser of today; the token of the form still protects. Pure function.
[[nodiscard]] bool is_own_form(const form_origin& sent) noexcept;

}  // namespace sluice::cli
