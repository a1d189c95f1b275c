// sluice doctor: explains why clients cannot connect to a server, or why it is slow.

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/remote/remote_checks.hpp"
#include "sluice/cli/doctor/report_text.hpp"
#include "sluice/cli/doctor/timed_run.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/password.hpp"

namespace sluice::cli {

using namespace doctor;  // NOLINT: the names of one component

namespace {

constexpr std::chrono::seconds run_within_s{28};
constexpr std::chrono::seconds network_within{20};

struct doctor_arguments {
    std::string subject;
    std::string user;
    std::string password_file;
    std::string users_file;
    bool json = false;
    bool write_test = false;
};

// A path has a slash, or names an existing file; everything else is a host.
[[nodiscard]] bool is_configuration(const std::string& subject) {
    if (subject.starts_with("//") or smb::client::is_smb_url(subject)) return false;
    std::error_code failed;
    const bool names_file =
        subject.ends_with(".toml") or subject.starts_with('/') or subject.starts_with("./");
    return names_file or std::filesystem::is_regular_file(subject, failed);
}

[[nodiscard]] smb::auth::nt_hash password_of(const doctor_arguments& given, const remote_target& target) {
    const auto hash_of_password = [&] {
        if (not given.password_file.empty()) {
            const auto line = password_in_file(given.password_file);
            if (not line) fail(password_problem(given.password_file, line.error()));
            return smb::auth::nt_hash::of_password(line->view());
        }
        if (const char* const known = std::getenv("SLUICE_PASSWORD"); known != nullptr)
            return smb::auth::nt_hash::of_password(known);
        const secret_text typed = ask_password("Password of " + target.user + " on " + target.host);
        return smb::auth::nt_hash::of_password(typed.view());
    };
    auto hash = hash_of_password();
    if (not hash) fail("the password is not UTF-8");
    return std::move(*hash);
}

// Prints the findings and ends the command.
[[noreturn]] void finish(const std::string& subject, const timed_result& seen, bool json) {
    const bool colours = ::isatty(STDOUT_FILENO) != 0 and std::getenv("NO_COLOR") == nullptr;
    fmt::print("{}",
               json ? report_json(subject, seen.findings) : report_text(subject, seen.findings, colours));
    const exit_code code = has_problem(seen.findings) ? exit_code::failure : exit_code::success;
    if (seen.is_complete) leave(code);
    std::fflush(stdout);
    std::_Exit(static_cast<int>(code));  // the thread of the checks may hang in a system call
}

[[noreturn]] void run_remote(const doctor_arguments& given) {
    if (given.write_test) refuse_usage("--write-test applies to the shares of this host; omit HOST");
    auto target = parse_target(given.subject);
    if (not target)
        refuse_usage(
            fmt::format("invalid value '{}' for HOST: {}", without_password(given.subject), target.error()));
    if (not given.user.empty()) target->user = given.user;
    if (target->user.empty() and not given.password_file.empty())
        refuse_usage("--password-file requires a user; use --user");
    const auto state = std::make_shared<remote_state>();
    state->target = *target;
    state->users_file = given.users_file;
    if (not target->user.empty())
        state->who = {.user = target->user,
                      .domain = target->domain,
                      .workstation = {},
                      .target_name = "cifs/" + target->host,
                      .hash = password_of(given, *target)};
    state->until = std::chrono::steady_clock::now() + network_within;
    const timed_result seen = run_within([state](finding_list& into) { check_server(*state, into); },
                                         run_within_s, ::isatty(STDERR_FILENO) != 0);
    finish("server " + target->text(), seen, given.json);
}

[[noreturn]] void run_local(const doctor_arguments& given) {
    if (not given.user.empty() or not given.password_file.empty())
        refuse_usage("--user and --password-file require HOST");
    const auto state = std::make_shared<local_state>(
        local_state{.options = {}, .configuration = given.subject, .writes = given.write_test});
    if (not given.subject.empty())
        if (const auto read = read_configuration(given.subject, state->options); not read) fail(read.error());
    if (not given.users_file.empty()) state->options.users_file = given.users_file;
    state->account = server_account::of_this_process();
    const timed_result seen = run_within([state](finding_list& into) { check_host(*state, into); },
                                         run_within_s, ::isatty(STDERR_FILENO) != 0);
    finish(given.subject.empty() ? "this host" : "this host, with " + given.subject, seen, given.json);
}

void run_doctor(const doctor_arguments& given) {
    if (not given.subject.empty() and not is_configuration(given.subject)) run_remote(given);
    run_local(given);
}

}  // namespace

void add_doctor(command_syntax app) {
    const command_syntax command =
        app.add_subcommand("doctor", "explain why clients cannot connect to a server, or why it is slow")
            .group("Server")
            .usage("[HOST|CONFIG]")
            .example("sluice doctor")
            .example("sluice doctor /etc/sluice/sluice.toml --write-test")
            .example("sluice doctor //nas.example.org/media --user bob");
    const auto given = std::make_shared<doctor_arguments>();
    command.add_option("HOST|CONFIG", given->subject,
                       "server to check, as [USER@]HOST[:PORT], //HOST/SHARE/FILE or an smb:// URL; or the "
                       "configuration file of a server on this host [default: this host]");
    command.add_option("--user", given->user, "log on to the server as this user [default: do not log on]")
        .value_name("NAME");
    command
        .add_option("--password-file", given->password_file,
                    "read the password from the first line of FILE [default: $SLUICE_PASSWORD, or prompt]")
        .value_name("FILE");
    command
        .add_option("--users-file", given->users_file,
                    "users file of the server on this host [default: that of sluice user]")
        .value_name("FILE");
    command.add_flag("--json", given->json, "print a JSON object");
    command.add_flag("--write-test", given->write_test,
                     "time a small write to each share of this host, to a file without a name");
    command.on_call([given] { run_doctor(*given); });
}

}  // namespace sluice::cli
