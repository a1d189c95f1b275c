#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/cli/fat/image/image_options.hpp"
#include "sluice/cli/serve/setting_records.hpp"
#include "sluice/cli/serve/share_ownership.hpp"
#include "sluice/cli/serve/user_groups.hpp"
#include "sluice/smb/server/session/user_list.hpp"
#include "sluice/vfs/host/creation_rules.hpp"
#include "sluice/vfs/host/name/name_patterns.hpp"
#include "sluice/vfs/host/recycle_rules.hpp"

namespace sluice::cli {

/// The rules of a share for its files, which only directories have.
struct share_file_rules {
    vfs::creation_rules created;        // the owner and mode of new files
    vfs::name_patterns hidden_names;    // with the attribute `hidden`
    vfs::name_patterns rejected_names;  // that do not exist for clients
    std::optional<vfs::recycle_rules> recycle;

    [[nodiscard]] bool operator==(const share_file_rules&) const = default;
};

/// The lists of users of a share, with the members of groups.
struct share_users {
    smb::server::user_list connect;
    smb::server::user_list read_only;
    smb::server::user_list write;
    smb::server::user_list audit;
};

/// A share from the command line or the configuration file.
struct share_options {
    std::string name;                   // empty: the name of the directory
    std::string path;                   // empty for a referral
    std::vector<std::string> referral;  // shares of other servers, in place of a path
    std::string comment;
    std::uint64_t size_limit = 0;  // bytes that clients see as the size; 0: the real one
    bool read_only = false;
    bool is_home = false;  // the setting `homes` gives it to a user
    bool encrypt = false;
    bool hidden = false;
    bool hide_unreadable = false;
    bool offloads = false;                // no call of its file system runs on an event loop
    std::string short_names;              // "on" or "off"; empty: as for all directories
    std::string previous_versions;        // a pattern, or "off"; empty: that of the server
    std::string continuous_availability;  // "on" or "off"; empty: as for all shares
    // Names, and groups as "@name"; "guest" in the second and third means guests.
    std::vector<std::string> users;
    std::vector<std::string> read_only_users;
    std::vector<std::string> write_users;
    std::vector<std::string> auditors;
    share_users expanded;  // these lists: set by expand_users()
    share_file_rules files;
    std::string guest;  // "off", "read", or "write"; empty: as for all shares
    std::vector<std::string> allowed_hosts;
    std::vector<std::string> denied_hosts;
    image_options image;  // for disk images only
};

/// A user that has no share of their own, although the setting `homes` gives users one.
struct user_without_home {
    std::string user;
    std::string why;  // with a remedy
};

/// One year.
inline constexpr unsigned session_lifetime_minutes_max = 525'600;

inline constexpr unsigned loops_max = 64;

inline constexpr unsigned port_max = 65'535;

/// The options of `sluice serve`.
struct serve_options {
    std::vector<share_options> shares;  // those of users, with is_home, come last
    std::string homes;                  // the directory of these; empty: users have none
    std::vector<user_without_home> without_homes;
    std::string name;
    std::vector<std::string> listen;
    std::vector<std::string> advertise;  // empty: the addresses of this machine
    std::uint16_t port = 0;              // 0: 445 if allowed, else 1445
    std::vector<std::string> users;
    std::string users_file;
    std::string shared_locks;    // empty: no other server serves these directories
    std::string status_socket;   // empty: in the runtime directory of the account
    std::string metrics;         // [ADDRESS:]PORT; empty: none
    std::string web;             // [ADDRESS:]PORT or unix:PATH; empty: no page
    std::string web_token_file;  // empty: the page changes nothing
    bool read_only = false;
    std::vector<std::string> read_only_users;  // in addition to those that a share names
    bool hide_unreadable = false;
    std::vector<std::string> auditors;  // in addition to those that a share names
    std::vector<std::string> administrators;
    bool encrypt = false;
    bool no_signing = false;
    // Names or comma lists; none: the server's default.
    std::vector<std::string> signing_algorithms;
    bool guest = false;
    bool guest_write = false;        // on all shares that do not have a setting of their own
    std::vector<user_group> groups;  // [groups], and the groups of the host that the lists name
    std::vector<std::string> users_without_groups;  // that were not looked up in those of the host
    std::vector<std::string> allowed_hosts;
    std::vector<std::string> denied_hosts;
    bool impersonate = false;
    bool quotas = false;
    bool offload = false;     // for all directories
    std::string short_names;  // for all directories: "on" or "off"; empty: off
    // For all directories: a pattern, relative to each if there are several; empty: none.
    std::string previous_versions;
    std::string directory_leases;         // "on" or "off"; empty: on
    std::string compression;              // of messages: "on" or "off"; empty: off
    std::string continuous_availability;  // for all shares: "on" or "off"; empty: off
    std::string state_directory;          // empty: the runtime directory of the account
    bool discovery = true;                // advertise the server on private networks
    bool verbose = false;
    bool confines = true;
    std::vector<std::string> confine_to;  // in addition to the shares and the files of the server
    unsigned session_lifetime = 0;        // minutes; 0: unlimited
    unsigned loops = 0;                   // 0: one per CPU
    // That shares name, for the configuration and all later ones. Never null.
    std::shared_ptr<named_accounts> accounts = std::make_shared<named_accounts>();
    std::shared_ptr<const configuration_record> record;  // null: there is no file
};

/// Returns where a share refers to, for people: "referral to //server/share".
[[nodiscard]] std::string referral_text(const share_options& share);

/// Parses a share of the form PATH or NAME=PATH.
[[nodiscard]] share_options parse_share(const std::string& text);

/// The largest configuration file.
inline constexpr std::size_t configuration_bytes_max = std::size_t{4} << 20;

/// All settings of a configuration file. The records have no values.
struct known_settings {
    table_record server;
    table_record share;
};
[[nodiscard]] const known_settings& all_settings();

/// Adds the settings of a configuration file; settings of the command line take precedence. Records
/// in `options.record` what it has read, and all errors of the file. Errors: a text with the line
/// and the reason of the first error. Blocks: for the file system.
[[nodiscard]] std::expected<void, std::string> read_configuration(const std::string& path,
                                                                  serve_options& options);
/// The same with the content of a file. Blocks: nothing.
[[nodiscard]] std::expected<void, std::string> read_configuration_text(std::string_view content,
                                                                       const std::string& path,
                                                                       serve_options& options);

}  // namespace sluice::cli
