#include "sluice/cli/fat/put_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/fat/file_import.hpp"
#include "sluice/cli/fat/legal_name.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t file_bytes_max = UINT32_MAX;

// The order of the entries of a directory: put_planner, invariant 2.
template <class Child>
bool goes_before(const Child& a, const Child& b) {
    const bool a_is_short = may_be_generated_short_name(a.name);
    const bool b_is_short = may_be_generated_short_name(b.name);
    if (a_is_short != b_is_short) return a_is_short;
    return std::tie(a.name, a.from) < std::tie(b.name, b.from);
}

// Returns whether a file of the volume has the size and the time that a copy of `source` would
// have. FAT stores times with a resolution of two seconds.
bool is_copy_of(const fat::inode_status& present, const fs::path& source) {
    const auto status = io::status_at({}, source.string(), io::follow::yes);
    if (not status or status->size_bytes != present.size_bytes) return false;
    auto modified = std::chrono::time_point_cast<fat::time_point::duration>(status->modified);
    if (const auto latest = source_date()) modified = std::min(modified, *latest);
    return present.modified <= modified and modified - present.modified < std::chrono::seconds(2);
}

std::string_view last_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

void put_planner::report(const fs::path& about, const std::string& why) {
    ++problems_;
    print_error(about.string() + ": " + why);
}

void put_planner::note(const fs::path& about, const std::string& what) const {
    warn(about.string() + ": " + what);
}

// Returns the object if a volume can store its type.
std::optional<put_planner::child> put_planner::child_of(const fs::path& from, std::string host_name) {
    std::error_code why;
    const fs::file_status own = fs::symlink_status(from, why);
    const fs::file_status status = why ? own : fs::status(from, why);
    const bool is_dangling = fs::is_symlink(own) and status.type() == fs::file_type::not_found;
    if (why and not is_dangling) {
        report(from, "open: " + why.message());
        return std::nullopt;
    }
    const bool is_link_to_directory = fs::is_symlink(own) and fs::is_directory(status);
    if (is_link_to_directory or not(fs::is_directory(status) or fs::is_regular_file(status))) {
        note(from, is_link_to_directory ? "skipped: a symbolic link to a directory"
                                        : "skipped: neither a file nor a directory");
        return std::nullopt;
    }
    child made{.from = from, .host_name = std::move(host_name), .is_directory = fs::is_directory(status)};
    made.name = made.host_name;
    return made;
}

std::string put_planner::free_name(const std::string& host_name, const std::string& into) const {
    const std::string base = legal_fat_name(host_name);
    std::string name = base;
    for (std::size_t number = 2; taken_.contains(fold(vfs::join_path(into, name))); ++number)
        name = numbered_fat_name(base, number);
    return name;
}

// Gives every remaining child a legal name. Legal names come first: a new name must not take one of
// them.
void put_planner::name_children(std::vector<child>& children, const std::string& into) {
    std::vector<child> named;
    std::vector<child> illegal;
    for (child& each : children) {
        const auto problem = fat_name_problem(each.name);
        if (not problem) {
            taken_.try_emplace(fold(vfs::join_path(into, each.name)), occupant{});
            named.push_back(std::move(each));
        } else if (policy_ == illegal_names::rename) {
            illegal.push_back(std::move(each));
        } else if (policy_ == illegal_names::skip) {
            note(each.from, "skipped: FAT cannot store this name: " + *problem);
        } else {
            ++illegal_;
            report(each.from, "FAT cannot store this name: " + *problem);
        }
    }
    std::ranges::sort(illegal, {}, &child::host_name);
    for (child& each : illegal) {
        each.name = free_name(each.host_name, into);
        each.is_renamed = true;
        taken_.try_emplace(fold(vfs::join_path(into, each.name)), occupant{});
        note(each.from, "stored as " + each.name);
        named.push_back(std::move(each));
    }
    children = std::move(named);
}

void put_planner::add_children(std::vector<child> children, const std::string& into) {
    name_children(children, into);
    std::ranges::sort(children, goes_before<child>);
    for (const child& each : children) {
        const std::string to = vfs::join_path(into, each.name);
        if (add_step(each, to) and each.is_directory) add_entries_of(each.from, to);
    }
}

void put_planner::add_entries_of(const fs::path& directory, const std::string& into) {
    std::error_code why;
    std::vector<fs::path> found;
    for (fs::directory_iterator each(directory, why), end; not why and each != end; each.increment(why))
        found.push_back(each->path());
    if (why) return report(directory, "list: " + why.message());
    std::ranges::sort(found);  // the order of the messages
    std::vector<child> children;
    for (const fs::path& each : found)
        if (auto made = child_of(each, each.filename().string())) children.push_back(*std::move(made));
    add_children(std::move(children), into);
}

