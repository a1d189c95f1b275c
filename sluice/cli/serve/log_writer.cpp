#include "sluice/cli/serve/log_writer.hpp"
#include "sluice/cli/status/time_text.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace sluice::cli {

namespace {

using smb::server::event_severity;

[[nodiscard]] const char* name_of(event_severity severity) noexcept {
    switch (severity) {
        case event_severity::detail:
            return "debug";
        case event_severity::info:
            return "info";
        case event_severity::warning:
            return "warning";
        case event_severity::error:
            return "error";
    }
    return "?";
}

// Values can come from clients: they must not move the cursor or begin a new line.
void append_quoted(std::string& line, std::string_view value) {
    line += '"';
    for (const char c : value) {
        if (c == '"' or c == '\\')
            (line += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20 or c == 0x7f)
            line += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        else
            line += c;
    }
    line += '"';
}

}  // namespace

log_writer::log_writer(event_severity least) noexcept
    : format_(isatty(STDERR_FILENO) != 0 ? format::human_readable : format::logfmt), least_(least) {}

void log_writer::write(event_severity severity, std::string_view what,
                       std::initializer_list<smb::server::event_field> fields) noexcept {
    if (severity < least_) return;
    const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    std::string line;
    if (format_ == format::human_readable) {
        line = local_time_text("%H:%M:%S ", std::chrono::system_clock::to_time_t(now));
        if (severity >= event_severity::warning) line += fmt::format("{}: ", name_of(severity));
        line += what;
    } else {
        line = fmt::format(
            "time={}.{:03}Z level={} msg=", utc_text(iso_seconds, std::chrono::system_clock::to_time_t(now)),
            now.time_since_epoch().count() % 1000, name_of(severity));
        append_quoted(line, what);
    }
    for (const auto& [name, value] : fields) {
        line += fmt::format(" {}=", name);
        append_quoted(line, value);
    }
    line += '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sluice::cli
