#include "sluice/vfs/host/stream/host_stream.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_place.hpp"
#include "sluice/vfs/host/lost_name.hpp"
#include "sluice/vfs/path.hpp"

// Streams: how they are found, created, renamed and removed. host_stream_data.cpp has their data.

namespace sluice::vfs {
namespace {

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

std::string attribute_of(std::string_view stream) {
    std::string attribute(stream_prefix);
    attribute += stream;
    return attribute;
}

// A stream of a file as it is stored: its name as it was created, and its directory if it is large.
struct stored_stream {
    std::string name;
    std::optional<stream_directory> directory;
};

result<std::optional<stored_stream>> find_stream(const host_tree& tree, const io::handle& file,
                                                 std::string_view name) {
    const auto small = find_small_stream(file, name);
    if (not small) return failure(small.error());
    if (not small->attribute.empty())
        return stored_stream{.name = small->attribute.substr(stream_prefix.size()), .directory = {}};
    if (not small->has_reference) return std::nullopt;
    auto directory = stream_store(tree).find(file);
    if (not directory) return failure(directory.error());
    if (not*directory) return std::nullopt;
    auto found = (*directory)->find(name);
    if (not found) return failure(found.error());
    if (not*found) return std::nullopt;
    return stored_stream{.name = std::move(**found), .directory = std::move(*directory)};
}

// Creates an empty stream: an attribute, or a file if the file has no room for one more attribute.
// Another server may have created it meanwhile: then it keeps its content.
result<void> create_stream(const host_tree& tree, const io::handle& file, const stream_request& wanted) {
    const std::string_view name = wanted.name;
    const auto made = store_attribute(file, attribute_of(name), {}, io::xattr_creation::only_if_not_exist);
    if (not made and made.error().code() == EEXIST and not wanted.exclusive) return {};
    if (made or made.error().code() != ENOSPC) return made;
    result<void> outcome = made;
    for (unsigned attempt = 0; attempt != limits::lookup_attempts_max; ++attempt) {
        const auto directory = stream_store(tree).find_or_create(file);
        if (not directory) return failure(directory.error());
        const auto created = directory->create(name, stream_directory::existing::refuse);
        if (created or (created.error().code() == EEXIST and not wanted.exclusive)) return {};
        outcome = failure(created.error());
        // The directory was empty, and has been removed.
        if (not is_missing(created.error())) break;
    }
    return outcome;
}

}  // namespace

result<void> remove_small_spellings(const io::handle& file, std::string_view name,
                                    std::initializer_list<std::string_view> kept) {
    const auto small = list_small_streams(file);
    if (not small) return failure(small.error());
    for (const stream_info& each : small->streams) {
        if (std::ranges::find(kept, each.name) != kept.end() or not equal_ignoring_case(each.name, name))
            continue;
        const auto gone = io::remove_xattr(file, attribute_of(each.name));
        if (not gone and gone.error().code() != ENODATA) return gone;
    }
    return {};
}

result<node_ptr> open_host_stream(host_tree& tree, const io::handle& file, file_key key, std::string path,
                                  const stream_request& wanted) {
    if (const auto valid = check_stream_name(wanted.name); not valid) return failure(valid.error());
    auto found = find_stream(tree, file, wanted.name);
    if (not found) return failure(found.error());
    if (*found and wanted.create and wanted.exclusive)
        return failure(error::with_path(EEXIST, "create stream", wanted.name));
    if (not*found) {
        if (not wanted.create) return failure(error::with_path(ENOENT, "find stream", wanted.name));
        if (const auto may = tree.may_change(); not may) return failure(may.error());
        if (const auto made = create_stream(tree, file, wanted); not made) return failure(made.error());
    }
    io::handle held(
        {.descriptor = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0), .kind = io::handle_kind::path});
    if (not held.is_valid()) return failure(error::last("dup", file.descriptor()));
    auto name = *found ? std::move((*found)->name) : std::string(wanted.name);
    auto stream = std::make_unique<host_stream>(tree, std::move(held), key, std::move(path), std::move(name));
    if (*found and (*found)->directory) {
        if (const auto opened = stream->open_found(*(*found)->directory); not opened)
            return failure(opened.error());
    }
    return stream;
}

