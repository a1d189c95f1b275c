// Compiled instead of name_services.cpp for the static program.

#include <nss.h>

#include <array>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/name_services.hpp"

namespace sluice::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 5> services{{{"passwd", "files"},
                                                                       {"group", "files"},
                                                                       {"initgroups", "files"},
                                                                       {"hosts", "files dns"},
                                                                       {"services", "files"}}};

}  // namespace

void choose_name_services() {
    for (const auto& [database, names] : services)
        ENSURE(__nss_configure_lookup(database, names) == 0,
               "the C library contains the lookup in files and in DNS");
}

}  // namespace sluice::cli
