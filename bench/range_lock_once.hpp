#pragma once

namespace sluice::bench::range_locks {

/// Implements `range_lock --once SUBJECT WORKLOAD PAIRS`: runs this number of pairs in this thread,
/// without a measurement, for tools that count the operations of a program
/// (bench/range_lock_counters.py). `range_lock --once` alone lists the subjects and workloads, one
/// "SUBJECT WORKLOAD" per line. Returns the exit status.
int run_once(int argc, const char* const* argv);

}  // namespace sluice::bench::range_locks
