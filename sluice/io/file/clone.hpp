#pragma once

#include <cstdint>
#include <span>

#include "sluice/base/result.hpp"
#include "sluice/io/file/extent_pair.hpp"

namespace sluice::io {

/// Ways to copy within and between files, strongest first.
enum class clone_method : std::uint8_t {
    reflink,      ///< both share the same blocks until one is written to
                  ///< (FICLONERANGE): no data moves
    kernel_copy,  ///< the kernel, or the server, copies (copy_file_range)
    user_copy,    ///< read into a buffer and written from it: works between any two files
};

struct clone_request {
    extent_pair source = {};
    extent_type destination_offset = 0;
};

struct clone_progress {
    extent_type done_bytes = 0;   // bytes of the range, holes included
    extent_type total_bytes = 0;  // the range, cut to the source's length
};

/// A callback for progress, called at least every limits::clone_step_bytes_max. It returns whether
/// to continue. Refers to the callable, which must outlive the call it is passed to and must not
/// throw.
class clone_observer {
public:
    constexpr clone_observer() noexcept = default;
    template <class Callable>
        requires std::is_invocable_r_v<bool, Callable&, const clone_progress&>
    constexpr clone_observer(Callable& callable) noexcept  // NOLINT: meant to convert
        : callable_(&callable), call_([](void* target, const clone_progress& progress) noexcept -> bool {
              return (*static_cast<Callable*>(target))(progress);
          }) {}

    [[nodiscard]] bool goes_on(const clone_progress& progress) const noexcept {
        return call_ == nullptr or call_(callable_, progress);
    }

private:
    void* callable_ = nullptr;
    bool (*call_)(void*, const clone_progress&) noexcept = nullptr;
};

/// Whether a copy searches for holes in its source. On some file systems (tmpfs) the search takes
/// time in proportion to the data up to the next hole, however short the range is.
enum class source_holes : bool {
    kept,     ///< they become holes of the destination
    ignored,  ///< for callers that know that the range has none: holes are copied as zeros
};

struct clone_options {
    clone_method strongest =
        clone_method::reflink;         // what to begin with; weaker ones follow where it is refused
    std::span<std::byte> buffer = {};  // for user_copy; by default 64 KiB of stack
    clone_observer observer = {};
    source_holes holes = source_holes::kept;
};

struct clone_result {
    extent_type cloned_bytes = 0;  // bytes of the range; fewer at the source's end, or when stopped
    extent_type data_bytes = 0;    // thereof in data, not in holes; reflink does
                                   // not distinguish them
    clone_method method = clone_method::reflink;  // the weakest that was needed
    bool stopped = false;                         // by the observer
};

/// The files of a copy, by descriptor, and how long they are. Internal to io.
struct clone_ends {
    int from = -1;
    int to = -1;
    extent_type from_length = 0;
    extent_type to_length = 0;
};
/// The copy of file_handle::clone_extents_to; see its contract.
[[nodiscard]] result<clone_result> clone_extents(const clone_ends& files, const clone_request& request,
                                                 const clone_options& options) noexcept;

}  // namespace sluice::io
