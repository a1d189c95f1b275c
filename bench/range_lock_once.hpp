#pragma once

namespace sluice::bench::range_locks {

/// `range_lock --once SUBJECT WORKLOAD PAIRS`: so many pairs in this one thread, and nothing measured, for
/// tools that count what a program does (bench/range_lock_counters.py); `range_lock --once` alone tells the
/// subjects and workloads there are, one per line and "SUBJECT WORKLOAD". The exit status.
int run_once(int argc, const char* const* argv);

}  // namespace sluice::bench::range_locks
