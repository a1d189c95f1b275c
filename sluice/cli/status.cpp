// sluice status: shows the state of the servers of this account on this machine.

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/live_terminal.hpp"
#include "sluice/cli/status/status_document.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/cli/status/status_text.hpp"
#include "sluice/cli/status/watch_screen.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

struct status_arguments {
    std::string socket;
    std::uint16_t port = 0;  // 0: all
    bool json = false;
    bool opens = false;
    // Seconds between two screens; empty: the usual number. Without the option, it has another
    // text.
    std::string watch = not_watched;
    static constexpr const char* not_watched = "off";
};

constexpr double watch_seconds_min = 0.2;
constexpr double watch_seconds_max = 3600;
constexpr double watch_seconds_usual = 2;

// Returns the number in the text; std::nullopt if it is not in the range.
[[nodiscard]] std::optional<double> watch_seconds(const std::string& text) {
    if (text.empty()) return watch_seconds_usual;
    double seconds = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, seconds);
    const bool is_valid = problem == std::errc{} and stopped == end and seconds >= watch_seconds_min and
                          seconds <= watch_seconds_max;
    return is_valid ? std::optional(seconds) : std::nullopt;
}

[[nodiscard]] std::string validate_watch(const std::string& text) {
    return watch_seconds(text) ? ""
                               : fmt::format("use {} to {} seconds", watch_seconds_min, watch_seconds_max);
}

[[nodiscard]] std::string question_for(bool opens) {
    return opens ? "status opens\n" : "status\n";
}

// Shows the answer of one server. Returns false, with a message, if it is not a valid answer.
[[nodiscard]] bool show(const std::string& path, const std::string& answer, bool as_json, bool is_first) {
    const std::optional<json_value> document = json_value::parse(answer);
    if (not document or (*document)["format"].text() != "sluice-status") {
        print_error(fmt::format("{}: not a sluice status socket", path));
        return false;
    }
    if (const std::uint64_t version = (*document)["version"].count(); version > status_version) {
        print_error(
            fmt::format("{}: unsupported version {}; this program supports version {}; use a newer "
                        "sluice",
                        path, version, status_version));
        return false;
    }
    if (const std::string& why = (*document)["error"].text(); not why.empty()) {
        print_error(fmt::format("{}: {}", path, why));
        return false;
    }
    if (as_json)
        fmt::print("{}", answer);
    else
        fmt::print("{}{}", is_first ? "" : "\n", status_text(*document));
    return true;
}

// A server that died leaves its socket. It is reported only if the user asked for this server.
[[nodiscard]] bool is_of_the_dead(const error& why) noexcept {
    return why == std::errc::connection_refused or why == std::errc::no_such_file_or_directory;
}

// Returns whether a server has closed the connection without a reply.
[[nodiscard]] bool is_refused(const result<std::string>& answer) noexcept {
    if (answer) return answer->empty();
    return answer.error() == std::errc::connection_reset or answer.error() == std::errc::broken_pipe;
}

[[nodiscard]] std::string refusal_text(const std::string& path) {
    return fmt::format(
        "{}: the server closed the connection; only root and the account that runs the server can "
        "query it",
        path);
}

// Returns the sockets of the servers that the user asked for.
[[nodiscard]] std::vector<std::string> wanted_sockets(const status_arguments& given) {
    if (not given.socket.empty()) return {given.socket};
    return given.port != 0 ? std::vector{status_socket_path(given.port)} : status_sockets();
}

// Returns the document of a server, or why there is none.
[[nodiscard]] std::expected<json_value, std::string> document_of(const std::string& path, bool with_opens) {
    constexpr std::chrono::seconds answer_within{3};
    const auto answer = ask_server(path, question_for(with_opens), answer_within);
    if (is_refused(answer)) return std::unexpected(refusal_text(path));
    if (not answer) return std::unexpected(about(path, answer.error()));
    std::optional<json_value> document = json_value::parse(*answer);
    if (not document or (*document)["format"].text() != "sluice-status")
        return std::unexpected(fmt::format("{}: not a sluice status socket", path));
    return *std::move(document);
}

// Returns the socket of the only server.
[[nodiscard]] std::string socket_to_watch(const status_arguments& given) {
    std::vector<std::string> alive = wanted_sockets(given);
    if (alive.size() > 1)
        std::erase_if(alive, [](const std::string& path) { return not ask_server(path, "status\n"); });
    if (alive.empty()) fail(fmt::format("no running servers found in {}", status_directory()));
    if (alive.size() > 1)
        fail(
            fmt::format("--watch: {} servers are running; choose one with --port or --socket", alive.size()));
    return alive.front();
}

