#include "sluice/cli/smb/local_removal.hpp"

#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"

namespace sluice::cli {
namespace {

[[nodiscard]] sync_entry::kind kind_of(io::file_type type) noexcept {
    if (type == io::file_type::regular) return sync_entry::kind::file;
    return type == io::file_type::directory ? sync_entry::kind::directory : sync_entry::kind::other;
}

[[nodiscard]] bool is_unchanged(const sync_entry& listed, const io::file_status& now) noexcept {
    if (kind_of(now.type) != listed.is) return false;
    return listed.is != sync_entry::kind::file or
           (now.size_bytes == listed.bytes and smb::wire::filetime_of(now.modified).ticks == listed.modified);
}

}  // namespace

std::optional<std::string> remove_unchanged(const io::path_handle& root, const std::string& below,
                                            const sync_entry& listed, const std::set<object_identity>& kept) {
    const auto now = io::status_at(root, below);
    if (not now) return now.error().message();
    if (not is_unchanged(listed, *now)) return "was changed, so it is not removed";
    if (kept.contains({now->device, now->inode}))
        return "is another name of a file that the source has, so it is not removed";
    const auto removed = listed.is == sync_entry::kind::directory ? io::remove_directory(root, below)
                                                                  : io::remove(root, below);
    if (not removed) return removed.error().message();
    return std::nullopt;
}

}  // namespace sluice::cli
