#pragma once

#include <cstddef>

namespace sluice::io::limits {

/// Pieces of memory one system call takes (IOV_MAX of Linux); a longer request is served in several.
inline constexpr std::size_t pieces_per_call_max = 1024;

/// Pieces of neighbouring requests on a stream that share one system call.
inline constexpr std::size_t gathered_pieces_max = 64;

/// Operations completed, counting those started meanwhile, before complete_io returns to its caller although
/// more could be completed: keeps a handle that is always ready from starving the others.
inline constexpr int completions_per_pass_max = 256;

/// Operations a coroutine may complete without suspending before it must let others run.
inline constexpr int inline_completions_max = 64;

/// Depth of receivers that are started from inside another's signal and complete inside start().
inline constexpr int posted_items_per_pass_max = 1024;

/// Attached handles for which memory is taken at a time.
inline constexpr std::size_t registrations_per_chunk = 64;

}  // namespace sluice::io::limits
