#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/mutex.hpp"

namespace sluice::smb::server {

/// The domains whose file systems the loops call, by number: what a loop notes of its work
/// (loop_activity) is a number, and a report names it. Today a domain is a share.
///
/// A name keeps its number, so that a number that was stored before a reload still means the same.
/// Thread safety (monitor): any thread. No other mutex is locked while its own is held.
class domain_names {
public:
    /// The number of a domain, from 1. Allocates: for a new name. Complexity: O(n) in names.
    [[nodiscard]] std::uint32_t number_of(std::string_view name);
    /// Returns an empty string for 0, and for a number that was not given. Allocates: the result.
    [[nodiscard]] std::string name_of(std::uint32_t number) const;

private:
    mutable mutex mutex_;
    std::vector<std::string> names_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
