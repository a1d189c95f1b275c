// sluice user: manages the users that may log on.

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <string>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/password.hpp"
#include "sluice/cli/user_edits.hpp"
#include "sluice/cli/user_import.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/auth/logon/nt_hash.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {
namespace {

using smb::server::user_database;

struct user_arguments {
    std::string name;
    std::string file;
};

[[nodiscard]] std::unique_ptr<user_database> open_database(const user_arguments& arguments) {
    auto users = user_database::open(arguments.file.empty() ? user_database::default_path() : arguments.file,
                                     exclude_editors);
    if (not users) fail(users.error().message());
    return *std::move(users);
}

void set_password(const user_arguments& arguments, bool is_new) {
    const auto users = open_database(arguments);
    const std::string command = user_command(arguments.file);
    if (users->contains(arguments.name) == is_new)
        fail(is_new ? fmt::format("user '{0}' exists; run '{1} passwd {0}' to change the password",
                                  arguments.name, command)
                    : unknown_user(arguments.name, arguments.file));
    const secret_text password = ask_password("Password for " + arguments.name);
    if (password.view().empty()) fail("empty passwords are not allowed; no changes made");
    if (not smb::auth::nt_hash::of_password(password.view())) fail("the password is not UTF-8");
    const auto stored = users->set(arguments.name, password.view());
    if (not stored) fail(stored.error().message());
    fmt::print("{} {}\n", is_new ? "added" : "changed", arguments.name);
}

void remove(const user_arguments& arguments) {
    const auto removed = open_database(arguments)->remove(arguments.name);
    if (not removed and removed.error() == std::errc::no_such_file_or_directory)
        fail(fmt::format("unknown user '{}'; run '{} list' to list all users", arguments.name,
                         user_command(arguments.file)));
    if (not removed) fail(removed.error().message());
    fmt::print("removed {}\n", arguments.name);
}

}  // namespace

void add_user(command_syntax app) {
    const command_syntax user = app.add_subcommand("user", "manage the users of the server")
                                    .group("Server")
                                    .example("sluice user add bob")
                                    .example("pwgen 20 1 | tee bob.txt | sluice user add bob");
    user.require_subcommands(1);
    const auto arguments = std::make_shared<user_arguments>();
    user.add_option("--users-file", arguments->file,
                    "users file [default: ~/.config/sluice/users; for root: /etc/sluice/users]")
        .value_name("FILE");
    const auto add = [&](const char* name, const char* what, const char* example, auto action) {
        const command_syntax command = user.add_subcommand(name, what).example(example);
        command.add_option("NAME", arguments->name, "user name, case-insensitive")
            .required()
            .check(validate_user_name);
        command.on_call(action);
    };
    add("add", "add a user; prompts for a password, or reads it from standard input", "sluice user add bob",
        [arguments] { set_password(*arguments, true); });
    add("passwd", "change the password of a user", "sluice user passwd bob",
        [arguments] { set_password(*arguments, false); });
    add("remove", "remove a user", "sluice user remove bob", [arguments] { remove(*arguments); });
    const auto how = std::make_shared<user_import>();
    const command_syntax importing =
        user.add_subcommand("import", "add users from Samba, with their passwords")
            .example("sudo pdbedit -L -w | sudo sluice user import -")
            .example("sluice user import --dry-run smbpasswd");
    importing
        .add_option("FILE", how->file,
                    "smbpasswd file, or the output of 'pdbedit -L -w'; - for standard input")
        .required();
    importing.add_flag("--replace", how->replaces, "replace the passwords of users that exist");
    importing.add_flag("--dry-run", how->only_prints, "print what would be done, without changes");
    importing.on_call([arguments, how] { import_users(*open_database(*arguments), *how); });
    user.add_subcommand("list", "list all users").example("sluice user list").on_call([arguments] {
        for (const std::string& name : open_database(*arguments)->names())
            fmt::print("{}\n", name);
    });
}

}  // namespace sluice::cli
