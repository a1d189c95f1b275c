#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/cli/doctor/finding.hpp"
#include "sluice/io/call/socket_address.hpp"

namespace sluice::cli::doctor {

/// The outcome of a lookup.
struct resolution {
    std::vector<io::socket_address> addresses;
    int code = 0;               ///< the errno value of io::resolve(); 0: success
    bool is_timed_out = false;  ///< the resolver did not answer in time
    std::chrono::milliseconds took{0};
};

/// Looks a name up. The resolver of the system has no deadline, so it runs on a thread of its own,
/// which is abandoned when the time is over. Blocks: for at most `within`. Allocates: the list.
[[nodiscard]] resolution resolve_within(const std::string& host, std::uint16_t port,
                                        std::chrono::milliseconds within);

/// The configuration of the resolver: the content of these files, empty if they cannot be read.
struct resolver_files {
    std::string hosts;        ///< /etc/hosts
    std::string nsswitch;     ///< /etc/nsswitch.conf
    std::string resolv_conf;  ///< /etc/resolv.conf

    /// Reads them, at most 64 KiB of each. Blocks: briefly.
    [[nodiscard]] static resolver_files of_this_host();
};

/// Returns the findings about a lookup. Pure function. Complexity: linear in the files.
[[nodiscard]] std::vector<finding> judge_resolution(const std::string& host, const resolution& seen,
                                                    const resolver_files& files);

/// Returns the addresses that a hosts(5) file has for a name. Names are compared without case.
[[nodiscard]] std::vector<std::string> hosts_entries(std::string_view hosts, std::string_view name);

}  // namespace sluice::cli::doctor
