#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/cli/fat/image_options.hpp"
#include "sluice/smb/wire/message/negotiate_contexts.hpp"

namespace sluice::cli {

/// A share as the command line or the configuration file names it.
struct share_options {
    std::string name;  // empty: the folder's
    std::string path;
    std::string comment;
    bool read_only = false;
    bool encrypt = false;
    bool hidden = false;
    bool offloads = false;  // no call of its file system runs on an event loop
    std::vector<std::string> users;
    image_options image;  // of a disk image
};

/// A year.
inline constexpr unsigned session_lifetime_minutes_max = 525'600;

inline constexpr unsigned loops_max = 64;

/// What `sluice serve` was told.
struct serve_options {
    std::vector<share_options> shares;
    std::string name;
    std::vector<std::string> listen;
    std::vector<std::string> advertise;  // none: the addresses this machine has
    std::uint16_t port = 0;              // 0: 445 if allowed, else 1445
    std::vector<std::string> users;
    std::string users_file;
    std::string shared_locks;   // empty: no other server serves these folders
    std::string status_socket;  // empty: in the account's runtime folder
    std::string metrics;        // [ADDRESS:]PORT; empty: none
    bool read_only = false;
    bool encrypt = false;
    bool no_signing = false;
    std::vector<std::string> signing_algorithms;  // names or comma lists; none: the server's default
    bool guest = false;
    bool impersonate = false;
    bool offload = false;  // all folders
    bool verbose = false;
    bool confines = true;
    std::vector<std::string> confine_to;  // in addition to the shares and own files
    unsigned session_lifetime = 0;        // minutes; 0: unlimited
    unsigned loops = 0;                   // 0: as many as there are processors
};

/// A share of the form PATH or NAME=PATH.
[[nodiscard]] share_options parse_share(const std::string& text);

/// The algorithms that the texts, each a name or a comma list, name; in their order.
/// Errors: the text names the value, the rule and the remedy if a name is unknown or there is none.
[[nodiscard]] std::expected<std::vector<smb::wire::signing_algorithm>, std::string> signing_algorithms_of(
    const std::vector<std::string>& texts);

/// Adds what a configuration file says; what the command line said comes first. On failure the text says
/// which line is wrong, and why.
[[nodiscard]] std::expected<void, std::string> read_configuration(const std::string& path,
                                                                  serve_options& options);

}  // namespace sluice::cli
