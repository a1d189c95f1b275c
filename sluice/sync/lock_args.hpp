#pragma once

#include "sluice/sync/byte_range.hpp"

namespace sluice::sync {

enum class lock_mode : unsigned char { shared, exclusive };

/// What somebody wants to lock.
struct lock_args {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    /// Whose it is; null: nobody's in particular. A shared request never waits for locks of its own owner, an
    /// exclusive one does ([MS-FSA] 2.1.5.8): who asks twice for the same bytes in one thread waits for ever.
    const void* owner = nullptr;
};

/// What is in the way of a request.
struct lock_conflict {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    const void* owner = nullptr;
    bool is_held = false;  // otherwise it waits, and came first
};

}  // namespace sluice::sync
