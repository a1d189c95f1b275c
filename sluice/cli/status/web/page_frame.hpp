#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/cli/status/web/html_writer.hpp"
#include "sluice/discovery/http/http_request.hpp"

// The parts that the pages share, and the pages without facts of the server. Pure functions, which
// allocate the document.

namespace sluice::cli {

/// The shortest and the longest time between two automatic reloads of a page.
inline constexpr unsigned refresh_seconds_min = 2;
inline constexpr unsigned refresh_seconds_max = 3600;

/// The facts that all pages depend on.
struct page_view {
    std::string_view server;        // its name
    std::string_view form_token{};  // proves that a form comes from a page; empty: no actions
    unsigned refresh_s = 0;         // time between automatic reloads; 0: none
};

/// A part of a long list.
struct page_range {
    std::size_t all = 0;      // the entries of the whole list
    std::uint64_t after = 0;  // the part begins after this number; 0: at the beginning
    std::uint64_t last = 0;   // the last number of the part
    bool has_more = false;
};

/// Writes the beginning of a page: its head, the name of the server, and the links to the pages.
/// `path` is its own path.
void begin_page(html_writer& to, const page_view& view, markup title, markup path);
void end_page(html_writer& to);

/// Writes the number of entries, and links to the first and the next part of the list.
void add_range(html_writer& to, const page_range& range, const page_view& view, markup path, markup entries);

/// Writes a button that sends a form with the token of the session and the number of an object.
void add_button(html_writer& to, const page_view& view, markup action, std::uint64_t number, markup label);

/// Writes a query that keeps the setting of the reload, or nothing.
void add_refresh_query(html_writer& to, unsigned seconds);

/// Returns a page with a form for the token. `problem` may be empty.
[[nodiscard]] std::string logon_page(std::string_view server, markup problem);
/// Returns a page for a request that is not answered.
[[nodiscard]] std::string problem_page(http::http_status status, markup explanation);

[[nodiscard]] std::string_view style_sheet() noexcept;

}  // namespace sluice::cli
