#pragma once

#include <optional>
#include <string_view>

#include "sluice/smb/server/core/thread_usage.hpp"

namespace sluice::cli {

/// The usage of threads of this process, from /proc/self/task/THREAD/stat. CPU time there
/// comes in ticks, mostly of 10 ms. Keeps no file open: it is used only for a thread that is
/// in the middle of a turn.
/// Allocates: the path.
class proc_thread_usage final : public smb::server::thread_usage_source {
public:
    [[nodiscard]] std::optional<smb::server::thread_usage> of(int thread) noexcept override;
};

/// Decodes the content of such a file (proc_pid_stat(5)), where a second has `ticks_per_second`.
/// Returns std::nullopt for a text of another form. Allocates: nothing.
[[nodiscard]] std::optional<smb::server::thread_usage> decode_thread_stat(std::string_view text,
                                                                          long ticks_per_second) noexcept;

}  // namespace sluice::cli
