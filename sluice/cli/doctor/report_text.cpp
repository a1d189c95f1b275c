#include "sluice/cli/doctor/report_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "sluice/cli/status/json_writer.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli::doctor {
namespace {

struct appearance {
    const char* symbol;
    const char* colour;
};

[[nodiscard]] appearance appearance_of(severity level) noexcept {
    switch (level) {
        case severity::problem:
            return {.symbol = "x", .colour = "\x1b[31m"};
        case severity::warning:
            return {.symbol = "!", .colour = "\x1b[33m"};
        case severity::note:
            break;
    }
    return {.symbol = "-", .colour = ""};
}

void append(std::string& text, const finding& one, bool colours) {
    const appearance looks = appearance_of(one.level);
    const bool is_coloured = colours and * looks.colour != '\0';
    text += fmt::format("{}{} {}{}: {}: {}\n", is_coloured ? looks.colour : "", looks.symbol,
                        name_of(one.level), is_coloured ? "\x1b[0m" : "", one.check, terminal_text(one.what));
    if (not one.evidence.empty()) text += fmt::format("    observed: {}\n", terminal_text(one.evidence));
    if (not one.remedy.empty()) text += fmt::format("    remedy:   {}\n", terminal_text(one.remedy));
}

[[nodiscard]] std::size_t count_of(const std::vector<finding>& all, severity level) {
    return static_cast<std::size_t>(std::ranges::count(all, level, &finding::level));
}

[[nodiscard]] std::string counted(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string report_text(const std::string& subject, const std::vector<finding>& all, bool colours) {
    std::string text = fmt::format("{}\n", terminal_text(subject));
    for (const severity level : {severity::problem, severity::warning, severity::note})
        for (const finding& one : all)
            if (one.level == level) append(text, one, colours);
    text += fmt::format("{}, {}, {}\n", counted(count_of(all, severity::problem), "problem"),
                        counted(count_of(all, severity::warning), "warning"),
                        counted(count_of(all, severity::note), "note"));
    return text;
}

std::string report_json(const std::string& subject, const std::vector<finding>& all) {
    json_writer to;
    to.begin_object().member("format", "sluice-doctor").member("version", 1U);
    to.member("subject", subject);
    to.member("problems", std::uint64_t{count_of(all, severity::problem)});
    to.member("warnings", std::uint64_t{count_of(all, severity::warning)});
    to.key("findings").begin_array();
    for (const finding& one : all) {
        to.begin_object().member("severity", name_of(one.level)).member("check", one.check);
        to.member("what", one.what).member("evidence", one.evidence).member("remedy", one.remedy);
        to.end_object();
    }
    to.end_array().end_object();
    return to.take() + "\n";
}

}  // namespace sluice::cli::doctor
