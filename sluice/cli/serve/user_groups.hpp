#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Groups of users in the settings of `sluice serve`: `@staff` in a list of users stands for the
// members of the group `staff`.

namespace sluice::cli {

inline constexpr std::size_t groups_max = 256;
inline constexpr std::size_t group_members_max = 10'000;

/// The first character of an entry that names a group.
inline constexpr char group_mark = '@';

/// A group of the configuration file or of the host. It has users only, no groups.
struct user_group {
    std::string name;
    std::vector<std::string> members;
    bool is_of_host = false;
};

/// For lists of users: returns the rule that an entry violates, or an empty text.
[[nodiscard]] std::string validate_user_entry(const std::string& entry);

/// Returns the group of that name; null if there is none. A group of the configuration matches in
/// any case, and comes before one of the host, which matches as it is spelled.
[[nodiscard]] const user_group* find_group(const std::vector<user_group>& groups, std::string_view name);

/// Returns the users that the entries name, with the members of their groups; a group without
/// members, or that is not among `groups`, names none. `guest`, which stands for all guests, is not
/// taken from a group. Allocates: the list. Pure.
[[nodiscard]] std::vector<std::string> users_of(const std::vector<std::string>& entries,
                                                const std::vector<user_group>& groups);

}  // namespace sluice::cli
