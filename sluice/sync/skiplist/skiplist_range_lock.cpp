#include "sluice/sync/skiplist/skiplist_range_lock.hpp"

namespace sluice::sync {

static_assert(sizeof(skiplist::low_tower<real_atomics>) == 64, "a node is one cache line");
static_assert(sizeof(skiplist::high_tower<real_atomics>) == 128, "a tall node is two");

template class basic_skiplist_range_lock<real_atomics>;

}  // namespace sluice::sync
