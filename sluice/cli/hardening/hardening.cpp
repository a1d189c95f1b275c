#include "sluice/cli/hardening/hardening.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/fat/image/image_stack.hpp"
#include "sluice/cli/hardening/memory_protection.hpp"
#include "sluice/cli/hardening/privileges.hpp"
#include "sluice/cli/hardening/system_call_filter.hpp"
#include "sluice/cli/serve/share_snapshots.hpp"
#include "sluice/cli/status/status_socket.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// Files that are replaced by renaming, or created and removed, are accessed through their
// directory: that of the name, and that of the file if the name is a symbolic link.
void allow_directories_of(file_confinement& files, const std::string& file, tree_access how) {
    std::error_code unknown;
    files.allow(fs::absolute(file, unknown).parent_path().string(), how);
    const fs::path resolved = fs::canonical(file, unknown);
    if (not unknown) files.allow(resolved.parent_path().string(), how);
}

[[nodiscard]] bool is_directory(const std::string& path) {
    std::error_code unknown;
    return fs::is_directory(path, unknown);
}

// Libraries of the system read these after startup: modules of OpenSSL and of the C library, time
// zones, the state of processes (own descriptors; other servers with --shared-locks) and of network
// interfaces.
constexpr const char* read_by_libraries[] = {
    "/usr",     "/lib",           "/lib64",        "/etc/ssl",
    "/etc/pki", "/etc/localtime", "/etc/timezone", "/etc/ld.so.cache",
    "/proc",    "/sys/class/net", "/sys/devices"};

void allow_share(file_confinement& files, const share_options& share, bool read_only) {
    const tree_access how = read_only ? tree_access::read : tree_access::write;
    if (is_directory(share.path)) return files.allow(share.path, how);
    // The lock, journal and overlay of an image are created and removed next to it.
    const std::string image = parse_image(share.path).file;
    files.allow(image, tree_access::write);
    std::error_code unknown;
    if (fs::is_regular_file(image, unknown)) allow_directories_of(files, image, tree_access::write);
    if (not share.image.overlay.empty()) allow_directories_of(files, share.image.overlay, tree_access::write);
}

}  // namespace

void server_hardening::apply(const serve_options& options, const std::string& configuration,
                             const std::string& users) {
    const auto skip = [&](const char* name, const char* why) {
        measures_.push_back({.name = name, .inactive_because = why});
    };
    if (not options.confines) {
        if (options.impersonate) ENSURE(obey_limits_of_accounts(), "a process may drop its own capabilities");
        skip("hardening", "--no-confinement was given");
        return;
    }
    measures_.push_back(protect_memory());
    measures_.push_back(drop_privileges({.impersonates = options.impersonate, .has_quotas = options.quotas}));
    if (options.impersonate) {
        measures_.push_back(filter_system_calls());
        // Account databases of the system may be anywhere, and the permissions of each user apply.
        return skip("access to its own files only",
                    "--impersonate needs the account databases of the system");
    }
    for (const char* const each : read_by_libraries)
        files_.allow(each, tree_access::read);
    for (const share_options& share : options.shares) {
        if (not share.referral.empty()) continue;
        allow_share(files_, share, share.read_only or options.read_only);
        if (const auto snapshots = open_snapshot_directory(options, share))
            files_.allow(*snapshots, tree_access::read);
    }
    for (const std::string& each : options.confine_to)
        files_.allow(each, tree_access::write);
    if (not configuration.empty()) allow_directories_of(files_, configuration, tree_access::read);
    allow_directories_of(files_, users, tree_access::read);
    if (not options.shared_locks.empty())
        allow_directories_of(files_, options.shared_locks, tree_access::write);
    if (options.status_socket.empty()) {
        (void)make_status_directory();  // observers::open reports why it cannot be used
        files_.allow(status_directory(), tree_access::write);
    } else {
        allow_directories_of(files_, options.status_socket, tree_access::write);
    }
    constexpr std::string_view unix_prefix = "unix:";
    if (options.web.starts_with(unix_prefix))  // the socket is removed at the end
        allow_directories_of(files_, options.web.substr(unix_prefix.size()), tree_access::write);
    measures_.push_back(files_.enforce());
    confines_files_ = measures_.back().is_active();
    // Landlock also denies execve(2), mounts and tracing. Using both would slow down every system
    // call. With the privilege that quotas need, Landlock alone could be undone.
    if (options.quotas or not measures_.back().is_active()) measures_.push_back(filter_system_calls());
}

std::string server_hardening::why_not(const share_options& share, bool read_only) const {
    const std::string path = is_directory(share.path) ? share.path : parse_image(share.path).file;
    std::error_code unknown;
    if (not fs::exists(path, unknown)) return {};  // opening it reports why
    const bool needs_to_write = not read_only;
    if (files_.covers(path, needs_to_write ? tree_access::write : tree_access::read)) return {};
    if (files_.covers(path, tree_access::read))
        return path +
               ": cannot become writable, because the server has confined itself to reading it; restart the "
               "server";
    return why_not_read(path);
}

std::string server_hardening::why_not_read(const std::string& directory) const {
    std::error_code unknown;
    if (not fs::exists(directory, unknown)) return {};  // opening it reports why
    if (files_.covers(directory, tree_access::read)) return {};
    return directory +
           ": not accessible, because the server has confined itself to its shares; restart the server, or "
           "run it with "
           "--confine-to";
}

std::string hardening_text(const std::vector<hardening_measure>& measures) {
    std::string active;
    std::string rest;
    for (const hardening_measure& each : measures) {
        if (each.is_active())
            active += (active.empty() ? "" : ", ") + std::string(each.name);
        else
            rest += fmt::format("            not active: {}: {}\n", each.name, each.inactive_because);
    }
    return fmt::format("Hardening   {}\n{}", active.empty() ? "none" : active, rest);
}

}  // namespace sluice::cli
