#include "sluice/cli/client_settings/host_settings.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <system_error>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/descriptor.hpp"
#include "sluice/cli/serve/table_reader.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t file_bytes_max = 1U << 20;
constexpr unsigned port_max = 65'535;
constexpr std::string_view default_key = "default";
constexpr std::string_view hosts_key = "host";

using text_result = std::expected<std::string, std::string>;

[[nodiscard]] std::unexpected<std::string> system_problem(const std::string& path, std::string_view call) {
    return std::unexpected(fmt::format("{}: {}: {}", path, call, std::generic_category().message(errno)));
}

// Returns the content; empty if the file does not exist. The rules are checked on the open file,
// so that it cannot be replaced before it is read.
[[nodiscard]] text_result content_of(const std::string& path) {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (not file.is_open()) {
        if (errno == ENOENT or errno == ENOTDIR) return {};
        return system_problem(path, "open");
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return system_problem(path, "fstat");
    if (not S_ISREG(status.st_mode)) return std::unexpected(path + ": not a regular file");
    const bool is_own = status.st_uid == ::geteuid() or status.st_uid == 0;
    if (not is_own or (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return std::unexpected(
            fmt::format("{}: other accounts can change the file, and so the programs that it runs; use chown "
                        "and chmod go-w",
                        path));
    std::string content;
    std::array<char, 4096> part;
    while (content.size() <= file_bytes_max) {
        const ssize_t count = ::read(file.get(), part.data(), part.size());
        if (count < 0 and errno == EINTR) continue;
        if (count < 0) return system_problem(path, "read");
        if (count == 0) return content;
        content.append(part.data(), static_cast<std::size_t>(count));
    }
    return std::unexpected(path + ": the file has more than 1 MiB");
}

[[nodiscard]] bool is_elsewhere(std::string_view) {
    return false;
}

void check_version(table_reader& reader) {
    const toml::node* const node = reader.find("version");
    if (node == nullptr or node->value<std::int64_t>() == 1) return;
    reader.refuse(*node, "unsupported version; this program supports version 1; use a newer sluice");
}

// For password-file: the working directory of a command is anywhere.
[[nodiscard]] std::string validate_path(const std::string& text) {
    return text.starts_with("/") or text.starts_with("~/")
               ? ""
               : "use an absolute path, or one that begins with ~/";
}

[[nodiscard]] std::string with_home(std::string path) {
    const char* const home = std::getenv("HOME");
    if (path.starts_with("~/") and home != nullptr) path.replace(0, 1, home);
    return path;
}

// Reads the table of a server.
void read_host(const toml::table& table, const std::string& place, host_settings& into,
               std::vector<setting_problem>& problems) {
    table_record record;
    table_reader reader(table, place, record, problems);
    reader.take("address", into.address);
    reader.take_number("port", into.port, port_max);
    reader.take("user", into.user);
    reader.take("domain", into.domain);
    reader.take("password-file", into.password_file, validate_path);
    into.password_file = with_home(std::move(into.password_file));
    reader.take("password-command", into.password_command);
    reader.take("encrypt", into.encrypts);
    reader.refuse_unknown(is_elsewhere, "");
    if (not into.password_file.empty() and not into.password_command.empty())
        reader.refuse(*table.get("password-command"), "use either password-file or password-command");
    const bool has_password = not into.password_file.empty() or not into.password_command.empty();
    // Without this rule, the user of a URL would be logged on with the password of another one.
    if (has_password and into.user.empty())
        reader.refuse(table, "a password without a user; add user = \"NAME\"");
}

// Replaces `found` by the settings of `host`, if the table has them.
void read_hosts(const toml::table& hosts, std::string_view host, table_reader& reader, host_settings& found,
                std::vector<setting_problem>& problems) {
    std::set<std::string> known;
    for (const auto& [name, one] : hosts) {
        if (not known.insert(fold(std::string(name.str()))).second)
            reader.refuse(one, fmt::format("[host.{}] occurs twice, because case is ignored", name.str()));
        const toml::table* const table = one.as_table();
        if (table == nullptr) {
            reader.refuse(one, fmt::format("'{}' must be a table, as in [host.NAME]", name.str()));
            continue;
        }
        host_settings settings;
        read_host(*table, fmt::format("[host.{}]: ", name.str()), settings, problems);
        if (fold(std::string(name.str())) == fold(std::string(host))) found = std::move(settings);
    }
}

// Reads all tables, so that an error in any is found. Returns the settings of `host`.
[[nodiscard]] host_settings read_tables(const toml::table& top, std::string_view host,
                                        std::vector<setting_problem>& problems) {
    table_record record;
    table_reader reader(top, "", record, problems);
    check_version(reader);
    host_settings found;
    if (const toml::node* const node = reader.find(default_key)) {
        if (const toml::table* const table = node->as_table())
            read_host(*table, "[default]: ", found, problems);
        else
            reader.refuse(*node, "'default' must be a table, as in [default]");
    }
    const toml::node* const hosts = reader.find(hosts_key);
    if (hosts != nullptr and not hosts->is_table())
        reader.refuse(*hosts, "'host' must be a table, as in [host.NAME]");
    else if (hosts != nullptr)
        read_hosts(*hosts->as_table(), host, reader, found, problems);
    reader.refuse_unknown(is_elsewhere, "");
    return found;
}

}  // namespace

std::string client_settings_path() {
    const char* const configured = std::getenv("XDG_CONFIG_HOME");
    if (configured != nullptr and *configured == '/') return std::string(configured) + "/sluice/client.toml";
    const char* const home = std::getenv("HOME");
    return home != nullptr and * home == '/' ? std::string(home) + "/.config/sluice/client.toml" : "";
}

std::expected<host_settings, std::string> settings_of_host(const std::string& path, std::string_view host) {
    if (path.empty()) return {};
    const auto content = content_of(path);
    if (not content) return std::unexpected(content.error());
    try {
        const toml::table table = toml::parse(*content, path);
        std::vector<setting_problem> problems;
        host_settings found = read_tables(table, host, problems);
        if (problems.empty()) return found;
        return std::unexpected(fmt::format("{}: {}", path, problems.front().text));
    } catch (const toml::parse_error& wrong) {
        return std::unexpected(fmt::format("{}: line {}: {}", path, wrong.source().begin.line,
                                           toml_problem(wrong.description())));
    }
}

}  // namespace sluice::cli
