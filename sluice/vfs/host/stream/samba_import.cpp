#include "sluice/vfs/host/stream/samba_import.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/stream/host_stream.hpp"

namespace sluice::vfs {
namespace {

constexpr const char* samba_mark = "user.SAMBA_STREAMS";

bool is_marked(const io::handle& file) noexcept {
    std::array<std::byte, 1> value{};
    const auto mark = io::fetch_xattr(file, samba_mark, value);
    return mark and mark->size() == 1 and value[0] == std::byte{'1'};
}

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

}  // namespace

samba_import::samba_import(host_volume& volume, io::io_multiplexer& loop, const samba_import_options& options,
                           std::function<void(const std::string&)> report)
    : tree_(volume.tree()), loop_(loop), options_(options), report_(std::move(report)) {}

std::optional<std::string> samba_import::open_depot() {
    if (auto problem = depot_.open(tree_.root(), options_.depot)) return problem;
    if (not depot_.is_open()) return std::nullopt;
    result_.unreadable += depot_.list(report_);
    if (not options_.any_device) return std::nullopt;
    const auto several = depot_.ambiguous();
    if (not several) return std::nullopt;
    return (options_.depot.empty() ? std::string(usual_samba_depot) : options_.depot) +
           ": has streams of files on several file systems: '" + several->first + "' and '" +
           several->second + "' have one inode number; --any-device would mix them";
}

samba_import_result samba_import::run() {
    const walk_errors errors = walk(tree_, [&](const walked_entry& at) { visit(at); });
    result_.unreadable += errors.directories;
    if (errors.directories != 0) report_(errors.first + ": cannot list the directory");
    report_unused();
    return result_;
}

// A local user may have put another file in the place of the one that was listed. So only the
// number of the open file decides which streams it gets.
void samba_import::visit(const walked_entry& at) {
    const auto opened = io::open_at(at.directory, io::terminated_path(at.entry.name),
                                    {.flags = O_PATH | O_NOFOLLOW, .operation = "open"});
    if (not opened) return report_unopened(at.path, opened.error());
    const io::handle open({.descriptor = *opened, .kind = io::handle_kind::path});
    const auto status = io::status_of(open, io::stat_fields::type);
    const auto facts = stream_file::of(open);
    if (not status or not facts) return report_unopened(at.path, status ? facts.error() : status.error());
    if (status->type != io::file_type::regular and status->type != io::file_type::directory) return;
    const source_file file{.open = open, .path = at.path, .facts = *facts};
    import_attributes(file);
    for (auto [each, last] = depot_.all().equal_range(facts->inode); each != last; ++each)
        if (may_have_streams_in(each->second, file)) import_depot(file, each->second);
}

void samba_import::report_unopened(const std::string& path, const error& why) {
    if (is_missing(why) or why.code() == ELOOP) return;  // renamed or removed in between
    if (why.code() == EXDEV) {
        ++result_.mounts;
        return report_(path + ": another file system, not searched; import it by itself");
    }
    ++result_.unreadable;
    report_(path + ": " + why.reason());
}

void samba_import::report_unused() {
    for (const auto& [inode, each] : depot_.all()) {
        if (each.is_used) continue;
        const auto directory = depot_.open_directory(each);
        const auto streams = directory ? samba_depot::streams_in(*directory)
                                       : result<std::vector<std::string>>(failure(directory.error()));
        if (streams and streams->empty()) continue;
        ++(each.is_unmarked ? result_.unmarked : result_.unmatched);
        report_(each.path + (each.is_unmarked ? ": the file of these streams has no mark of Samba"
                                              : ": the file of these streams was not found"));
    }
}

void samba_import::count(const source_file& file, std::string_view stream, const attempt& done) {
    const std::string what = file.path + ':' + std::string(stream);
    if (not done) {
        ++result_.failed;
        return report_(what + ": " + done.error());
    }
    switch (*done) {
        case outcome::imported:
            ++result_.imported;
            break;
        case outcome::present:
            ++result_.present;
            break;
        case outcome::conflict:
            ++result_.conflicts;
            report_(what + ": exists with other content; not changed");
    }
}

// --- streams_xattr

void samba_import::import_attributes(const source_file& file) {
    std::vector<char> storage(limits::attribute_bytes_max);
    const auto listed = io::list_xattrs(file.open, storage);
    if (not listed) {
        if (listed.error().code() != EOPNOTSUPP) count(file, "*", std::unexpected(listed.error().message()));
        return;
    }
    for (std::string_view rest = *listed; not rest.empty();) {
        const std::string attribute(io::take_xattr_name(rest));
        // The prefix of further attributes may begin like that of the first.
        if (attribute.starts_with(options_.extension_prefix)) continue;
        if (const auto stream = samba_stream_of_attribute(attribute))
            count(file, *stream, import_attribute(file, attribute, *stream));
    }
}

samba_import::attempt samba_import::import_attribute(const source_file& file, const std::string& attribute,
                                                     std::string_view stream) {
    const auto failed = [](const error& why) { return std::unexpected(why.message()); };
    const auto value = load_attribute(file.open, attribute);
    if (not value) return failed(value.error());
    const auto decoded = decode_samba_value(*value);
    if (not decoded) return failed(error::with_path(EBADMSG, "decode", attribute));
    std::vector<std::byte> bytes(decoded->content.begin(), decoded->content.end());
    for (unsigned number = 1; number <= decoded->extensions; ++number) {
        const std::string extension = samba_extension_of(attribute, number, options_.extension_prefix);
        const auto more = load_attribute(file.open, extension);
        if (not more and is_missing(more.error())) {
            // Samba would end the stream here, as after an interrupted write. But perhaps the name
            // is another one, and then the rest would be lost.
            ++result_.incomplete;
            return std::unexpected("attribute " + extension + ", which has a part of it, is missing");
        }
        if (not more) return failed(more.error());
        bytes.insert(bytes.end(), more->begin(), more->end());
    }
    samba_content content(std::move(bytes));
    const auto done = import_stream(file, stream, content);
    if (not done) return failed(done.error());
    if (*done == outcome::conflict or not options_.removes_sources) return *done;
    // The first attribute first: without the others, it would be a shorter stream.
    if (const auto gone = io::remove_xattr(file.open, attribute); not gone) return failed(gone.error());
    for (unsigned number = 1; number <= decoded->extensions; ++number)
        (void)io::remove_xattr(file.open, samba_extension_of(attribute, number, options_.extension_prefix));
    return *done;
}

// --- streams_depot

bool samba_import::may_have_streams_in(const samba_depot::directory& from,
                                       const source_file& file) const noexcept {
    // Another file system has files with the same numbers.
    return options_.any_device ? file.facts.device == tree_.root_device : file.facts.device == from.device;
}

void samba_import::import_depot(const source_file& file, samba_depot::directory& from) {
    if (from.is_used) return;  // by another name of the file
    from.is_unmarked = options_.needs_mark and not is_marked(file.open);
    if (from.is_unmarked) return;
    from.is_used = true;
    const auto directory = depot_.open_directory(from);
    const auto names = directory ? samba_depot::streams_in(*directory)
                                 : result<std::vector<std::string>>(failure(directory.error()));
    if (not names) return count(file, "*", std::unexpected(names.error().message()));
    for (const std::string& name : *names) {
        const auto stream = samba_stream_of_depot_file(name).value_or(name);
        const attempt done = import_depot_file(file, *directory, name, stream);
        count(file, stream, done);
        if (not done or *done == outcome::conflict or not options_.removes_sources) continue;
        if (::unlinkat(directory->descriptor(), name.c_str(), 0) == 0) continue;
        count(file, stream, std::unexpected(error::with_path(errno, "remove", name).message()));
    }
    if (options_.removes_sources and depot_.remove_empty(from)) (void)io::remove_xattr(file.open, samba_mark);
}

samba_import::attempt samba_import::import_depot_file(const source_file& file,
                                                      const io::directory_handle& directory,
                                                      const std::string& name, std::string_view stream) {
    auto source = samba_depot::open_source(directory, name);
    if (not source) return std::unexpected(source.error().message());
    // Users can rename the directories of the depot, and so give streams to other files.
    const std::uint32_t owner = source->status.user_id;
    if (owner != file.facts.user_id and not options_.any_owner) {
        ++result_.foreign;
        return std::unexpected("belongs to user " + std::to_string(owner) + ", and the file to user " +
                               std::to_string(file.facts.user_id));
    }
    samba_content content(std::move(source->file), source->status.size_bytes);
    const auto done = import_stream(file, stream, content);
    if (not done) return std::unexpected(done.error().message());
    return *done;
}

// --- both

result<node_ptr> samba_import::open_stream(const source_file& file, std::string_view name) {
    const file_key key{.volume = file.facts.device, .file = file.facts.inode, .stream = 0};
    return open_host_stream(tree_, file.open, key, file.path, {.name = name});
}

// An import that was interrupted has left it.
void samba_import::remove_incomplete(const source_file& file) {
    const auto directory = stream_store(tree_).find(file.open);
    if (directory and *directory and (*directory)->is_own())
        (void)(*directory)->remove(incomplete_stream_name);
}

result<samba_import::outcome> samba_import::import_stream(const source_file& file, std::string_view stream,
                                                          samba_content& content) {
    remove_incomplete(file);
    auto opened = open_stream(file, stream);
    if (opened) {
        const auto same = is_equal(**opened, content);
        if (not same) return failure(same.error());
        if (not*same) return outcome::conflict;
        if (const auto done = make_durable(**opened); not done) return failure(done.error());
        return outcome::present;
    }
    if (not is_missing(opened.error())) return failure(opened.error());
    const auto stored = store_small(file, stream, content);
    if (not stored) return failure(stored.error());
    if (not*stored) {
        if (const auto done = store_large(file, stream, content); not done) return failure(done.error());
    }
    opened = open_stream(file, stream);
    if (not opened) return failure(opened.error());
    if (const auto done = make_durable(**opened); not done) return failure(done.error());
    return outcome::imported;
}

result<bool> samba_import::is_equal(node& present, samba_content& content) {
    const auto status = present.status();
    if (not status) return failure(status.error());
    if (const auto granted = present.data()->open_data({.read = true}); not granted)
        return failure(granted.error());
    return content.is_equal(*present.data(), status->size_bytes, loop_);
}

result<bool> samba_import::store_small(const source_file& file, std::string_view stream,
                                       samba_content& content) {
    if (content.size_bytes() > limits::inline_stream_bytes_max) return false;
    std::vector<std::byte> bytes(static_cast<std::size_t>(content.size_bytes()));
    if (const auto done = content.read(bytes, 0); not done) return failure(done.error());
    const std::string attribute = std::string(stream_prefix) + std::string(stream);
    const auto stored = store_attribute(file.open, attribute, bytes, io::xattr_creation::only_if_not_exist);
    if (stored) return true;
    if (stored.error().code() == ENOSPC) return false;
    return failure(stored.error());
}

// Until it is complete, it has the name that no stream can have: the next attempt would find other
// content under its own name, which it must not replace. The calls of a stream's node would set the
// modification time of the file.
result<void> samba_import::store_large(const source_file& file, std::string_view stream,
                                       samba_content& content) {
    const auto directory = stream_store(tree_).find_or_create(file.open);
    if (not directory) return failure(directory.error());
    result<void> done = write_large(file, *directory, content);
    if (done) done = directory->rename(incomplete_stream_name, stream);
    if (done) return done;
    (void)directory->remove(incomplete_stream_name);
    (void)directory->remove_if_empty();
    return done;
}

result<void> samba_import::write_large(const source_file& file, const stream_directory& to,
                                       samba_content& content) {
    auto made = to.create(incomplete_stream_name, stream_directory::existing::empty);
    if (not made) return failure(made.error());
    {
        const account_ptr owner = owner_of(file);
        std::optional<account_identity::use> as_owner;
        if (owner) as_owner.emplace(*owner);
        if (const auto done = content.copy_to(*made, options_.kept_free_bytes); not done) return done;
    }
    const auto durable = made->barrier();
    if (not durable) return failure(durable.error());
    return {};
}

// The quota of the file's owner does not apply to root.
account_ptr samba_import::owner_of(const source_file& file) {
    const std::uint32_t user = file.facts.user_id;
    if (user == ::geteuid()) return nullptr;
    const auto known = owners_.find(user);
    if (known != owners_.end()) return known->second;
    auto created = account_identity::create({.user_id = user, .group_id = file.facts.group_id});
    return owners_.emplace(user, created ? std::move(*created) : nullptr).first->second;
}

// Before its source is removed.
result<void> samba_import::make_durable(node& stream) {
    if (not options_.removes_sources) return {};
    return io::sync_wait(loop_, stream.co_flush());
}

}  // namespace sluice::vfs
