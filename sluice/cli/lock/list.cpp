#include "sluice/cli/lock/list.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "sluice/cli/lock/lock_session.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

using namespace sluice::fsmutex;

[[nodiscard]] int refuse(const lock_options& options, const error& why) {
    print_error(about(options.file, why));
    return static_cast<int>(status_of_open(why));
}

[[nodiscard]] std::string text_of(listed_request::state what) {
    switch (what) {
        case listed_request::state::holds:
            return "holds";
        case listed_request::state::waits:
            return "waits";
        case listed_request::state::died:
            return "died";
    }
    return "";
}

// A mutex stores numbers, not names. Only names given by the user can be shown.
[[nodiscard]] std::string text_of(entity one, const lock_options& options) {
    for (const auto* names : {&options.exclusive, &options.shared})
        for (const std::string& name : *names)
            if (entity::of_name(name).number() == one.number())
                return (one.is_exclusive() ? "exclusive:" : "shared:") + name;
    return fmt::format("{}:{:016x}", one.is_exclusive() ? "exclusive" : "shared", one.number());
}

}  // namespace

int list_lock_requests(const lock_options& options) {
    // Listing must not create the file.
    if (::access(options.file.c_str(), F_OK) != 0) return refuse(options, error::last("list the holders"));
    const auto choice = algorithm_of(options);
    if (not choice) return refuse(options, choice.error());
    if (not*choice) return refuse(options, {EOPNOTSUPP, "list the holders of flock(2)"});
    fmt::print("{:<6} {:>8} {:<20} {:<20} {}\n", "what", "pid", "host", "since", "entities");
    // Opening a file that is not a mutex would turn it into one.
    if (options.algorithm == "best" and not(*choice)->is_in_use) return 0;
    const auto mutex = open((*choice)->which, {}, options.file);
    if (not mutex) return refuse(options, mutex.error());
    const auto all = (*mutex)->list();
    if (not all) return refuse(options, all.error());
    for (const listed_request& each : *all) {
        const auto seconds = std::chrono::system_clock::to_time_t(
            std::chrono::floor<std::chrono::system_clock::duration>(each.since));
        fmt::print("{:<6} {:>8} {:<20} {}Z", text_of(each.what), each.process_id, terminal_text(each.host),
                   utc_text(iso_seconds, seconds));
        for (const entity one : each.entities)
            fmt::print(" {}", text_of(one, options));
        fmt::print("\n");
    }
    return 0;
}

}  // namespace sluice::cli
