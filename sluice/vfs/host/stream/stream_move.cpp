#include "sluice/vfs/host/stream/stream_move.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

#include "sluice/base/case_fold.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {
namespace {

result<std::vector<std::string>> names_in(const io::directory_handle& directory) {
    std::vector<std::string> names;
    const auto listed = io::directory_handle::open(directory, ".");
    if (not listed) return failure(listed.error());
    const auto done = for_each_entry(*listed, io::stat_fields::none,
                                     [&](const io::directory_entry& each) { names.emplace_back(each.name); });
    if (not done) return failure(done.error());
    return names;
}

result<bool> is_ambiguous(const io::directory_handle& moved, const io::directory_handle& present) {
    const auto moved_names = names_in(moved);
    if (not moved_names) return failure(moved_names.error());
    const auto present_names = names_in(present);
    if (not present_names) return failure(present_names.error());
    if (moved_names->empty() or present_names->empty()) return false;
    const auto moved_mark = load_stream_record(moved);
    const auto present_mark = load_stream_record(present);
    if (not moved_mark or not*moved_mark or not present_mark or not*present_mark) return true;
    // The owner does not matter: the next lookup corrects it.
    stream_record expected = **present_mark;
    expected.owner = (*moved_mark)->owner;
    if (**moved_mark != expected) return true;
    if (moved_names->size() + present_names->size() > limits::large_streams_per_file_max) return true;
    std::set<std::string> taken;
    for (const std::string& each : *present_names)
        taken.insert(fold(each));
    for (const std::string& each : *moved_names)
        if (taken.contains(fold(each))) return true;
    return false;
}

}  // namespace

result<bool> is_move_ambiguous(const io::path_handle& from, const io::path_handle& to, const stream_id& id) {
    const auto present = io::directory_handle::open(to, id.text());
    if (not present and present.error().code() == ENOENT) return false;
    if (not present) return failure(present.error());
    const auto moved = io::directory_handle::open(from, id.text());
    if (not moved) return failure(moved.error());
    return is_ambiguous(*moved, *present);
}

result<void> move_streams(const io::path_handle& from, const io::path_handle& to, const stream_id& id) {
    const std::string name = id.text();
    // It replaces an empty directory.
    if (::renameat(from.descriptor(), name.c_str(), to.descriptor(), name.c_str()) == 0) return {};
    if (errno != ENOTEMPTY and errno != EEXIST) return failure(error::with_path(errno, "move streams", name));
    const auto moved = io::directory_handle::open(from, name);
    if (not moved) return failure(moved.error());
    const auto present = io::directory_handle::open(to, name);
    if (not present) return failure(present.error());
    lock_streams(*present);
    const auto ambiguous = is_ambiguous(*moved, *present);
    if (not ambiguous) return failure(ambiguous.error());
    if (*ambiguous) return failure(error::with_path(EEXIST, "move streams", name));
    const auto names = names_in(*moved);
    if (not names) return failure(names.error());
    for (const std::string& each : *names)
        if (::renameat2(moved->descriptor(), each.c_str(), present->descriptor(), each.c_str(),
                        RENAME_NOREPLACE) != 0 and
            errno != ENOENT)
            return failure(error::with_path(errno, "move stream", each));
    if (::unlinkat(from.descriptor(), name.c_str(), AT_REMOVEDIR) == 0) return {};
    return failure(error::with_path(errno, "move streams", name));
}

}  // namespace sluice::vfs
