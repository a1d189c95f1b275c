#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {

// The workloads on FAT volumes. With `is_quick` only the sizes that take a moment.

/// Whole files in requests of 1 MiB.
void add_sequential(benchmark& to, bool is_quick);
/// 4 KiB at random offsets of a file in one piece, and of one in 25,600.
void add_random(benchmark& to, bool is_quick);
/// 4 KiB at the end of files of several sizes.
void add_appends(benchmark& to, bool is_quick);
/// A file created and read in requests of 512 bytes, on clusters of 512 bytes.
void add_steps(benchmark& to, bool is_quick);
/// Many long names in one directory.
void add_names(benchmark& to, bool is_quick);
/// Files created with a journal until they are durable, or in an overlay.
void add_aside(benchmark& to, bool is_quick);
/// Two files that grow at once.
void add_two_writers(benchmark& to, bool is_quick);

}  // namespace sluice::bench
