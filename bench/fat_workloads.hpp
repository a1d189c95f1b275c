#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {

// What is measured of FAT volumes. With `is_quick` only the sizes that take a moment.

/// Whole files in requests of 1 MiB.
void add_sequential(benchmark& to, bool is_quick);
/// 4 KiB anywhere in a file in one piece, and in one in 25,600.
void add_random(benchmark& to, bool is_quick);
/// 4 KiB at the end of files of several sizes.
void add_appends(benchmark& to, bool is_quick);
/// A file made and read in requests of 512 bytes, on clusters of 512 bytes.
void add_steps(benchmark& to, bool is_quick);
/// Many long names in one directory.
void add_names(benchmark& to, bool is_quick);
/// Files made with what is changed kept aside: in a journal until it is durable, or in an overlay.
void add_aside(benchmark& to, bool is_quick);
/// Two files that grow at once.
void add_two_writers(benchmark& to, bool is_quick);

}  // namespace sluice::bench
