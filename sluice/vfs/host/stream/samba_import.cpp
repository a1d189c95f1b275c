#include "sluice/vfs/host/stream/samba_import.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_walk.hpp"
#include "sluice/vfs/host/stream/host_stream.hpp"

namespace sluice::vfs {
namespace {

constexpr const char* samba_mark = "user.SAMBA_STREAMS";
constexpr std::size_t step_bytes = 1U << 20;

// A stream has this name until it is complete: the next attempt would find other content under its
// own name, which it must not replace.
constexpr std::string_view incomplete_name = ".sluice-import";

bool is_marked(const io::handle& file) noexcept {
    std::array<std::byte, 1> value{};
    const auto mark = io::fetch_xattr(file, samba_mark, value);
    return mark and mark->size() == 1 and value[0] == std::byte{'1'};
}

std::vector<std::string> names_in(const io::directory_handle& directory) {
    std::vector<std::string> names;
    (void)for_each_entry(directory, io::stat_fields::none,
                         [&](const io::directory_entry& each) { names.emplace_back(each.name); });
    return names;
}

}  // namespace

samba_import::samba_import(host_volume& volume, io::io_multiplexer& loop, const samba_import_options& options,
                           std::function<void(const std::string&)> report)
    : tree_(volume.tree()), loop_(loop), options_(options), report_(std::move(report)) {}

result<samba_import_result> samba_import::run() {
    if (not options_.depot.empty())
        if (const auto listed = list_depot(); not listed) return failure(listed.error());
    const auto visit = [&](const walked_entry& at) {
        const auto open = io::open_at(at.directory, io::terminated_path(at.entry.name),
                                      {.flags = O_PATH | O_NOFOLLOW, .operation = "open"});
        if (not open) return;  // renamed or removed in between
        const io::handle file({.descriptor = *open, .kind = io::handle_kind::path});
        import_file({.open = file, .path = at.path}, at.entry.status.device, at.entry.status.inode);
    };
    const walk_errors errors = walk(tree_, visit, [](const std::string&) {});
    result_.unreadable = errors.directories;
    if (errors.directories != 0) report_(errors.first + ": cannot list the directory");
    for (const auto& [inode, each] : directories_)
        if (not each.is_used) ++result_.unmatched;
    return result_;
}

// The depot has two levels of directories, by a hash, above those of the files.
result<void> samba_import::list_depot() {
    auto depot = io::path_handle::open(options_.depot, io::confinement::beneath_one_mount_no_symlinks);
    if (not depot) return failure(depot.error());
    depot_ = std::move(*depot);
    const auto listed = io::directory_handle::open(depot_, ".");
    if (not listed) return failure(listed.error());
    for (const std::string& first : names_in(*listed)) {
        const auto upper = io::directory_handle::open(depot_, first);
        if (not upper) continue;  // a file, perhaps
        for (const std::string& second : names_in(*upper)) {
            const std::string path = join_path(first, second);
            const auto lower = io::directory_handle::open(depot_, path);
            if (not lower) continue;
            for (const std::string& name : names_in(*lower))
                if (const auto of = decode_samba_depot_name(name))
                    directories_.emplace(
                        of->inode, depot_directory{.device = of->device, .path = join_path(path, name)});
        }
    }
    return {};
}

void samba_import::import_file(const source_file& file, std::uint64_t device, std::uint64_t inode) {
    const auto before = io::status_of(file.open, io::stat_fields::modified);
    const std::uint64_t attempts_before = result_.imported + result_.failed;
    import_attributes(file);
    for (auto [each, last] = directories_.equal_range(inode); each != last; ++each) {
        const bool is_of_file = each->second.device == device or options_.any_device;
        if (is_of_file and (not options_.needs_mark or is_marked(file.open)))
            import_depot(file, each->second);
    }
    // A change of a large stream is one of its file, but this is none.
    if (result_.imported + result_.failed == attempts_before or not before) return;
    const auto restored = io::set_times(file.open, {.modified = before->modified});
    if (not restored)
        report_(file.path + ": cannot keep the modification time: " + restored.error().message());
}

void samba_import::count(const source_file& file, std::string_view stream, const result<outcome>& done) {
    const std::string what = file.path + ':' + std::string(stream);
    if (not done) {
        ++result_.failed;
        return report_(what + ": " + done.error().message());
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
        if (listed.error().code() != EOPNOTSUPP) count(file, "*", failure(listed.error()));
        return;
    }
    for (std::string_view rest = *listed; not rest.empty();) {
        const std::string attribute(io::take_xattr_name(rest));
        if (const auto stream = samba_stream_of_attribute(attribute))
            count(file, *stream, import_attribute(file, attribute, *stream));
    }
}

result<samba_import::outcome> samba_import::import_attribute(const source_file& file,
                                                             const std::string& attribute,
                                                             std::string_view stream) {
    const auto value = load_attribute(file.open, attribute);
    if (not value) return failure(value.error());
    const auto decoded = decode_samba_value(*value);
    if (not decoded) return failure(error::with_path(EBADMSG, "decode", attribute));
    std::vector<std::byte> content(decoded->content.begin(), decoded->content.end());
    for (unsigned number = 1; number <= decoded->extensions; ++number) {
        const auto more = load_attribute(file.open, samba_extension_of(attribute, number));
        // Samba ends the stream here, too: a write was interrupted.
        if (not more and more.error() == std::errc::no_such_file_or_directory) break;
        if (not more) return failure(more.error());
        content.insert(content.end(), more->begin(), more->end());
    }
    const auto done = import_stream(
        file, stream, content.size(),
        [&](std::span<std::byte> into, std::uint64_t offset) -> result<std::size_t> {
            const auto part = std::span(content).subspan(static_cast<std::size_t>(offset)).first(into.size());
            std::ranges::copy(part, into.begin());
            return part.size();
        });
    if (not done or *done == outcome::conflict or not options_.removes_sources) return done;
    // The first attribute first: without the others, it would be a shorter stream.
    if (const auto gone = io::remove_xattr(file.open, attribute); not gone) return failure(gone.error());
    for (unsigned number = 1; number <= decoded->extensions; ++number)
        (void)io::remove_xattr(file.open, samba_extension_of(attribute, number));
    return done;
}

// --- streams_depot

void samba_import::import_depot(const source_file& file, depot_directory& from) {
    from.is_used = true;
    const auto directory = io::directory_handle::open(depot_, from.path);
    if (not directory) return count(file, "*", failure(directory.error()));
    for (const std::string& name : names_in(*directory)) {
        const auto stream = samba_stream_of_depot_file(name);
        if (not stream) continue;
        auto opened = io::file_handle::open(*directory, name, io::mode::read);
        if (not opened) {
            count(file, *stream, failure(opened.error()));
            continue;
        }
        const auto done = import_depot_file(file, *opened, *stream);
        count(file, *stream, done);
        if (done and *done != outcome::conflict and options_.removes_sources)
            (void)::unlinkat(directory->descriptor(), name.c_str(), 0);
    }
    if (not options_.removes_sources) return;
    // Directories that are not empty stay.
    if (not io::remove_directory(depot_, from.path)) return;
    (void)io::remove_xattr(file.open, samba_mark);
    for (std::string_view above = split_path(from.path).parent; not above.empty();
         above = split_path(above).parent)
        if (not io::remove_directory(depot_, above)) return;
}

result<samba_import::outcome> samba_import::import_depot_file(const source_file& file, io::file_handle& from,
                                                              std::string_view stream) {
    const auto size = from.maximum_extent();
    if (not size) return failure(size.error());
    return import_stream(file, stream, *size,
                         [&](std::span<std::byte> into, std::uint64_t offset) -> result<std::size_t> {
                             const auto read = from.read({.buffers = into, .offset = offset});
                             if (not read) return failure(read.error());
                             return read->size();
                         });
}

// --- both

result<node_ptr> samba_import::open_stream(const source_file& file, const stream_request& wanted) {
    const auto facts = stream_file::of(file.open);
    if (not facts) return failure(facts.error());
    const file_key key{.volume = facts->device, .file = facts->inode, .stream = 0};
    return open_host_stream(tree_, file.open, key, file.path, wanted);
}

void samba_import::remove_incomplete(const source_file& file) {
    if (const auto left = open_stream(file, {.name = incomplete_name})) (void)remove(**left);
}

result<samba_import::outcome> samba_import::import_stream(const source_file& file, std::string_view stream,
                                                          std::uint64_t bytes, const reader& read) {
    remove_incomplete(file);
    auto opened = open_stream(file, {.name = stream});
    if (opened) {
        const auto same = is_equal(**opened, bytes, read);
        if (not same) return failure(same.error());
        if (not*same) return outcome::conflict;
        if (const auto done = make_durable(**opened); not done) return failure(done.error());
        return outcome::present;
    }
    if (opened.error() != std::errc::no_such_file_or_directory) return failure(opened.error());
    const auto stored = store_small(file, stream, bytes, read);
    if (not stored) return failure(stored.error());
    if (not*stored) {
        if (const auto done = store_large(file, stream, bytes, read); not done) return failure(done.error());
    }
    opened = open_stream(file, {.name = stream});
    if (not opened) return failure(opened.error());
    if (const auto done = make_durable(**opened); not done) return failure(done.error());
    return outcome::imported;
}

result<bool> samba_import::store_small(const source_file& file, std::string_view stream, std::uint64_t bytes,
                                       const reader& read) {
    if (bytes > limits::inline_stream_bytes_max) return false;
    std::vector<std::byte> content(static_cast<std::size_t>(bytes));
    if (const auto done = read_all(content, read); not done) return failure(done.error());
    const std::string attribute = std::string(stream_prefix) + std::string(stream);
    const auto stored = store_attribute(file.open, attribute, content, io::xattr_creation::only_if_not_exist);
    if (stored) return true;
    if (stored.error().code() == ENOSPC) return false;
    return failure(stored.error());
}

result<void> samba_import::read_all(std::span<std::byte> into, const reader& read) {
    for (std::size_t at = 0; at != into.size();) {
        const auto got = read(into.subspan(at), at);
        if (not got) return failure(got.error());
        if (*got == 0) return failure({EIO, "read stream"});  // it became shorter
        at += *got;
    }
    return {};
}

result<void> samba_import::store_large(const source_file& file, std::string_view stream, std::uint64_t bytes,
                                       const reader& read) {
    const auto made = open_stream(file, {.name = incomplete_name, .create = true, .exclusive = true});
    if (not made) return failure(made.error());
    result<void> done = copy(**made, bytes, read);
    if (done) done = io::sync_wait(loop_, (*made)->co_flush());
    if (done) done = (*made)->names()->rename(stream, when_taken::refuse);
    if (not done) (void)remove(**made);
    return done;
}

// Before its source is removed.
result<void> samba_import::make_durable(node& stream) {
    if (not options_.removes_sources) return {};
    return io::sync_wait(loop_, stream.co_flush());
}

result<void> samba_import::copy(node& to, std::uint64_t bytes, const reader& read) {
    node_data& data = *to.data();
    if (const auto granted = data.open_data({.read = true, .write = true}); not granted) return granted;
    std::vector<std::byte> step(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, step_bytes)));
    for (std::uint64_t at = 0; at != bytes;) {
        const auto wanted =
            std::span(step).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, step.size())));
        const auto got = read(wanted, at);
        if (not got) return failure(got.error());
        if (*got == 0) return failure({EIO, "read stream"});  // it became shorter
        if (const auto written = data.write_here(wanted.first(*got), at); not written) return written;
        at += *got;
    }
    return {};
}

result<bool> samba_import::is_equal(node& present, std::uint64_t bytes, const reader& read) {
    const auto status = present.status();
    if (not status) return failure(status.error());
    if (status->size_bytes != bytes) return false;
    node_data& data = *present.data();
    if (const auto granted = data.open_data({.read = true}); not granted) return failure(granted.error());
    std::vector<std::byte> step(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, step_bytes)));
    std::vector<std::byte> other(step.size());
    for (std::uint64_t at = 0; at != bytes;) {
        const auto wanted =
            std::span(step).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, step.size())));
        const auto got = read(wanted, at);
        if (not got) return failure(got.error());
        const auto compared = std::span(other).first(*got);
        const auto found = io::sync_wait(loop_, data.co_read(compared, at, nullptr));
        if (not found) return failure(found.error());
        if (*got == 0 or *found != *got or not std::ranges::equal(wanted.first(*got), compared)) return false;
        at += *got;
    }
    return true;
}

}  // namespace sluice::vfs