[[nodiscard]] std::chrono::milliseconds period_of(const status_arguments& given) {
    const double seconds = watch_seconds(given.watch).value_or(watch_seconds_usual);
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void watch_on_terminal(const std::string& path, json_value before, const status_arguments& given) {
    const auto period = period_of(given);
    live_terminal screen;
    json_value now = before;
    std::string problem;
    auto next = std::chrono::steady_clock::now() + period;
    for (;;) {
        std::vector<std::string> lines = watch_screen(before, now, live_terminal::size());
        if (not problem.empty() and not lines.empty())
            lines.front() =
                fitting_line(terminal_text(problem + "; retrying"), live_terminal::size().columns);
        if (not screen.show(lines)) return;
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
        const auto seen = screen.wait(std::max(left, std::chrono::milliseconds(0)));
        if (seen == live_terminal::event::quit) return;
        if (seen == live_terminal::event::redraw) continue;
        next = std::chrono::steady_clock::now() + period;
        auto fresh = document_of(path, given.opens);
        problem = fresh ? "" : fresh.error();
        if (fresh) before = std::exchange(now, *std::move(fresh));
    }
}

// Prints a text for each period, until the server ends or the reader goes.
void watch_as_text(const std::string& path, json_value before, const status_arguments& given) {
    constexpr screen_size unlimited{.rows = 1000, .columns = 200};
    for (;;) {
        std::this_thread::sleep_for(period_of(given));
        auto now = document_of(path, given.opens);
        if (not now) fail(now.error());
        for (const std::string& line : watch_screen(before, *now, unlimited))
            fmt::print("{}\n", line);
        fmt::print("\n");
        if (std::fflush(stdout) != 0) return;
        before = *std::move(now);
    }
}

void run_watch(const status_arguments& given) {
    if (given.json) refuse_usage("--watch shows a screen, not JSON; run 'sluice status --json' repeatedly");
    const std::string path = socket_to_watch(given);
    auto first = document_of(path, given.opens);
    if (not first) fail(first.error());
    if (live_terminal::is_available())
        watch_on_terminal(path, *std::move(first), given);
    else
        watch_as_text(path, *std::move(first), given);
}

void run_status(const status_arguments& given) {
    if (given.watch != status_arguments::not_watched) return run_watch(given);
    const bool is_chosen = not given.socket.empty() or given.port != 0;
    const std::vector<std::string> sockets = wanted_sockets(given);
    std::size_t shown = 0;
    bool has_failed = false;
    for (const std::string& path : sockets) {
        const auto answer = ask_server(path, question_for(given.opens));
        if (is_refused(answer)) {
            print_error(refusal_text(path));
            has_failed = true;
        } else if (answer) {
            const bool is_shown = show(path, *answer, given.json, shown == 0);
            shown += is_shown ? 1 : 0;
            has_failed |= not is_shown;
        } else if (is_chosen or not is_of_the_dead(answer.error())) {
            print_error(about(path, answer.error()) +
                        "; run 'sluice status' to find all servers of this account");
            has_failed = true;
        }
    }
    if (shown == 0 and not has_failed)
        print_error(fmt::format("no running servers found in {}", status_directory()));
    if (shown == 0 or has_failed) leave(exit_code::failure);
}

}  // namespace

void add_status(command_syntax app) {
    const command_syntax command = app.add_subcommand("status", "show the state of running servers")
                                       .group("Server")
                                       .example("sluice status --opens")
                                       .example("sluice status --watch")
                                       .example("sluice status --json --port 445 | jq .rates");
    const auto given = std::make_shared<status_arguments>();
    command.add_flag("--json", given->json, "print one JSON document per server and line");
    command.add_flag("--opens", given->opens, "list open files with path, caching state, and locks");
    command
        .add_option("--watch", given->watch,
                    "show the state again every SECONDS, on the whole screen of a terminal, until q or "
                    "Ctrl-C [default: 2]")
        .expected(0, 1)
        .check(validate_watch)
        .value_name("SECONDS");
    const option_syntax port =
        command.add_option("--port", given->port, "show only the server on this TCP port")
            .value_name("PORT")
            .between(1, 65535);
    command.add_option("--socket", given->socket, "show only the server with this status socket")
        .value_name("PATH")
        .excludes(port);
    command.on_call([given] { run_status(*given); });
}

}  // namespace sluice::cli
