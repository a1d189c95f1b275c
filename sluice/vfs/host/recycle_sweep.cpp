#include "sluice/vfs/host/recycle_sweep.hpp"

#include <fcntl.h>

#include <algorithm>
#include <bit>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"

namespace sluice::vfs {
namespace {

constexpr auto within = io::confinement::beneath_one_mount_no_symlinks;
constexpr io::stat_fields swept_fields = io::stat_fields::type | io::stat_fields::inode |
                                         io::stat_fields::changed | io::stat_fields::allocated |
                                         io::stat_fields::size;

result<io::directory_handle> open_listed(const io::path_handle& base, std::string_view name) {
    const auto opened = io::open_at(
        io::anchor_directory{.descriptor = base.descriptor(), .limit = within}, io::terminated_path(name),
        {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW, .operation = "list the recycle bin"});
    if (not opened) return failure(opened.error());
    return io::directory_handle({.descriptor = *opened, .kind = io::handle_kind::directory, .readable = true},
                                within);
}

}  // namespace

recycle_sweep::recycle_sweep(const host_tree& tree, std::chrono::system_clock::time_point now)
    : tree_(tree), now_(now) {
    ENSURE(tree.options.recycle.has_value(), "a bin that is swept has rules");
    if (tree.options.recycle->bytes_max != 0) bytes_by_age_.assign(ages_max, 0);
}

bool recycle_sweep::begin_pass() {
    const auto bin = recycle_bin(tree_).open();
    if (not bin) return false;
    auto listed = open_listed(*bin, ".");
    if (not listed) return false;
    levels_.push_back({.open = *std::move(listed), .name = {}});
    return true;
}

bool recycle_sweep::step() {
    if (not is_begun_) {
        is_begun_ = true;
        return begin_pass();
    }
    if (levels_.empty()) return false;
    if (not levels_.back().unseen.empty()) {
        descend();
    } else {
        visit(levels_.back());
    }
    if (not levels_.empty()) return true;
    if (is_second_ or bytes_by_age_.empty()) return false;
    is_second_ = true;
    return choose_age() and begin_pass();
}

void recycle_sweep::descend() {
    level& above = levels_.back();
    std::string name = std::move(above.unseen.back());
    above.unseen.pop_back();
    // Deeper directories are not those of the server.
    if (levels_.size() > limits::recycled_depth_max + 2) return;
    auto opened = open_listed(above.open, name);
    if (opened) levels_.push_back({.open = *std::move(opened), .name = std::move(name)});
}

// A directory in which files remain stays, because it is not empty.
void recycle_sweep::leave() {
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    if (not levels_.empty()) (void)io::remove_directory(levels_.back().open, name);
}

void recycle_sweep::visit(level& here) {
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch);
    std::vector<char> storage(limits::listing_storage_bytes);
    const auto batch = here.open.enumerate(
        {.entries = entries, .storage = storage, .position = here.position, .wanted = swept_fields});
    if (not batch or batch->entries.empty()) return leave();
    here.position = batch->next;
    for (const io::directory_entry& each : batch->entries) {
        if (each.type == io::file_type::directory)
            here.unseen.emplace_back(each.name);
        else if (each.type == io::file_type::regular and each.status.knows(io::stat_fields::changed))
            visit_file(here, each);
    }
}

void recycle_sweep::visit_file(const level& here, const io::directory_entry& entry) {
    const recycle_rules& rules = *tree_.options.recycle;
    const std::chrono::seconds age = age_of(entry.status);
    if (not is_second_) {
        const bool is_old = rules.age_max.count() != 0 and age > rules.age_max;
        const bool is_gone = is_old and remove_file(here, entry);
        if (not is_gone and not bytes_by_age_.empty())
            bytes_by_age_[index_of(age)] += entry.status.size_bytes;
        return;
    }
    const std::size_t index = index_of(age);
    const bool is_removed = index > removed_age_ or (index == removed_age_ and removed_bytes_ != 0);
    if (is_removed and remove_file(here, entry) and index == removed_age_)
        removed_bytes_ -= std::min(removed_bytes_, entry.status.size_bytes);
}

// The name may have been given to another file since it was listed.
bool recycle_sweep::remove_file(const level& here, const io::directory_entry& entry) const {
    const auto descriptor =
        io::open_at(io::anchor_directory{.descriptor = here.open.descriptor(), .limit = within},
                    io::terminated_path(entry.name), {.flags = O_PATH | O_NOFOLLOW, .operation = "remove"});
    if (not descriptor) return false;
    const io::handle file({.descriptor = *descriptor, .kind = io::handle_kind::path});
    const auto status = io::status_of(file, swept_fields);
    const bool is_it = status and status->type == io::file_type::regular and
                       status->inode == entry.status.inode and status->changed == entry.status.changed;
    if (not is_it) return false;
    outlived_streams streams(tree_, file);
    if (not io::remove(here.open, entry.name)) return false;
    streams.retire_if_unused();
    return true;
}

// The oldest files go, and of those of about the same age only as many as needed.
bool recycle_sweep::choose_age() {
    std::uint64_t total = 0;
    for (const std::uint64_t bytes : bytes_by_age_)
        total += bytes;
    const std::uint64_t bytes_max = tree_.options.recycle->bytes_max;
    if (total <= bytes_max) return false;
    removed_bytes_ = total - bytes_max;
    while (bytes_by_age_[--removed_age_] < removed_bytes_)
        removed_bytes_ -= bytes_by_age_[removed_age_];
    return true;
}

std::chrono::seconds recycle_sweep::age_of(const io::file_status& status) const noexcept {
    const auto age = std::chrono::floor<std::chrono::seconds>(now_ - status.changed);
    return std::max(age, std::chrono::seconds(0));
}

std::size_t recycle_sweep::index_of(std::chrono::seconds age) noexcept {
    const auto seconds = static_cast<std::uint64_t>(age.count());
    if (seconds < 16) return seconds;
    const auto power = static_cast<unsigned>(std::bit_width(seconds)) - 1;  // at least 4
    const std::uint64_t sixteenth = (seconds >> (power - 4)) & 15U;
    return std::min<std::size_t>(16 * (power - 3) + sixteenth, ages_max - 1);
}

}  // namespace sluice::vfs
