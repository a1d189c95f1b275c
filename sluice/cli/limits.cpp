#include "sluice/cli/limits.hpp"

#include <fmt/core.h>

#include <string_view>

#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/server/snapshot.hpp"

namespace sluice::cli {

namespace {

void print(std::string_view what, auto limit, std::string_view unit = "") {
    fmt::print("  {:<56} {:>10} {}\n", what, limit, unit);
}

}  // namespace

void print_limits() {
    std::string_view group;
    for (const smb::server::limit_row& row : smb::server::limit_rows({})) {
        if (row.group != group) fmt::print("{}\n", row.group);
        if (row.group != group and row.group == "Logging on") {
            print("one token", smb::auth::limits::token_bytes_max, "bytes");
            print("exchanges until it must be decided", smb::auth::limits::round_trips_max);
        }
        group = row.group;
        print(row.what, row.limit, row.unit);
    }
}

}  // namespace sluice::cli
