#include "sluice/cli/serve/limits.hpp"

#include <fmt/core.h>

#include <string_view>

#include "sluice/cli/serve/homes/home_shares.hpp"
#include "sluice/cli/serve/process_resources.hpp"
#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::cli {

namespace {

void print(std::string_view what, auto limit, std::string_view unit = "",
           std::string_view when_reached = "") {
    fmt::print("  {:<54} {:>11}{}{}\n", what, limit, unit.empty() ? "" : " ", unit);
    if (not when_reached.empty()) fmt::print("      then: {}\n", when_reached);
}

}  // namespace

void print_limits() {
    std::string_view group;
    for (const smb::server::limit_row& row :
         smb::server::limit_rows(smb::server::server_bounds::of(claim_process_resources()))) {
        if (row.group != group) fmt::print("{}\n", row.group);
        if (row.group != group and row.group == "Logging on") {
            print("one token", smb::auth::limits::token_bytes_max, "bytes");
            print("exchanges until it must be decided", smb::auth::limits::round_trips_max);
        }
        if (row.group != group and row.group == "Sessions and files")
            print("users with a share of their own (homes)", home_shares_max, "",
                  "the server does not start, and a reload has no effect");
        group = row.group;
        print(row.what, row.limit, row.unit, row.when_reached);
    }
}

}  // namespace sluice::cli
