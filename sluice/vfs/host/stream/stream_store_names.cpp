#include "sluice/vfs/host/stream/stream_store_names.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::vfs {
namespace {

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

// A link, or no directory, in place of the store.
bool is_foreign(const error& why) noexcept {
    return why.code() == ENOTDIR or why.code() == ELOOP;
}

// A store that others could have prepared, or could change, is not used.
result<void> check_store(const io::handle& store) noexcept {
    const auto status = io::status_of(store, io::stat_fields::owner | io::stat_fields::permissions);
    if (not status) return failure(status.error());
    constexpr unsigned rights_of_others = 077;
    if (status->user_id == ::geteuid() and (status->permission_bits & rights_of_others) == 0) return {};
    return failure(error::with_path(EACCES, "use streams of another account in", stream_store_name));
}

}  // namespace

bool is_stream_store(std::string_view host_name) noexcept {
    std::size_t at = 0;
    for (const char expected : stream_store_name) {
        if (at == host_name.size()) return false;
        const name_character next = character_at(host_name, at);
        if (upcase(host_character(next.point)) != upcase(static_cast<char32_t>(expected))) return false;
        at += next.length;
    }
    return at == host_name.size();
}

bool leads_into_stream_store(std::string_view host_path) noexcept {
    for (;;) {
        const std::size_t slash = host_path.find('/');
        if (is_stream_store(host_path.substr(0, slash))) return true;
        if (slash == host_path.npos) return false;
        host_path.remove_prefix(slash + 1);
    }
}

bool is_in_stream_store(const io::handle& open, const io::file_status& status) noexcept {
    const bool may_be =
        (status.type == io::file_type::directory and
         (status.permission_bits & ~inherited_directory_bits) == stream_directory_bits) or
        (status.type == io::file_type::regular and status.permission_bits == stream_file_bits);
    if (not may_be) return false;
    const auto record = load_stream_record(open);
    // An account that may not read the mark could not use the object either.
    return not record or (*record and (*record)->kind == stream_record_kind::mark);
}

result<io::path_handle> open_store(const io::path_handle& base) noexcept {
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    const auto descriptor = io::open_at(base, io::terminated_path(stream_store_name),
                                        {.flags = flags, .operation = "open streams"});
    if (not descriptor) {
        if (is_foreign(descriptor.error()))
            return failure(error::with_path(EACCES, "open streams", stream_store_name));
        return failure(descriptor.error());
    }
    io::path_handle store({.descriptor = *descriptor, .kind = io::handle_kind::path},
                          io::confinement::beneath_one_mount_no_symlinks);
    if (const auto checked = check_store(store); not checked) return failure(checked.error());
    return store;
}

result<io::path_handle> make_store(const io::path_handle& base, store_durability durable) noexcept {
    auto store = open_store(base);
    if (store or not is_missing(store.error())) return store;
    const auto made =
        make_store_directory(base, stream_store_name, stream_record{.kind = stream_record_kind::mark});
    if (not made) {
        if (is_foreign(made.error()))
            return failure(error::with_path(EACCES, "open streams", stream_store_name));
        return failure(made.error());
    }
    if (durable == store_durability::later) return open_store(base);
    const auto around = io::directory_handle::open(base, ".");
    const auto done = around ? around->barrier() : result<void>(failure(around.error()));
    // The server may be permitted to use a directory, but not to list it.
    if (not done and done.error().code() != EACCES) return failure(done.error());
    return open_store(base);
}

bool may_be_own_store(const io::path_handle& base, const error& refusal) noexcept {
    if (refusal.code() == EXDEV) return false;
    if (refusal.code() != EACCES) return true;
    const auto status = io::status_at(base, stream_store_name, io::follow::no,
                                      io::stat_fields::type | io::stat_fields::owner);
    if (not status) return not is_missing(status.error());
    return status->type == io::file_type::directory and status->user_id == ::geteuid();
}

result<io::directory_handle> make_store_directory(const io::path_handle& base, std::string_view name,
                                                  const stream_record& mark) noexcept {
    auto made = io::directory_handle::open(base, name, io::mode::read, io::creation::if_needed,
                                           stream_directory_bits);
    if (not made) return failure(made.error());
    const auto present = load_stream_record(*made);
    if (not present) return failure(present.error());
    if (*present) return made;
    const auto marked = store_stream_record(*made, mark, record_storing::only_if_none);
    if (not marked and marked.error().code() != EEXIST) return failure(marked.error());
    return made;
}

result<void> move_to_lost(const io::path_handle& store, const stream_id& id) {
    const std::string name = id.text();
    const auto lost = make_store_directory(store, lost_streams_name, {.kind = stream_record_kind::mark});
    if (not lost) return failure(lost.error());
    const auto above = io::path_handle::open(store, stream_group_of(id));
    if (not above) return failure(above.error());
    // The time first: a crash between the steps must not make it look old.
    if (::utimensat(above->descriptor(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0 and
        ::renameat(above->descriptor(), name.c_str(), lost->descriptor(), name.c_str()) == 0)
        return {};
    return failure(error::with_path(errno, "move to lost", name));
}

void lock_streams(const io::directory_handle& directory) noexcept {
    while (::flock(directory.descriptor(), LOCK_EX) != 0 and errno == EINTR)
        continue;
}

}  // namespace sluice::vfs
