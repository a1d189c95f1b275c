#pragma once

#include "sluice/sync/byte_range.hpp"

namespace sluice::sync {

enum class lock_mode : unsigned char { shared, exclusive };

/// A lock request.
struct lock_args {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    /// The owner; null: none in particular. A shared request never waits for locks of its own
    /// owner, an exclusive one does ([MS-FSA] 2.1.5.8): a thread that requests the same bytes twice
    /// waits forever.
    const void* owner = nullptr;
};

/// A range that conflicts with a request.
struct lock_conflict {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    const void* owner = nullptr;
    bool is_held = false;  // otherwise it is an earlier waiting request
};

}  // namespace sluice::sync
