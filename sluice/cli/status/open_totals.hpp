#pragma once

#include <cstddef>

#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::cli {

/// Totals of all opens. They are counted in slices, so that no client waits until all are counted.
struct open_totals {
    /// Number of opens that are counted before clients are served again: this takes a few tens of
    /// microseconds, and some hundreds with names, which require system calls.
    static constexpr std::size_t slice = 256;
    static constexpr std::size_t slice_with_names = 64;

    std::size_t locks = 0;
    std::size_t oplocks = 0;  // opens that have one
    std::size_t leased = 0;   // opens that share a lease
    std::size_t durable = 0;
    std::size_t without_client = 0;
    smb::server::limits_in_use fullest;

    void add(const smb::server::open_status& one) noexcept {
        locks += one.locks;
        oplocks += one.caching == smb::server::caching_kind::oplock ? 1 : 0;
        leased += one.caching == smb::server::caching_kind::lease ? 1 : 0;
        durable += one.is_durable ? 1 : 0;
        without_client += one.session == 0 ? 1 : 0;
        fullest.merge({.locks_of_open = one.locks, .changes_of_watch = one.kept_changes});
    }
};

}  // namespace sluice::cli
