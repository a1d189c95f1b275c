#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/config/checks.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/status/metrics_address.hpp"

namespace sluice::cli {
namespace {

constexpr std::uint16_t usual_port = 445;

void check_ports(const serve_options& options, findings& to) {
    const table_record& table = options.record->server;
    const std::uint16_t port = options.port == 0 ? usual_port : options.port;
    std::map<std::string, std::string> known;
    for (const std::string& text : options.listen) {
        const auto address = listener_address(text, port);
        ENSURE(address.has_value(), "the reader accepts only addresses");
        const auto [first, is_new] = known.emplace(address->text(), text);
        if (not is_new and address->port() != 0)
            to.add_error(line_of(table, "listen", text),
                         fmt::format("'{}' in listen is the same address as '{}'; remove one of them", text,
                                     first->second));
    }
    if (options.metrics.empty()) return;
    const auto metrics = metrics_address(options.metrics);
    const bool is_taken = metrics and known.empty() and metrics->port() == port;
    if (is_taken or (metrics and known.contains(metrics->text())))
        to.add_error(line_of(table, "metrics"),
                     fmt::format("metrics has the port {} of the server; use another one", metrics->port()));
}

void check_directory_of(const table_record& table, std::string_view key, const std::string& path,
                        findings& to) {
    std::error_code unknown;
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (path.empty() or parent.empty() or std::filesystem::is_directory(parent, unknown)) return;
    to.add_error(line_of(table, key),
                 fmt::format("{} '{}': its directory does not exist; create it", key, path));
}

void check_paths(const serve_options& options, findings& to) {
    const table_record& table = options.record->server;
    check_directory_of(table, "shared-locks", options.shared_locks, to);
    check_directory_of(table, "status-socket", options.status_socket, to);
    std::error_code unknown;
    for (const std::string& path : options.confine_to)
        if (not std::filesystem::exists(path, unknown))
            to.add_error(line_of(table, "confine-to", path),
                         fmt::format("confine-to '{}': it does not exist; create it, or remove it from the "
                                     "list",
                                     path));
}

// A reader of the file knows the passwords in it, and a writer can share every directory.
void check_permissions(const serve_options& options, findings& to) {
    const std::string& path = options.record->path;
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 or not S_ISREG(status.st_mode)) return;
    const bool has_password =
        std::ranges::any_of(options.users, [](const std::string& user) { return user.contains('%'); });
    if (has_password and (status.st_mode & 0077) != 0)
        to.add_warning(line_of(options.record->server, "user"),
                       "the file has a password, and other accounts can read it; use chmod 600, or 'sluice "
                       "user add'");
    if ((status.st_mode & 0022) != 0) to.add_warning(0, "other accounts can change the file; use chmod go-w");
}

void check_combinations(const serve_options& options, findings& to) {
    const table_record& table = options.record->server;
    if (options.guest and options.encrypt)
        to.add_warning(line_of(table, "guest"),
                       "anonymous users cannot encrypt, so encrypt rejects them; remove guest or encrypt");
    if (options.impersonate and ::geteuid() != 0)
        to.add_warning(line_of(table, "impersonate"), "impersonate requires that root runs the server");
    if (options.no_signing and options.encrypt)
        to.add_warning(line_of(table, "no-signing"),
                       "no-signing has no effect with encrypt, because encrypted messages are authenticated");
    const auto is_guest = [](const std::string& name) {
        return equal_ignoring_case(std::string_view(name), std::string_view("guest"));
    };
    if (not options.guest and options.guest_write)
        to.add_warning(line_of(table, "guest-write"),
                       "guest-write has no effect without guest; set guest to accept anonymous users");
    for (std::size_t i = 0; not options.guest and i != options.shares.size(); ++i) {
        const share_options& share = options.shares[i];
        const auto warn_of = [&](std::string_view key, std::string_view what) {
            to.add_warning(line_of(options.record->shares[i], key),
                           fmt::format("share '{}': {} {} anonymous users, which the server rejects; set "
                                       "guest of the server to accept them",
                                       share.name, key, what));
        };
        if (std::ranges::any_of(share.read_only_users, is_guest)) warn_of("read-only-user", "names");
        if (std::ranges::any_of(share.write_users, is_guest)) warn_of("write-user", "names");
        if (not share.guest.empty() and share.guest != "off") warn_of("guest", "admits");
    }
}

}  // namespace

void check_server(const serve_options& options, findings& to) {
    check_ports(options, to);
    check_paths(options, to);
    check_permissions(options, to);
    check_combinations(options, to);
}

}  // namespace sluice::cli
