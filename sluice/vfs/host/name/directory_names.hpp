#pragma once

#include <string_view>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/limits.hpp"

// Internal to the host volume: all names of a directory that is open for any purpose.

namespace sluice::vfs {

/// Calls `sink(name)` for every name. Opens the directory again, because the held descriptor may
/// not permit listing, or may be in the middle of a listing. Errors: EACCES; those of reading;
/// ENOTDIR.
template <class Sink>
[[nodiscard]] result<void> for_each_name(const io::handle& directory, Sink sink) {
    const io::descriptor_path itself(directory.descriptor());
    const auto listed = io::directory_handle::open({}, itself.c_str());
    if (not listed) return failure(listed.error());
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch * 4);
    std::vector<char> storage(limits::listing_storage_bytes);
    std::uint64_t position = 0;
    for (;;) {
        const auto batch = listed->enumerate({.entries = entries, .storage = storage, .position = position});
        if (not batch) return failure(batch.error());
        if (batch->entries.empty()) return {};
        for (const io::directory_entry& each : batch->entries)
            sink(each.name);
        position = batch->next;
    }
}

/// Returns whether the thread, with its current identity, may list a directory. It opens the
/// directory, because on older kernels faccessat(3) checks another identity.
[[nodiscard]] inline bool may_list(const io::handle& directory) noexcept {
    const io::descriptor_path itself(directory.descriptor());
    return io::directory_handle::open({}, itself.c_str()).has_value();
}

}  // namespace sluice::vfs
