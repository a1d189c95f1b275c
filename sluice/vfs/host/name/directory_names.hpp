#pragma once

#include <string_view>
#include <vector>

#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/limits.hpp"

// Internal to the host volume: all names of a directory that is open for any purpose.

namespace sluice::vfs {

/// A directory's descriptor as the base of paths, borrowed for the lifetime of this object.
class borrowed_directory {
public:
    borrowed_directory(const io::handle& directory, io::confinement limit) noexcept
        : base_({.descriptor = directory.descriptor(), .kind = io::handle_kind::directory}, limit) {}
    borrowed_directory(const borrowed_directory&) = delete;
    borrowed_directory& operator=(const borrowed_directory&) = delete;
    ~borrowed_directory() { (void)base_.release(); }
    [[nodiscard]] const io::path_handle& get() const noexcept { return base_; }

private:
    io::path_handle base_;
};

/// Calls `sink(name)` for every name until it returns false. Opens the directory again, because the
/// held descriptor may not permit listing, or may be in the middle of a listing. Errors: EACCES;
/// those of reading; ENOTDIR.
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
            if (not sink(each.name)) return {};
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
