#include "sluice/cli/status/findings.hpp"

#include <fmt/core.h>

namespace sluice::cli {

using smb::server::limit_row;
using smb::server::server_snapshot;

namespace {

constexpr std::uint64_t limit_min = 10;  // smaller limits are reached by design

void add_loops(const server_snapshot& totals, std::vector<finding>& to) {
    if (totals.loop_stalls != 0)
        to.push_back({.severity = finding_severity::error,
                      .what = fmt::format("event loops were stuck for more than a second, {} times",
                                          totals.loop_stalls),
                      .hint = "the log names the request and the share; use --offload if a disk can hang"});
    else if (totals.loop_slow_turns != 0)
        to.push_back({.severity = finding_severity::warning,
                      .what = fmt::format("turns of event loops took 100 ms or more, {} times",
                                          totals.loop_slow_turns),
                      .hint = "the log names the request and the share"});
}

void add_limit(const limit_row& row, std::vector<finding>& to) {
    if (row.rejected.value_or(0) != 0)
        to.push_back({.severity = finding_severity::warning,
                      .what = fmt::format("the limit of {} was reached {} times", row.what, *row.rejected),
                      .hint = fmt::format("the page Rejections has the limit, {}", row.limit)});
    else if (row.rejected and row.in_use and row.limit >= limit_min and
             *row.in_use >= row.limit - row.limit / 5)
        to.push_back({.severity = finding_severity::info,
                      .what = fmt::format("{}: {} of {} are in use", row.what, *row.in_use, row.limit)});
}

}  // namespace

void add_findings_of(const server_snapshot& totals, std::vector<finding>& to) {
    add_loops(totals, to);
    for (const limit_row& row : limit_rows(totals.in_use))
        add_limit(row, to);
}

}  // namespace sluice::cli
