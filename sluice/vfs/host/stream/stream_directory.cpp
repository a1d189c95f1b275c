#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_metadata.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"

// The directory of one file's large streams.

namespace sluice::vfs {
namespace {

using as_process = account_identity::pause;

std::string file_name_of(std::string_view stream) {
    return stream_name_prefix + std::string(stream);
}

// Returns the stream that a file in the directory is; empty if it is none.
std::string_view stream_of(const io::directory_entry& entry) noexcept {
    const bool is_stream = entry.type == io::file_type::regular and entry.name.size() > 1 and
                           entry.name.front() == stream_name_prefix and
                           entry.name.substr(1) != incomplete_stream_name;
    return is_stream ? entry.name.substr(1) : std::string_view();
}

// Calls `sink(entry, stream)` for each stream. The directory is opened again, because an open one
// has one position.
template <class Sink>
result<void> for_each_stream(const io::directory_handle& in, io::stat_fields wanted, Sink sink) {
    const auto listed = io::directory_handle::open(in, ".");
    if (not listed) return failure(listed.error());
    auto done = for_each_entry(*listed, wanted, [&](const io::directory_entry& each) {
        if (const std::string_view stream = stream_of(each); not stream.empty()) sink(each, stream);
    });
    const bool is_removed = not done and done.error() == std::errc::no_such_file_or_directory;
    return is_removed ? result<void>() : done;
}

result<void> barrier_of(const io::path_handle& directory) {
    const auto opened = io::directory_handle::open(directory, ".");
    if (not opened) return failure(opened.error());
    return opened->barrier();
}

}  // namespace

result<std::vector<stream_info>> stream_directory::list() const {
    const as_process now;
    std::vector<stream_info> found;
    const auto wanted = io::stat_fields::type | io::stat_fields::size | io::stat_fields::allocated;
    const auto record = [&](const io::directory_entry& each, std::string_view stream) {
        found.push_back({.name = std::string(stream),
                         .size_bytes = each.status.size_bytes,
                         .allocated_bytes = each.status.allocated_bytes});
    };
    if (const auto done = for_each_stream(itself_, wanted, record); not done) return failure(done.error());
    return found;
}

result<std::optional<std::string>> stream_directory::find(std::string_view stream) const {
    const as_process now;
    // The same case is usual, and needs no list.
    const auto exact = io::status_at(itself_, file_name_of(stream), io::follow::no, io::stat_fields::type);
    if (exact and exact->type == io::file_type::regular) return std::string(stream);
    std::optional<std::string> best;
    const auto compare = [&](const io::directory_entry& /*entry*/, std::string_view each) {
        if (equal_ignoring_case(each, stream) and (not best or each < *best)) best = std::string(each);
    };
    const auto done = for_each_stream(itself_, io::stat_fields::none, compare);
    if (not done) return failure(done.error());
    return best;
}

result<io::file_handle> stream_directory::open_file(std::string_view stream, int flags) const {
    const std::string name = file_name_of(stream);
    const auto descriptor = io::open_at(itself_, io::terminated_path(name),
                                        {.flags = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                         .permission_bits = stream_file_bits,
                                         .operation = "open stream"});
    if (not descriptor) return failure(descriptor.error());
    io::file_handle opened(io::native_handle{.descriptor = *descriptor,
                                             .kind = io::handle_kind::file,
                                             .readable = true,
                                             .writable = (flags & O_ACCMODE) == O_RDWR,
                                             .in_memory = is_in_memory_});
    const auto status = io::status_of(opened, io::stat_fields::type);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular)
        return failure(error::with_path(EACCES, "open stream", stream));
    // With O_NONBLOCK a ring would return EAGAIN instead of waiting for the disk.
    if (::fcntl(opened.descriptor(), F_SETFL, 0) != 0)
        return failure(error::last("open stream", opened.descriptor()));
    return opened;
}

result<io::file_handle> stream_directory::open(std::string_view stream, data_access wanted) const {
    const as_process now;
    return open_file(stream, wanted.write ? O_RDWR : O_RDONLY);
}

result<io::file_handle> stream_directory::create(std::string_view stream, existing found) const {
    ENSURE(is_own(), "a copy has its own directory before its streams change");
    const as_process now;
    if (const auto room = check_room(stream); not room) return failure(room.error());
    return create_file(stream, found);
}

// Each lookup of a name that is not there reads all others.
result<void> stream_directory::check_room(std::string_view stream) const {
    std::size_t others = 0;
    const auto count = [&](const io::directory_entry& /*entry*/, std::string_view each) {
        others += each == stream ? 0 : 1;
    };
    const auto done = for_each_stream(itself_, io::stat_fields::none, count);
    if (not done or others < limits::large_streams_per_file_max) return done;
    return failure(error::with_path(ENOSPC, "create stream", stream));
}

result<io::file_handle> stream_directory::create_file(std::string_view stream, existing found) const {
    auto made = open_file(stream, O_RDWR | O_CREAT | (found == existing::refuse ? O_EXCL : O_TRUNC));
    if (not made) return made;
    if (const auto done = assign(*made, mark_); not done) return failure(done.error());
    return made;
}

// Without the right to, the files of the server's account are charged to it, like all that it
// creates.
result<void> stream_directory::assign(const io::file_handle& stream, const stream_record& mark) const {
    if (::fchown(stream.descriptor(), file_.user_id, file_.group_id) != 0 and errno != EPERM and
        errno != EINVAL)
        return failure(error::last("set owner of stream", stream.descriptor()));
    return store_stream_record(stream, mark, record_storing::replace);
}

