#include "sluice/cli/doctor/page_findings.hpp"

#include <utility>

#include "sluice/cli/doctor/local/local_checks.hpp"

namespace sluice::cli::doctor {
namespace {

[[nodiscard]] finding_severity severity_of(severity level) noexcept {
    switch (level) {
        case severity::note:
            return finding_severity::note;
        case severity::warning:
            return finding_severity::warning;
        case severity::problem:
            return finding_severity::error;
    }
    return finding_severity::note;
}

}  // namespace

std::function<std::vector<cli::finding>()> page_checks(serve_options options,
                                                       std::vector<std::string> addresses) {
    for (std::string& user : options.users)  // NAME%PASSWORD
        if (const std::size_t percent = user.find('%'); percent != std::string::npos)
            user.resize(percent + 1);
    options.web_token.clear();
    return [kept = std::move(options), at = std::move(addresses)] {
        std::vector<cli::finding> all;
        for (finding& one : findings(kept, at))
            all.push_back({.severity = severity_of(one.level),
                           .what = std::move(one.what),
                           .evidence = std::move(one.evidence),
                           .hint = std::move(one.remedy)});
        return all;
    };
}

}  // namespace sluice::cli::doctor
