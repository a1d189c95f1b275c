#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::wire {

/// A share in the form that clients list, [MS-SRVS] 2.2.2.4.
struct rpc_share {
    static constexpr std::uint32_t disk_tree = 0;
    static constexpr std::uint32_t ipc = 3;
    static constexpr std::uint32_t special = 0x80000000;  ///< added to the type: hidden from users
    // Flags, 2.2.4.29.
    static constexpr std::uint32_t access_based_directory_enum = 0x00000800;
    static constexpr std::uint32_t encrypt_data = 0x00008000;

    std::string name{};
    std::string comment{};
    std::uint32_t type = disk_tree;
    std::uint32_t flags = 0;
    access_mask access_max = file_all_access;  ///< what the share itself permits to everyone
    [[nodiscard]] friend bool operator==(const rpc_share&, const rpc_share&) noexcept = default;
};

/// The server's information for the pipes srvsvc and wkssvc. Every call queries it again, so it may
/// change. It outlives the pipes. All text is UTF-8.
class rpc_host {
public:
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string comment() const = 0;
    [[nodiscard]] virtual std::string domain() const = 0;
    [[nodiscard]] virtual std::vector<rpc_share> shares() const = 0;
    [[nodiscard]] virtual unix_time now() const = 0;

    rpc_host(const rpc_host&) = delete;
    rpc_host& operator=(const rpc_host&) = delete;

protected:
    rpc_host() noexcept = default;
    ~rpc_host() = default;
};

}  // namespace sluice::smb::wire
