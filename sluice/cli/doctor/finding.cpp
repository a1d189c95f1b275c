#include "sluice/cli/doctor/finding.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::cli::doctor {

const char* name_of(severity level) noexcept {
    switch (level) {
        case severity::note:
            return "note";
        case severity::warning:
            return "warning";
        case severity::problem:
            return "problem";
    }
    return "note";
}

void finding_list::begin(std::string step) {
    const lock_guard held(mutex_);
    step_ = std::move(step);
}

void finding_list::add(finding found) {
    ENSURE(found.level == severity::note or not found.remedy.empty(), "a finding without a remedy");
    const lock_guard held(mutex_);
    findings_.push_back(std::move(found));
}

void finding_list::note(std::string check, std::string what, std::string evidence) {
    add({.level = severity::note,
         .check = std::move(check),
         .what = std::move(what),
         .evidence = std::move(evidence),
         .remedy = {}});
}

std::string finding_list::step() const {
    const lock_guard held(mutex_);
    return step_;
}

std::vector<finding> finding_list::findings() const {
    const lock_guard held(mutex_);
    return findings_;
}

std::string shell_word(std::string_view text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (not text.empty() and text.find_first_not_of(plain) == text.npos) return std::string(text);
    std::string quoted = "'";
    for (const char each : text) {
        if (each == '\'')
            quoted += "'\\''";
        else
            quoted += each;
    }
    return quoted + "'";
}

bool has_problem(const std::vector<finding>& all) noexcept {
    return std::ranges::any_of(all, [](const finding& each) { return each.level == severity::problem; });
}

}  // namespace sluice::cli::doctor
