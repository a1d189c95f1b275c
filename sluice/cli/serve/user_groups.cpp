#include "sluice/cli/serve/user_groups.hpp"

#include <algorithm>
#include <iterator>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/user_names.hpp"

namespace sluice::cli {

std::string validate_user_entry(const std::string& entry) {
    return validate_user_name(entry.starts_with(group_mark) ? entry.substr(1) : entry);
}

const user_group* find_group(const std::vector<user_group>& groups, std::string_view name) {
    const auto found = std::ranges::find_if(groups, [&](const user_group& each) {
        return each.is_of_host ? each.name == name : equal_ignoring_case(each.name, name);
    });
    return found != groups.end() ? &*found : nullptr;
}

std::vector<std::string> users_of(const std::vector<std::string>& entries,
                                  const std::vector<user_group>& groups) {
    std::vector<std::string> users;
    for (const std::string& entry : entries) {
        if (not entry.starts_with(group_mark)) {
            users.push_back(entry);
            continue;
        }
        const user_group* const found = find_group(groups, std::string_view(entry).substr(1));
        if (found == nullptr) continue;
        std::ranges::copy_if(found->members, std::back_inserter(users), [](std::string_view member) {
            return not equal_ignoring_case(member, std::string_view("guest"));
        });
    }
    return users;
}

}  // namespace sluice::cli
