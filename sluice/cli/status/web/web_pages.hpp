#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/cli/status/findings.hpp"
#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/cli/status/web/page_frame.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

// The pages of `sluice serve --web`, as HTML without scripts. All functions are pure, and allocate
// the document. Their size is bounded by the number of rows and the length of each name.

namespace sluice::cli {

/// The largest number of rows on a page.
inline constexpr std::size_t page_sessions_max = 50;
inline constexpr std::size_t page_opens_max = 100;
inline constexpr std::size_t page_shares_max = 500;
struct overview_facts {
    const smb::server::server_snapshot& totals;
    const load_history& history;
    std::span<const double> loop_delays_ms;
    std::span<const finding> findings;
};
[[nodiscard]] std::string overview_page(const page_view& view, const overview_facts& facts);

[[nodiscard]] std::string sessions_page(const page_view& view, const page_range& range,
                                        std::span<const smb::server::session_status> sessions,
                                        clock_source::utc_time now);
[[nodiscard]] std::string files_page(const page_view& view, const page_range& range,
                                     std::span<const smb::server::open_status> opens,
                                     const std::map<std::uint64_t, std::string>& user_of_session);

[[nodiscard]] std::string rejections_page(const page_view& view, std::uint64_t denied_connections,
                                          std::span<const smb::server::limit_row> limits);

}  // namespace sluice::cli
