// sluice config: checks, shows and imports the configuration of sluice serve.

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/config/checks.hpp"
#include "sluice/cli/config/effective_settings.hpp"
#include "sluice/cli/config/findings.hpp"
#include "sluice/cli/config/import.hpp"
#include "sluice/cli/config/show.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/serve/configuration_file.hpp"
#include "sluice/cli/serve/serve_command_line.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

struct config_arguments {
    std::string file;
    bool as_json = false;
    serve_arguments given;  // of show: options of the command line
};

[[nodiscard]] std::string file_of(const config_arguments& arguments) {
    return arguments.file.empty() ? default_configuration_path() : arguments.file;
}

// Returns "1 error, 2 warnings".
[[nodiscard]] std::string count_text(const findings& found) {
    const auto counted = [](std::size_t count, const char* what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    return counted(found.errors(), "error") + ", " + counted(found.warnings(), "warning");
}

// Adds the errors of the file. Returns whether it can be checked further.
[[nodiscard]] bool add_problems(const serve_options& options, findings& found) {
    for (const setting_problem& each : options.record->problems) {
        // The place is already in the text.
        const std::string place = fmt::format("line {}: ", each.line);
        found.add_error(each.line, each.text.starts_with(place) ? each.text.substr(place.size()) : each.text);
    }
    if (options.record->problems.size() == configuration_record::problems_max)
        found.add_error(0, "there may be more errors; correct these first");
    return options.record->problems.empty();
}

void check(const config_arguments& arguments) {
    const std::string file = file_of(arguments);
    serve_options options;
    findings found(file);
    const auto read = read_configuration(file, options);
    const bool is_read = read.has_value();
    if (not is_read and options.record->problems.size() == 1 and options.record->problems.front().line == 0)
        fail(read.error());  // the file cannot be read
    bool is_complete = add_problems(options, found);
    if (is_complete and options.shares.empty()) {
        found.add_error(0, "no shares; add a table [[share]] with a path or a referral");
        is_complete = false;
    }
    if (is_complete) {
        const auto completed = complete_shares(options, file);
        if (not completed) fail(completed.error());
        check_shares(options, found);
        check_users(options, found);
        check_server(options, found);
    }
    const std::size_t shares = options.shares.size();
    const std::string summary = fmt::format("{}: {}, {} share{}\n", terminal_text(file), count_text(found),
                                            shares, shares == 1 ? "" : "s");
    const bool is_valid = found.errors() == 0;
    std::move(found).print();
    fmt::print("{}", summary);
    if (not is_valid) leave(exit_code::failure);
}

void show(const config_arguments& arguments, const help_page& page) {
    const std::string file = file_of(arguments);
    serve_options given = arguments.given.options;
    given.confines = not arguments.given.no_confinement;
    const auto options = with_file(std::move(given), file);
    if (not options)
        fail(fmt::format("{}; run 'sluice config check' for all errors of the file", options.error()));
    const effective_configuration all = effective_settings(*options, page);
    fmt::print("{}", arguments.as_json ? shown_json(all, file) + "\n" : shown_text(all, file));
}

void add_file(command_syntax command, config_arguments& arguments) {
    command.add_option("FILE", arguments.file,
                       "configuration file [default: ~/.config/sluice/sluice.toml; for root: "
                       "/etc/sluice/sluice.toml]");
}

void add_check(command_syntax config) {
    const auto arguments = std::make_shared<config_arguments>();
    const command_syntax command =
        config.add_subcommand("check", "report all errors of a configuration file, and what it refers to")
            .example("sluice config check /etc/sluice/sluice.toml");
    add_file(command, *arguments);
    command.on_call([arguments] { check(*arguments); });
}

void add_show(command_syntax config) {
    const auto arguments = std::make_shared<config_arguments>();
    const command_syntax command =
        config.add_subcommand("show", "print the settings in effect and where each comes from")
            .usage("[FILE]")
            .example("sluice config show --json")
            .example("sluice config show sluice.toml --port 1445");
    add_file(command, *arguments);
    command.add_flag("--json", arguments->as_json, "print a JSON document");
    declare_serve_settings(command, arguments->given);
    command.on_call([arguments, command] {
        for (const std::string& user : arguments->given.options.users)
            if (const std::string rule = validate_user(user); not rule.empty())
                refuse_usage("invalid value for --user: " + rule);  // it may contain a password
        show(*arguments, command.page());
    });
}

void add_import(command_syntax config) {
    const auto how = std::make_shared<config_import>();
    const command_syntax command =
        config.add_subcommand("import", "convert the configuration of Samba")
            .example("sluice config import /etc/samba/smb.conf --output sluice.toml");
    command.add_option("FILE", how->file, "configuration of Samba, such as /etc/samba/smb.conf").required();
    command
        .add_option("--output", how->output,
                    "new file for the configuration of sluice [default: standard output]")
        .value_name("FILE");
    command.on_call([how] { import_configuration(*how); });
}

}  // namespace

void add_config(command_syntax app) {
    const command_syntax config =
        app.add_subcommand("config", "check, show and import the configuration of the server")
            .group("Server")
            .example("sluice config check");
    config.require_subcommands(1);
    add_check(config);
    add_show(config);
    add_import(config);
}

}  // namespace sluice::cli
