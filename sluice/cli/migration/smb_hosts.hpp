#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// Returns a host or network of `hosts allow` as an address with an optional prefix: "192.168.1."
/// is "192.168.1.0/24". An empty text: it is a name, or has another form.
[[nodiscard]] std::string smb_host(std::string_view text);

/// The lists `hosts allow` and `hosts deny` as those of sluice, which denies what `denied` has, and
/// if `allowed` is not empty, all hosts that it does not have.
struct smb_host_lists {
    std::vector<std::string> allowed{};
    std::vector<std::string> denied{};
    std::size_t not_allowed = 0;  // elements without an equivalent, to which Samba gives access
    std::size_t not_denied = 0;   // the same, to which Samba denies access
    bool denies_others = false;   // hosts in neither list, to which Samba gives access
};

/// Converts both lists; an empty text is a list that is not given. The result gives no host access
/// to which Samba denies it, except those that `not_denied` counts. Allocates: the lists. Pure.
[[nodiscard]] smb_host_lists converted_smb_hosts(std::string_view allow, std::string_view deny);

}  // namespace sluice::cli
