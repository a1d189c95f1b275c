#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// The settings of one server in the file of the client. Empty or 0: not set.
struct host_settings {
    std::string address;  // to connect to, in place of the name in the URL
    std::uint16_t port = 0;
    std::string user;
    std::string domain;
    std::string password_file;
    std::vector<std::string> password_command;  // the program and its arguments
    bool encrypts = false;
};

/// Returns the path of the file: $XDG_CONFIG_HOME/sluice/client.toml if that is set, else
/// ~/.config/sluice/client.toml. Empty without a home directory.
/// Allocates: the path. Thread safety: not while another thread changes the environment.
[[nodiscard]] std::string client_settings_path();

/// Returns the settings of a server: those of `[host.NAME]`, whose name is compared without case,
/// and for the others those of `[default]`. A file that does not exist has none.
///
/// Errors: a text with the path and the line: a file that another account owns or can change,
/// because it names programs to run; one of more than 1 MiB; invalid TOML; unknown settings, also
/// in the tables of other servers.
/// Allocates: the content and the result. Blocks: reads the file. Complexity: linear in its size.
/// Thread safety: safe to call at any time.
[[nodiscard]] std::expected<host_settings, std::string> settings_of_host(const std::string& path,
                                                                         std::string_view host);

}  // namespace sluice::cli