result<std::vector<stream_info>> list_host_streams(const host_tree& tree, const io::handle& file) {
    auto small = list_small_streams(file);
    if (not small) return failure(small.error());
    if (not small->has_reference) return std::move(small->streams);
    const auto directory = stream_store(tree).find(file);
    if (not directory) return failure(directory.error());
    if (not*directory) return std::move(small->streams);
    auto large = (*directory)->list();
    if (not large) return failure(large.error());
    for (stream_info& each : *large) {
        const bool is_leftover = std::ranges::any_of(small->streams, [&](const stream_info& known) {
            return equal_ignoring_case(known.name, each.name);
        });
        if (not is_leftover) small->streams.push_back(std::move(each));
    }
    return std::move(small->streams);
}

host_stream::host_stream(host_tree& tree, io::handle file, file_key key, std::string path, std::string name)
    : node(tree.domain_of_found()),
      tree_(tree),
      file_(std::move(file)),
      path_(std::move(path)),
      key_(key),
      name_(std::move(name)) {
    key_.stream = stream_number(name_);
}

file_key host_stream::key() const noexcept {
    const std::scoped_lock guard(name_mutex_);
    return key_;
}

std::string host_stream::stream_name() const {
    const std::scoped_lock guard(name_mutex_);
    return name_;
}

std::string host_stream::attribute() const {
    return attribute_of(stream_name());
}

std::string host_stream::path() const {
    return shown_path(tree_.present_path(file_, domain().may_call_here()).value_or(path_));
}

bool host_stream::has_lost_name() noexcept {
    return vfs::has_lost_name(tree_, file_, path_);
}

// As for a file, the rights are checked when the data is opened: later transfers may not have the
// identity of the account, and files in the store would not refuse the process. By the system call
// itself: where the kernel lacks it, the function of the C library checks another identity.
result<void> host_stream::may_use(data_access wanted) const noexcept {
    const int rights = (wanted.read ? R_OK : 0) | (wanted.write ? W_OK : 0);
    if (rights == 0) return {};
    if (::syscall(SYS_faccessat2, file_.descriptor(), "", rights, AT_EACCESS | AT_EMPTY_PATH) == 0) return {};
    return failure(error::last("open stream", file_.descriptor()));
}

result<void> host_stream::may_change_streams() const noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    return may_use({.write = true});
}

// --- names

result<void> host_stream::rename(std::string_view name, when_taken taken) noexcept {
    if (const auto may = may_change_streams(); not may) return may;
    if (const auto valid = check_stream_name(name); not valid) return valid;
    const std::string before = stream_name();
    const auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (not bytes) {  // large, or removed
        if (const auto opened = open_large(purpose::change); not opened) return failure(opened.error());
    }
    auto found = find_stream(tree_, file_, name);
    if (not found) return failure(found.error());
    const bool is_own = *found and (*found)->name == before;
    if (is_own and before == name) return {};
    if (*found and not is_own and taken == when_taken::refuse)
        return failure(error::with_path(EEXIST, "rename stream", name));
    replaced_stream replaced;
    if (*found and not is_own)
        replaced = {.name = std::move((*found)->name), .is_large = (*found)->directory.has_value()};
    if (bytes) {
        const auto renamed = rename_small(name, *bytes, replaced);
        if (renamed or renamed.error().code() != ENOSPC) return renamed;
        // Its attribute does not fit next to the old one.
        if (const auto moved = make_large(); not moved) return failure(moved.error());
    }
    return rename_large(name, replaced);
}

// The new attribute comes first, so that nothing is lost if there is no space. It is the stream of
// that name from then on; if the replaced one has this very name, the file system exchanges the
// value in one step.
result<void> host_stream::rename_small(std::string_view name, std::span<const std::byte> bytes,
                                       const replaced_stream& replaced) {
    const std::string wanted = attribute_of(name);
    if (const auto done = store_attribute(file_, wanted, bytes); not done) return done;
    const bool is_exchanged = replaced.name == name and not replaced.is_large;
    const auto refuse = [&](const error& why) {
        // Or there would be two names of one stream. But a stream that had this name is not lost.
        if (not is_exchanged) (void)io::remove_xattr(file_, wanted);
        return failure(why);
    };
    if (const auto gone = remove_small_spellings(file_, name, {name, stream_name()}); not gone)
        return refuse(gone.error());
    // Files of this name, replaced or left over from a crash, would be streams without the
    // attribute.
    if (const auto gone = remove_large(name); not gone) return refuse(gone.error());
    const std::string before = stream_name();
    if (const auto gone = remove_large(before); not gone) return refuse(gone.error());
    if (const auto gone = io::remove_xattr(file_, attribute_of(before)); not gone) return gone;
    follow_stream_name(name);
    return {};
}

