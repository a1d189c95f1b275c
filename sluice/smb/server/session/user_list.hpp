#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

/// A list of users in the settings of a share, or none. An empty list differs from none: it names
/// no user. Names are compared without case. Thread safety: a value. Allocates: the names.
class user_list {
public:
    /// There is no list.
    user_list() noexcept = default;
    user_list(std::initializer_list<std::string_view> names) {
        set(std::vector<std::string>(names.begin(), names.end()));
    }
    explicit user_list(const std::vector<std::string>& names) { set(names); }

    [[nodiscard]] bool is_given() const noexcept { return is_given_; }
    /// Complexity: logarithmic in the names. Allocates: a key of the length of `name`.
    [[nodiscard]] bool contains(std::string_view name) const {
        return is_given_ and std::ranges::binary_search(folded_, fold(name));
    }
    void clear() noexcept { *this = {}; }

    [[nodiscard]] friend bool operator==(const user_list&, const user_list&) noexcept = default;

private:
    void set(const std::vector<std::string>& names) {
        is_given_ = true;
        for (const std::string& each : names)
            folded_.push_back(fold(each));
        std::ranges::sort(folded_);
        const auto repeated = std::ranges::unique(folded_);
        folded_.erase(repeated.begin(), repeated.end());
    }

    bool is_given_ = false;
    std::vector<std::string> folded_;  // sorted, each once
};

}  // namespace sluice::smb::server
