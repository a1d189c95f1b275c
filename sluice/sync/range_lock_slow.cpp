#include "sluice/sync/range_lock_slow.hpp"

namespace sluice::sync {

template class basic_range_lock<real_atomics>;

}  // namespace sluice::sync
