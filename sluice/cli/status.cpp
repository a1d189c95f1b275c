// sluice status: shows the state of the servers of this account on this machine.

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/status_document.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/cli/status/status_text.hpp"

namespace sluice::cli {
namespace {

struct status_arguments {
    std::string socket;
    std::uint16_t port = 0;  // 0: all
    bool json = false;
    bool opens = false;
};

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

void run_status(const status_arguments& given) {
    std::vector<std::string> sockets;
    const bool is_chosen = not given.socket.empty() or given.port != 0;
    if (not given.socket.empty())
        sockets.push_back(given.socket);
    else if (given.port != 0)
        sockets.push_back(status_socket_path(given.port));
    else
        sockets = status_sockets();
    const std::string question = given.opens ? "status opens\n" : "status\n";
    std::size_t shown = 0;
    bool has_failed = false;
    for (const std::string& path : sockets) {
        const auto answer = ask_server(path, question);
        const bool is_reset = not answer and (answer.error() == std::errc::connection_reset or
                                              answer.error() == std::errc::broken_pipe);
        if (is_reset or (answer and answer->empty())) {
            print_error(
                fmt::format("{}: the server closed the connection; only root and the account that runs the "
                            "server can query it",
                            path));
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
                                       .example("sluice status --json --port 445 | jq .rates");
    const auto given = std::make_shared<status_arguments>();
    command.add_flag("--json", given->json, "print one JSON document per server and line");
    command.add_flag("--opens", given->opens, "list open files with path, caching state, and locks");
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
