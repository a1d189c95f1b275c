#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/smb/file_copier.hpp"

namespace sluice::cli {

/// A file of a share and its target on the same or another share.
struct copied_file {
    remote_entry from;
    std::string to;
    bool may_replace = true;
    /// It is removed after the copy: no other program may write to it while it is copied.
    bool is_moved = false;
    /// Set by the copier: the version that was copied, as a proof before the source is removed.
    smb::client::file_status version{};
    std::uint64_t number = 0;  ///< 0 if the server has none
    bool is_copied = false;
};

/// Creates the copier between shares. A session copies on the server where that is possible.
/// `files` and the shares outlive it; `to` uses the loop of `from`. Thread safety: one thread.
[[nodiscard]] std::unique_ptr<file_copier> create_remote_copier(remote_share& from, remote_share& to,
                                                                const copy_options& how,
                                                                std::vector<copied_file>& files);

/// Removes the source of a copy, if it is still the version that was copied. Returns why not.
[[nodiscard]] io::task<file_copier::copy_error> remove_copied(remote_share& from,
                                                              const copied_file& file) noexcept;

}  // namespace sluice::cli
