#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"
#include "sluice/cli/doctor/local/proc_text.hpp"

namespace sluice::cli::doctor {

/// A program that listens on a port.
struct port_owner {
    std::uint32_t process = 0;  ///< 0: not visible for this account
    std::string name;           ///< its command; empty: unknown
};

/// Finds the process that has the socket with this inode. Only root and the account of that process
/// can see it. Processes that end during the search are skipped. Blocks: for a read of /proc.
[[nodiscard]] port_owner owner_of_socket(std::uint64_t inode);

/// The facts about a port of this host.
struct port_facts {
    std::uint16_t port = 0;
    std::vector<tcp_listener> listeners;  ///< of this port
    port_owner owner;                     ///< the program of the first listener
    bool is_of_sluice = false;            ///< a server that answered its status socket has it
    bool is_root = false;
    std::uint16_t first_free_port = 1024;  ///< net.ipv4.ip_unprivileged_port_start
};

/// Returns the findings about a port: in use by another program, not permitted, free. Pure
/// function.
[[nodiscard]] std::vector<finding> judge_port(const port_facts& seen);

}  // namespace sluice::cli::doctor
