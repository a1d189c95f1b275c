// sluice user: who may log on.

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <string>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/password.hpp"
#include "sluice/cli/user_edits.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {
namespace {

using smb::server::user_database;

struct user_arguments {
    std::string name;
    std::string file;
};

[[noreturn]] void fail(const std::string& why) {
    fmt::print(stderr, "sluice user: {}\n", why);
    leave(exit_code::failure);
}

[[nodiscard]] std::unique_ptr<user_database> open_database(const user_arguments& arguments) {
    auto users = user_database::open(arguments.file.empty() ? user_database::default_path() : arguments.file,
                                     exclude_editors);
    if (not users) fail(users.error().message());
    return *std::move(users);
}

void set_password(const user_arguments& arguments, bool is_new) {
    const auto users = open_database(arguments);
    if (not user_database::is_valid_name(arguments.name))
        fail(fmt::format("'{}' cannot be a name: 1 to 64 characters, none of :\"/\\[]|<>+=;,?*@",
                         arguments.name));
    if (users->contains(arguments.name) == is_new)
        fail(is_new ? fmt::format("'{0}' exists already; sluice user passwd {0} changes the password",
                                  arguments.name)
                    : fmt::format("there is no '{0}'; sluice user add {0} makes one", arguments.name));
    const secret_text password = ask_password("Password for " + arguments.name);
    if (password.view().empty()) fail("an empty password protects nothing; the users file was not changed");
    const auto stored = users->set(arguments.name, password.view());
    if (not stored) fail(stored.error().message());
    fmt::print("{} {}\n", is_new ? "added" : "changed", arguments.name);
}

void remove(const user_arguments& arguments) {
    const auto removed = open_database(arguments)->remove(arguments.name);
    if (not removed and removed.error() == std::errc::no_such_file_or_directory)
        fail(fmt::format("there is no '{}'; sluice user list shows who there is", arguments.name));
    if (not removed) fail(removed.error().message());
    fmt::print("removed {}\n", arguments.name);
}

}  // namespace

void add_user(command_syntax app) {
    const command_syntax user = app.add_subcommand("user", "say who may log on to the server");
    user.require_subcommands(1);
    const auto arguments = std::make_shared<user_arguments>();
    user.add_option("--users-file", arguments->file, "the file they are in");
    const auto add = [&](const char* name, const char* what, auto action) {
        const command_syntax command = user.add_subcommand(name, what);
        command.add_option("NAME", arguments->name, "the user").required();
        command.on_call(action);
    };
    add("add", "add a user; asks for the password, or takes it from standard input",
        [arguments] { set_password(*arguments, true); });
    add("passwd", "change a password", [arguments] { set_password(*arguments, false); });
    add("remove", "remove a user", [arguments] { remove(*arguments); });
    user.add_subcommand("list", "list the users").on_call([arguments] {
        for (const std::string& name : open_database(*arguments)->names())
            fmt::print("{}\n", name);
    });
}

}  // namespace sluice::cli
