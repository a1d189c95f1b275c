#include "sluice/cli/serve/serve_command_line.hpp"

#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/status/web/web_address.hpp"

namespace sluice::cli {
namespace {

void add_operands(command_syntax command, serve_arguments& given) {
    command.add_option(
        "PATH", given.paths,
        "directory or FAT disk image to share, or NAME=PATH (repeatable); the name defaults to "
        "the last component of PATH");
    command.add_option("--config", given.configuration, "read settings and shares from a TOML file")
        .value_name("FILE");
}

void add_general_options(command_syntax command, serve_arguments& given) {
    command
        .add_option("--loops", given.options.loops, "number of I/O threads; 0 means one per CPU [default: 0]")
        .between(0U, loops_max);
    command.add_flag("--offload", given.options.offload,
                     "run all file system calls outside the event loops, for local disks that can hang");
}

void add_access_options(command_syntax command, serve_options& options) {
    constexpr auto* heading = "Access";
    command
        .add_option("--user", options.users,
                    "allow only these users to log on: a user from the users file, or one with the given "
                    "password for this run (repeatable) [default: all in the users file]")
        .one_value_each_time()
        .value_name("NAME[%PASSWORD]")
        .group(heading);
    command
        .add_option("--users-file", options.users_file,
                    "users file [default: ~/.config/sluice/users; for root: /etc/sluice/users]")
        .value_name("FILE")
        .group(heading);
    command.add_flag("--read-only", options.read_only, "reject all changes").group(heading);
    command
        .add_option("--read-only-user", options.read_only_users,
                    "reject changes by this user, or the users of the group @NAME; 'guest' means anonymous "
                    "users (repeatable)")
        .one_value_each_time()
        .check(validate_user_entry)
        .value_name("NAME")
        .group(heading);
    command
        .add_flag("--hide-unreadable", options.hide_unreadable,
                  "omit files from listings that the user may not read (access-based enumeration)")
        .group(heading);
    command
        .add_option("--auditor", options.auditors,
                    "let this user read and change audit lists, SACLs (repeatable)")
        .one_value_each_time()
        .check(validate_user_entry)
        .value_name("NAME")
        .group(heading);
    command
        .add_option("--administrator", options.administrators,
                    "let this user list and end the sessions and open files of all users from a client, as "
                    "in Computer Management of Windows (repeatable)")
        .one_value_each_time()
        .check(validate_user_entry)
        .value_name("NAME")
        .group(heading);
    command
        .add_flag("--guest", options.guest,
                  "accept anonymous logons, unsigned and unencrypted; guests can only read")
        .group(heading);
    command
        .add_flag("--guest-write", options.guest_write,
                  "with --guest, let guests change files on all shares without a setting of their own")
        .group(heading);
    command
        .add_flag("--impersonate", options.impersonate,
                  "access files as the Unix account of the user (requires root) [default: the account of the "
                  "server]")
        .group(heading);
    command
        .add_flag("--quotas", options.quotas,
                  "let clients query quotas of the file systems, and administrators set them; as root, keeps "
                  "CAP_SYS_ADMIN")
        .group(heading);
    command
        .add_option("--session-lifetime", options.session_lifetime,
                    "require clients to authenticate again after MINUTES; 0 means never [default: 0]")
        .value_name("MINUTES")
        .between(0U, session_lifetime_minutes_max)
        .group(heading);
}

void add_protection_options(command_syntax command, serve_options& options, bool& no_confinement) {
    constexpr auto* heading = "Protection";
    command.add_flag("--encrypt", options.encrypt, "require encryption [default: on request]").group(heading);
    command.add_flag("--no-signing", options.no_signing, "do not require signing").group(heading);
    command
        .add_option("--signing-algorithms", options.signing_algorithms,
                    "signing algorithms for SMB 3.1.1 in order of preference; aes-cmac permits more than two "
                    "connections per session (repeatable) [default: aes-gmac,aes-cmac,hmac-sha256]")
        .one_value_each_time()
        .check(validate_signing_algorithms)
        .value_name("LIST")
        .group(heading);
    command
        .add_option("--confine-to", options.confine_to,
                    "directory that the process may access besides its shares, for shares that SIGHUP adds "
                    "(repeatable)")
        .one_value_each_time()
        .value_name("DIR")
        .group(heading);
    command
        .add_flag("--no-confinement", no_confinement,
                  "do not restrict the process to its own files, system calls, and privileges")
        .group(heading);
}

void add_network_options(command_syntax command, serve_options& options, bool& no_discovery) {
    constexpr auto* heading = "Network";
    command.add_option("--name", options.name, "NetBIOS name of the server [default: that of the host]")
        .check(validate_server_name)
        .value_name("NAME")
        .group(heading);
    command.add_option("--port", options.port, "TCP port [default: 445; 1445 if 445 is unavailable]")
        .between(0U, port_max)
        .value_name("PORT")
        .group(heading);
    command.add_option("--listen", options.listen, "listen on this address (repeatable) [default: all]")
        .one_value_each_time()
        .check(validate_listener)
        .value_name("ADDRESS[:PORT]")
        .group(heading);
    command
        .add_option("--advertise", options.advertise,
                    "address to announce for multichannel, or 'none' (repeatable) [default: all addresses of "
                    "this host]")
        .one_value_each_time()
        .check(validate_advertised_addresses)
        .value_name("ADDRESS[,speed=RATE][,rss][,index=N]")
        .group(heading);
    command
        .add_option("--allowed-host", options.allowed_hosts,
                    "close connections from all other addresses (repeatable) [default: accept all]")
        .one_value_each_time()
        .check(validate_host_rule)
        .value_name("ADDRESS[/BITS]")
        .group(heading);
    command
        .add_option("--denied-host", options.denied_hosts,
                    "close connections from this address or network, even if it is allowed (repeatable)")
        .one_value_each_time()
        .check(validate_host_rule)
        .value_name("ADDRESS[/BITS]")
        .group(heading);
    command
        .add_option("--compression", options.compression,
                    "compress messages of SMB 3.1.1 for clients that request it: on, off [default: off]")
        .one_of(std::vector<std::string>{"off", "on"})
        .value_name("off|on")
        .group(heading);
    command
        .add_flag("--no-discovery", no_discovery,
                  "do not appear in the network view of other computers [default: on private networks]")
        .group(heading);
}

void add_observation_options(command_syntax command, serve_options& options) {
    constexpr auto* heading = "Observability";
    command
        .add_option("--status-socket", options.status_socket,
                    "socket for 'sluice status' [default: PORT.sock in the runtime directory]")
        .value_name("PATH")
        .group(heading);
    command
        .add_option("--metrics", options.metrics,
                    "serve Prometheus metrics over HTTP [default address: 127.0.0.1]")
        .check(validate_metrics)
        .value_name("[ADDRESS:]PORT")
        .group(heading);
    command
        .add_option("--web", options.web,
                    "serve a page about the server over HTTP, on a loopback address or a Unix socket "
                    "[default address: 127.0.0.1]")
        .check(validate_web)
        .value_name("[ADDRESS:]PORT|unix:PATH")
        .group(heading);
    command
        .add_option("--web-token-file", options.web_token_file,
                    "let the page end sessions and close files, for users who enter the token in FILE (mode "
                    "0600, at least 16 characters)")
        .value_name("FILE")
        .group(heading);
    command.add_flag("--verbose", options.verbose, "log failed requests as well").group(heading);
}

}  // namespace

void declare_serve_options(command_syntax command, serve_arguments& into) {
    add_operands(command, into);
    declare_serve_settings(command, into);
    add_image_options(command, into.image);
    command.add_flag("--limits", into.wants_limits, "print all resource limits of the server and exit");
}

void declare_serve_settings(command_syntax command, serve_arguments& into) {
    add_general_options(command, into);
    add_access_options(command, into.options);
    add_protection_options(command, into.options, into.no_confinement);
    add_network_options(command, into.options, into.no_discovery);
    command
        .add_option("--shared-locks", into.options.shared_locks,
                    "share locks and open modes with other servers on this host that use the same FILE; "
                    "disables client caching")
        .value_name("FILE")
        .group("Files");
    command
        .add_option(
            "--short-names", into.options.short_names,
            "give files in directories short names (8.3), too, as in FAT images: on, off [default: off]")
        .one_of(std::vector<std::string>{"off", "on"})
        .value_name("off|on")
        .group("Files");
    command
        .add_option("--previous-versions", into.options.previous_versions,
                    "show the snapshots whose paths match, in UTC, as previous versions, as in "
                    ".snapshots/%Y-%m-%d_%H%M; relative to the share")
        .check(validate_previous_versions)
        .value_name("PATTERN")
        .group("Files");
    command
        .add_option("--directory-leases", into.options.directory_leases,
                    "let clients cache directories: on, off [default: on]")
        .one_of(std::vector<std::string>{"off", "on"})
        .value_name("off|on")
        .group("Files");
    command
        .add_option("--continuous-availability", into.options.continuous_availability,
                    "let clients keep files open while the server is started again (persistent handles): "
                    "on, off [default: off]")
        .one_of(std::vector<std::string>{"off", "on"})
        .value_name("off|on")
        .group("Files");
    command
        .add_option("--state-directory", into.options.state_directory,
                    "directory for the records of persistent handles [default: $XDG_RUNTIME_DIR/sluice; for "
                    "root: /run/sluice]")
        .value_name("DIR")
        .group("Files");
    add_observation_options(command, into.options);
}

}  // namespace sluice::cli
