#include "sluice/vfs/host/stream/samba_depot.hpp"

#include <fcntl.h>

#include <iterator>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/host/stream/samba_streams.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr auto limit = io::confinement::beneath_one_mount_no_symlinks;

// Beneath the root, where users can put a link to any directory.
result<io::path_handle> open_usual(const io::path_handle& root) {
    const auto without_links = io::path_handle::open(root, ".", limit);
    if (not without_links) return failure(without_links.error());
    return io::path_handle::open(*without_links, usual_samba_depot, limit);
}

std::string problem_with_usual(const error& why) {
    std::string problem(usual_samba_depot);
    if (why.code() == ELOOP or why.code() == EXDEV)
        return problem +
               ": is a symbolic link or another file system, and could be another user's; if it is the "
               "depot, name its directory with --depot";
    return problem + ": " + why.reason();
}

}  // namespace

std::optional<std::string> samba_depot::open(const io::path_handle& root, const std::string& path) {
    auto opened = path.empty() ? open_usual(root) : io::path_handle::open(path, limit);
    if (not opened and path.empty()) {
        if (opened.error().code() == ENOENT or opened.error().code() == ENOTDIR) return std::nullopt;
        return problem_with_usual(opened.error());
    }
    if (not opened) return opened.error().message();
    const auto status = io::status_of(*opened, io::stat_fields::permissions);
    if (not status) return status.error().message();
    constexpr unsigned writable_by_others = 022;
    constexpr unsigned sticky = 01000;
    const unsigned mode = status->permission_bits;
    if ((mode & writable_by_others) != 0 and (mode & sticky) == 0)
        return (path.empty() ? std::string(usual_samba_depot) : path) +
               ": other accounts could replace its directories; set the sticky bit of the depot (chmod +t)";
    depot_ = std::move(*opened);
    return std::nullopt;
}

std::vector<std::string> samba_depot::names_in(const std::string& path, const reporter& report) {
    std::vector<std::string> names;
    const auto listed = io::directory_handle::open(depot_, path);
    // A file, or a link, is nothing that Samba has put here.
    if (not listed and (listed.error().code() == ENOTDIR or listed.error().code() == ELOOP)) return names;
    const auto done =
        listed ? for_each_entry(*listed, io::stat_fields::none,
                                [&](const io::directory_entry& each) { names.emplace_back(each.name); })
               : result<void>(failure(listed.error()));
    if (done) return names;
    ++unreadable_;
    report(path + ": cannot list the directory of the depot: " + done.error().reason());
    return names;
}

std::uint64_t samba_depot::list(const reporter& report) {
    for (const std::string& first : names_in(".", report))
        for (const std::string& second : names_in(first, report)) {
            const std::string path = join_path(first, second);
            for (const std::string& name : names_in(path, report))
                if (const auto of = decode_samba_depot_name(name))
                    directories_.emplace(of->inode,
                                         directory{.device = of->device, .path = join_path(path, name)});
        }
    return unreadable_;
}

std::optional<std::pair<std::string, std::string>> samba_depot::ambiguous() const {
    for (auto each = directories_.begin(); each != directories_.end(); ++each) {
        const auto next = std::next(each);
        if (next != directories_.end() and next->first == each->first and
            next->second.device != each->second.device)
            return std::pair(each->second.path, next->second.path);
    }
    return std::nullopt;
}

result<io::directory_handle> samba_depot::open_directory(const directory& which) const {
    return io::directory_handle::open(depot_, which.path);
}

result<std::vector<std::string>> samba_depot::streams_in(const io::directory_handle& directory) {
    std::vector<std::string> names;
    const auto done = for_each_entry(directory, io::stat_fields::none, [&](const io::directory_entry& each) {
        if (samba_stream_of_depot_file(each.name)) names.emplace_back(each.name);
    });
    if (not done) return failure(done.error());
    return names;
}

result<samba_depot::source> samba_depot::open_source(const io::directory_handle& directory,
                                                     const std::string& name) {
    const auto opened =
        io::open_at(directory, io::terminated_path(name),
                    {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, .operation = "open stream"});
    if (not opened) return failure(opened.error());
    io::file_handle file(
        io::native_handle{.descriptor = *opened, .kind = io::handle_kind::file, .readable = true});
    const auto status =
        io::status_of(file, io::stat_fields::type | io::stat_fields::owner | io::stat_fields::size);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular) return failure(error::with_path(EINVAL, "open stream", name));
    if (::fcntl(file.descriptor(), F_SETFL, 0) != 0)
        return failure(error::last("open stream", file.descriptor()));
    return source{.file = std::move(file), .status = *status};
}

bool samba_depot::remove_empty(const directory& which) const noexcept {
    if (not io::remove_directory(depot_, which.path)) return false;
    for (std::string_view above = split_path(which.path).parent; not above.empty();
         above = split_path(above).parent)
        if (not io::remove_directory(depot_, above)) break;
    return true;
}

}  // namespace sluice::vfs