result<void> stream_directory::rename(std::string_view stream, std::string_view to) const {
    ENSURE(is_own(), "a copy has its own directory before its streams change");
    const as_process now;
    const std::string before = file_name_of(stream);
    const std::string after = file_name_of(to);
    if (::renameat(itself_.descriptor(), before.c_str(), itself_.descriptor(), after.c_str()) == 0) return {};
    return failure(error::with_path(errno, "rename stream", stream));
}

result<void> stream_directory::remove(std::string_view stream) const {
    ENSURE(is_own(), "a copy has its own directory before its streams change");
    const as_process now;
    if (::unlinkat(itself_.descriptor(), file_name_of(stream).c_str(), 0) == 0) return {};
    return failure(error::with_path(errno, "remove stream", stream));
}

result<bool> stream_directory::remove_every_spelling(std::string_view stream, std::string_view kept) const {
    std::vector<std::string> spellings;
    {
        const as_process now;
        const auto collect = [&](const io::directory_entry& /*entry*/, std::string_view each) {
            if (each != kept and equal_ignoring_case(each, stream)) spellings.emplace_back(each);
        };
        const auto done = for_each_stream(itself_, io::stat_fields::none, collect);
        if (not done) return failure(done.error());
    }
    for (const std::string& each : spellings) {
        const auto gone = remove(each);
        if (not gone and gone.error() != std::errc::no_such_file_or_directory) return failure(gone.error());
    }
    return not spellings.empty();
}

// The directory last: until then, the next call repeats it.
result<void> stream_directory::claim() {
    const as_process now;
    const stream_record claimed = file_.record(stream_record_kind::mark, mark_.id);
    const auto all = list();
    if (not all) return failure(all.error());
    for (const stream_info& each : *all) {
        const auto opened = open_file(each.name, O_RDONLY);
        if (not opened and opened.error() == std::errc::no_such_file_or_directory) continue;
        if (not opened) return failure(opened.error());
        if (const auto done = assign(*opened, claimed); not done) return done;
    }
    if (const auto done = store_stream_record(itself_, claimed, record_storing::replace); not done)
        return done;
    mark_ = claimed;
    return {};
}

void stream_directory::lock() const noexcept {
    lock_streams(itself_);
}

result<void> stream_directory::barrier() const {
    const as_process now;
    if (const auto done = itself_.barrier(); not done) return done;
    if (const auto done = barrier_of(above_); not done) return done;
    return barrier_of(store_);  // whose own name has been durable since its creation
}

result<void> stream_directory::copy_from(const stream_directory& other, std::string_view except) const {
    ENSURE(is_own(), "a copy has its own directory before its streams change");
    const auto all = other.list();
    if (not all) return failure(all.error());
    for (const stream_info& each : *all) {
        if (equal_ignoring_case(each.name, except)) continue;
        if (const auto done = copy_stream(other, each.name); not done) return done;
    }
    return barrier();
}

result<void> stream_directory::copy_stream(const stream_directory& other, std::string_view stream) const {
    const auto source = other.open(stream, {.read = true});
    if (not source) return failure(source.error());
    auto copy = [&] {
        const as_process now;
        return create_file(stream, existing::refuse);
    }();
    if (not copy) return failure(copy.error());
    const auto size = source->maximum_extent();
    if (not size) return failure(size.error());
    // With the identity of the thread, so that the quota of the account applies.
    if (const auto copied = source->clone_extents_to(*copy); not copied) return failure(copied.error());
    if (const auto sized = copy->truncate(*size); not sized) return failure(sized.error());
    const as_process now;
    const auto metadata = load_metadata(*source);
    if (metadata and *metadata) {
        if (const auto stored = store_metadata(*copy, **metadata); not stored) return stored;
    }
    if (const auto durable = copy->barrier(); not durable) return failure(durable.error());
    return {};
}

// Clients cannot set the owner of a stream: only the server gets into its directory.
result<bool> stream_directory::may_be_used() const {
    if (is_own() or mark_.owner == file_.user_id) return true;
    const as_process now;
    std::optional<std::uint32_t> owner;
    const auto look = [&](const io::directory_entry& each, std::string_view /*stream*/) {
        if (not owner and each.status.knows(io::stat_fields::owner)) owner = each.status.user_id;
    };
    const auto done = for_each_stream(itself_, io::stat_fields::type | io::stat_fields::owner, look);
    if (not done) return failure(done.error());
    return owner == file_.user_id;
}

bool stream_directory::remove_if_empty() const noexcept {
    const as_process now;
    return ::unlinkat(above_.descriptor(), name_.c_str(), AT_REMOVEDIR) == 0;
}

void stream_directory::retire() const noexcept {
    const as_process now;
    if (not remove_if_empty()) (void)move_to_lost(store_, mark_.id);
}

result<void> stream_directory::remove_streams() const {
    ENSURE(is_own(), "a copy has its own directory before its streams change");
    const as_process now;
    std::vector<std::string> names;
    const auto done = for_each_stream(
        itself_, io::stat_fields::none,
        [&](const io::directory_entry& each, std::string_view /*stream*/) { names.emplace_back(each.name); });
    if (not done) return done;
    for (const std::string& each : names)
        if (::unlinkat(itself_.descriptor(), each.c_str(), 0) != 0 and errno != ENOENT)
            return failure(error::with_path(errno, "remove stream", each));
    (void)::unlinkat(itself_.descriptor(), file_name_of(incomplete_stream_name).c_str(), 0);
    (void)remove_if_empty();
    return {};
}

}  // namespace sluice::vfs