// Returns whether the step is new, or a directory that another source has begun.
bool put_planner::add_step(const child& what, const std::string& to) {
    const auto place = taken_.try_emplace(fold(to), occupant{}).first;
    occupant& there = place->second;
    if (not there.path.empty()) {
        const bool is_merged = there.is_directory and what.is_directory and there.path == to;
        if (is_merged) return true;
        report(what.from,
               fmt::format("has the same name on FAT as {}; rename one of them", there.from.string()));
        return false;
    }
    there = {.from = what.from, .path = to, .is_directory = what.is_directory};
    put_step step{.from = what.from, .to = to, .is_directory = what.is_directory};
    std::error_code why;
    step.modified = fs::last_write_time(what.from, why);
    if (not why and not what.is_directory) step.size_bytes = fs::file_size(what.from, why);
    if (why) {
        report(what.from, "get status: " + why.message());
        return false;
    }
    if (step.size_bytes > file_bytes_max)
        report(what.from,
               fmt::format("has {} bytes; a file on FAT has at most {}", step.size_bytes, file_bytes_max));
    check_volume(what, to);
    steps_.push_back(std::move(step));
    return true;
}

// Reports files and directories of the volume that a step conflicts with.
void put_planner::check_volume(const child& what, const std::string& to) {
    if (to.size() > vfs::limits::path_bytes_max)
        return report(what.from, fmt::format("its path on the volume would have {} bytes; the limit is {}",
                                             to.size(), vfs::limits::path_bytes_max));
    const auto present = system_.find(to);
    if (not present) {
        // Reported for the directory.
        const bool is_missing = present.error() == std::errc::no_such_file_or_directory or
                                present.error() == std::errc::not_a_directory;
        if (not is_missing) report(what.from, fat_message(present.error(), "/" + to));
        return;
    }
    const std::string path = system_.path_of(**present);
    if (not equal_ignoring_case(last_name(path), last_name(to)))
        return report(what.from, fmt::format("/{} is the short name of /{} on the volume", to, path));
    if ((*present)->is_directory != what.is_directory)
        return report(what.from, fmt::format("/{} is {} on the volume", path,
                                             what.is_directory ? "not a directory" : "a directory"));
    // Another file may have got this name, or this number, in an earlier run: the volume does not
    // record it.
    if (what.is_renamed and not what.is_directory and not is_copy_of(system_.status(**present), what.from))
        report(what.from,
               fmt::format("would replace /{}, which may be another file: its size or time differs; "
                           "remove that one, or rename this one",
                           path));
}

void put_planner::add_to_directory(const std::vector<fs::path>& sources, const std::string& into) {
    std::vector<child> children;
    for (const fs::path& source : sources) {
        const fs::path from = source.lexically_normal();
        std::string last = (from.has_filename() ? from : from.parent_path()).filename().string();
        std::error_code ignored;
        if (last == "." or last == "..") {
            add_entries_of(source, into);
        } else if (auto made = child_of(fs::is_directory(source, ignored) ? source / "" : source, last)) {
            made->from = source;
            children.push_back(*std::move(made));
        }
    }
    add_children(std::move(children), into);
}

void put_planner::add_as(const fs::path& source, const std::string& to) {
    if (const auto problem = fat_name_problem(last_name(to)))
        return report("/" + to, "FAT cannot store this name: " + *problem);
    std::error_code unknown;
    auto made =
        child_of(fs::is_directory(source, unknown) ? source / "" : source, std::string(last_name(to)));
    if (not made) return;
    made->from = source;
    if (add_step(*made, to) and made->is_directory) add_entries_of(source, to);
}

std::vector<put_step> put_planner::finish() {
    if (problems_ == 0) return std::move(steps_);
    fail(fmt::format("nothing was written because of {} {}{}", problems_,
                     problems_ == 1 ? "problem" : "problems",
                     illegal_ == 0 ? ""
                                   : "; --rename-illegal stores illegal names under legal ones, "
                                     "--skip-illegal skips their files"));
}

void carry_out(fat::file_system& system, const std::vector<put_step>& steps) {
    std::uint64_t total = 0;
    for (const put_step& each : steps)
        total += each.size_bytes;
    progress_bar progress(total);
    std::vector<fs::path> sources;
    for (const put_step& each : steps)
        if (not each.is_directory) sources.push_back(each.from);
    host_reader files(std::move(sources));
    for (const put_step& each : steps) {
        if (each.is_directory)
            make_directory(system, each.to);
        else
            put_file(system, each.from, files, each.to, progress);
    }
}

}  // namespace sluice::cli
