#include "sluice/sync/range_lock.hpp"

namespace sluice::sync {

template class basic_range_lock<real_atomics>;

}  // namespace sluice::sync