result<void> host_stream::rename_large(std::string_view name, const replaced_stream& replaced) {
    const auto directory = stream_store(tree_).find_or_create(file_);
    if (not directory) return failure(directory.error());
    std::string before = stream_name();
    // An attribute would remain the stream of that name, and without it, a leftover would.
    if (not replaced.name.empty() and not replaced.is_large) {
        if (const auto gone = directory->remove_every_spelling(name, before); not gone)
            return failure(gone.error());
        if (const auto gone = remove_small_spellings(file_, name); not gone) return gone;
    }
    // By way of the replaced one's name, so that there are never two names that differ in case
    // only.
    if (replaced.is_large and replaced.name != name) {
        if (const auto done = directory->rename(before, replaced.name); not done) return done;
        before = replaced.name;
    }
    if (const auto done = directory->rename(before, name); not done) return done;
    follow_stream_name(name);
    touch();
    // A crash may have interrupted an earlier rename.
    if (const auto gone = directory->remove_every_spelling(name, name); not gone)
        return failure(gone.error());
    return {};
}

void host_stream::follow_stream_name(std::string_view name) noexcept {
    const std::scoped_lock guard(name_mutex_);
    name_ = name;
    key_.stream = stream_number(name_);
}

// Removes the file of a stream, and those that crashes have left; false if there is none.
result<bool> host_stream::remove_large(std::string_view name) {
    if (name.empty()) return false;
    auto found = stream_store(tree_).find(file_);
    if (not found) return failure(found.error());
    if (not*found) return false;
    if (not(*found)->is_own()) {
        const auto spelled = (*found)->find(name);
        if (not spelled) return failure(spelled.error());
        if (not*spelled) return false;
        auto own = stream_store(tree_).find_or_create(file_, name);
        if (not own) return failure(own.error());
        // It has no copy of the stream, unless another server has made it.
        if (const auto gone = own->remove_every_spelling(name); not gone) return gone;
        own->remove_if_empty();
        return true;
    }
    const auto gone = (*found)->remove_every_spelling(name);
    if (gone and *gone) (*found)->remove_if_empty();
    return gone;
}

result<name_place> host_stream::place() noexcept {
    return place_on_host(file_, file_);
}

result<void> host_stream::remove() noexcept {
    if (const auto may = may_change_streams(); not may) return may;
    const std::string name = stream_name();
    // The file first: if it is only left over, it would be the stream without the attribute.
    auto was_large = remove_large(name);
    if (not was_large) return failure(was_large.error());
    if (const auto gone = remove_small_spellings(file_, name, {name}); not gone) return gone;
    const auto done = io::remove_xattr(file_, attribute_of(name));
    if (done or done.error().code() != ENODATA) return done;
    // Another server may have made it large in between.
    if (not*was_large) was_large = remove_large(name);
    if (not was_large) return failure(was_large.error());
    if (not*was_large) return failure({ENOENT, "remove stream"});
    touch();
    return {};
}

// --- properties of its file

result<std::vector<stream_info>> host_stream::streams() noexcept {
    return list_host_streams(tree_, file_);
}

result<std::vector<extended_attribute>> host_stream::extended_attributes() noexcept {
    return list_extended_attributes(file_);
}

result<void> host_stream::set_extended_attribute(std::string_view name,
                                                 std::span<const std::byte> value) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    return change_extended_attribute(file_, name, value);
}

result<std::vector<std::byte>> host_stream::security() noexcept {
    return load_security(file_);
}

result<void> host_stream::set_security(std::span<const std::byte> descriptor) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    return store_security(file_, descriptor);
}

}  // namespace sluice::vfs
