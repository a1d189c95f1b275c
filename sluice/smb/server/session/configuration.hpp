#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/server/report/server_bounds.hpp"
#include "sluice/smb/server/session/host_rules.hpp"
#include "sluice/smb/server/session/user_list.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/vfs/impersonated_volume.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"

namespace sluice::smb::server {

class handle_journal;

/// Whether a protection is used.
enum class protection : std::uint8_t {
    offered,   ///< if the client requests it
    required,  ///< clients without it are rejected
};

/// The access that guests and anonymous users have to a share.
enum class guest_access : std::uint8_t {
    none,   ///< they cannot connect to it
    read,   ///< they can change nothing
    write,  ///< as users
};

/// A directory or image as clients see it.
struct share_configuration {
    std::string name;                             // as in \\server\name; compared without case
    std::string comment;                          // shown next to the name in lists
    std::string source;                           // the directory or image; a reload compares it
    std::shared_ptr<vfs::volume> volume;          // of several shares, and after a reload, if
                                                  // it is the same image
    std::shared_ptr<vfs::snapshots> snapshots{};  // previous versions of the volume; null: none
    // In place of a volume: the shares of other servers that clients are referred to, as
    // \\server\share\path with one leading backslash; the preferred one first.
    std::vector<std::string> referral{};
    std::uint64_t size_limit_bytes = 0;  // that clients see; 0: that of the volume
    bool is_read_only = false;
    bool is_hidden = false;  // not in lists
    // Listings omit what their user may not read (access-based enumeration).
    bool hides_unreadable = false;
    protection encryption = protection::offered;
    /// Whether clients get persistent opens, which survive the server process ([MS-SMB2] 3.3.1.6,
    /// Share.IsCA). Then `journal` is that of the root of the volume.
    bool continuous_availability = false;
    std::shared_ptr<handle_journal> journal{};
    user_list users;            // that may connect; none: all that can log on
    user_list read_only_users;  // that may change nothing; "guest" are all guests
    user_list write_users;      // that may change files; none: all that are not in the list above
    user_list auditors;         // that may read and change audit lists (SACLs)
    guest_access guests = guest_access::read;
    host_rules hosts{};  // that clients may connect from
    // Of the volume: a reload with another number has changed the rejected names, or the owner and
    // mode of new files.
    std::uint64_t file_rules = 0;

    /// Returns whether `other` serves the same volume in the same way, so that a reload can leave
    /// it as it is.
    [[nodiscard]] bool is_same_as(const share_configuration& other) const {
        return volume == other.volume and snapshots == other.snapshots and name == other.name and
               comment == other.comment and source == other.source and referral == other.referral and
               size_limit_bytes == other.size_limit_bytes and is_read_only == other.is_read_only and
               is_hidden == other.is_hidden and hides_unreadable == other.hides_unreadable and
               encryption == other.encryption and continuous_availability == other.continuous_availability and
               journal == other.journal and users == other.users and
               read_only_users == other.read_only_users and write_users == other.write_users and
               auditors == other.auditors and guests == other.guests and hosts == other.hosts and
               file_rules == other.file_rules;
    }
};

/// An interface to which clients may open more connections ([MS-SMB2] 2.2.32.5).
struct network_interface {
    io::socket_address address;
    std::uint32_t index = 0;
    std::uint64_t bits_per_second = 0;
    bool can_spread_receives = false;  // RSS
};

struct server_configuration {
    std::string name = "SLUICE";  // at most 15 characters, the limit of NetBIOS
    std::string comment;
    std::vector<share_configuration> shares;
    /// Called for every client that asks, because interfaces come and go; null: there are none to
    /// report.
    std::function<std::vector<network_interface>()> interfaces{};
    protection signing = protection::required;
    /// For SMB 3.1.1, best first. AES-CMAC is the default of the protocol, so it is used where the
    /// client offers none of these, even if it is not among them ([MS-SMB2] 3.1.4.1).
    std::vector<wire::signing_algorithm> signing_algorithms = {wire::signing_algorithm::aes_gmac,
                                                               wire::signing_algorithm::aes_cmac,
                                                               wire::signing_algorithm::hmac_sha256};
    protection encryption = protection::offered;
    /// Whether compression of messages is negotiated (SMB 3.1.1).
    bool compresses = false;
    bool allows_guests = false;
    /// Whether clients may cache directories ([MS-SMB2] 3.3.1.7, directory leasing).
    bool has_directory_leases = true;
    /// The time after which a session must be authenticated again; zero: never.
    std::chrono::seconds session_lifetime{0};
    /// Returns the Unix account a user acts with on files; std::nullopt: that user may not connect.
    /// If empty, all users act as the account that the server runs as.
    std::function<std::optional<vfs::unix_account>(const std::string& user)> account_of{};
    /// Bounds of the resources that all clients share.
    server_bounds bounds = server_bounds::of({});
    wire::dialect dialect_min = wire::dialect::smb_2_0_2;
    wire::dialect dialect_max = wire::dialect::smb_3_1_1;
};

}  // namespace sluice::smb::server
