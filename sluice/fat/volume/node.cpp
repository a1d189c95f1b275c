#include "sluice/fat/volume/node.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/loop_bound_file.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::fat {
namespace {

constexpr std::size_t copied_bytes = 1U << 20;  // per transfer
constexpr std::size_t any_number = SIZE_MAX;    // of runs: there are no more runs than bytes

vfs::metadata metadata_of(const inode_status& status, std::uint64_t volume) noexcept {
    constexpr attributes dos =
        attributes::read_only | attributes::hidden | attributes::system | attributes::archive;
    return {.kind = status.is_directory ? vfs::node_kind::directory : vfs::node_kind::file,
            .id = status.id,
            .volume = volume,
            .size_bytes = status.size_bytes,
            .allocated_bytes = status.allocated_bytes,
            .links = status.is_removed ? 0U : 1U,
            .permission_bits = static_cast<std::uint16_t>(status.is_directory ? 0755 : 0644),
            .dos = static_cast<vfs::dos_attributes>(status.bits & dos),
            .born = vfs::time_of(status.created),
            .accessed = vfs::time_of(status.accessed),
            .modified = vfs::time_of(status.modified),
            .changed = vfs::time_of(status.changed)};
}

// Other systems may write short names with characters that vfs::short_name has not.
std::string_view shown_alias(std::string_view alias) noexcept {
    return vfs::is_short_name(alias) ? alias : std::string_view();
}

class listing final : public vfs::directory_listing {
public:
    listing(file_system& system, inode_handle directory) noexcept
        : system_(system), directory_(std::move(directory)) {}

    // Continues after the last returned slot, so that concurrent additions and
    // removals are harmless.
    [[nodiscard]] result<const vfs::listed_name*> next() noexcept override {
        auto found = system_.list(*directory_, from_);
        if (not found) return failure(found.error());
        if (not*found) return nullptr;
        held_ = std::move(**found);
        ENSURE(held_.slot >= from_, "a listing makes progress");
        from_ = held_.slot + 1;
        current_ = {.name = held_.name,
                    .status = metadata_of(held_.status, system_.shape().serial),
                    .leads_nowhere = false};
        return &current_;
    }
    [[nodiscard]] vfs::short_name alternate_name() noexcept override {
        return vfs::short_name(shown_alias(held_.alias));
    }

private:
    file_system& system_;
    inode_handle directory_;
    std::uint32_t from_ = 0;
    file_system::listed held_;
    vfs::listed_name current_;
};

}  // namespace

result<void> node::may_use(bool is_granted) const noexcept {
    if (not is_granted) return failure({EBADF, "use data"});
    return {};
}

result<void> node::recorded(result<void> done, vfs::change_kind what) {
    if (not done or inode_->is_removed) return done;
    // The query of a path may have to wait for a thread that changes names.
    around_.feed->record(what, inode_->is_directory, around_.feed->is_watched() ? path() : std::string());
    return done;
}

result<vfs::metadata> node::status() noexcept {
    return metadata_of(system_.status(*inode_), system_.shape().serial);
}

result<void> node::change(const vfs::metadata_change& wanted) noexcept {
    if (wanted.is_sparse.value_or(false)) return not_supported("make sparse");
    if (wanted.is_compressed.value_or(false)) return not_supported("mark compressed");
    if (wanted.is_empty()) return {};
    const auto to_system = [](const std::optional<vfs::time_point>& when) {
        return when ? std::optional(vfs::system_time_of(*when)) : std::nullopt;
    };
    inode_change asked{.created = to_system(wanted.born),
                       .accessed = to_system(wanted.accessed),
                       .modified = to_system(wanted.modified)};
    if (wanted.dos) asked.bits = static_cast<attributes>(*wanted.dos);
    return recorded(system_.change(*inode_, asked), vfs::change_kind::attributes);
}

result<void> node::open_data(vfs::data_access wanted) noexcept {
    if (wanted.write and system_.is_read_only()) return failure({EROFS, "open data"});
    granted_.add(wanted);
    return {};
}

// Never waits: on failure the caller uses co_read instead.
result<vfs::host_runs> node::pin_extents(io::extent_pair range, std::size_t runs_max) noexcept {
    if (const auto may = may_use(granted_.can_read()); not may) return failure(may.error());
    return system_.pin_extents(*inode_, {.offset = range.offset, .length = range.length}, runs_max,
                               may_wait::no);
}

// Runs a call that may wait on a thread, so that no loop waits for it.
template <class Call>
io::task<std::invoke_result_t<Call&>> node::on_thread(Call call, io::call_cancellation* by) noexcept {
    if (not domain().is_inline())
        co_return co_await domain().offload(vfs::loop_here(around_.loops), by, std::move(call));
    if (around_.threads == nullptr) co_return call();
    co_return co_await around_.threads->run(vfs::loop_here(around_.loops), std::move(call));
}

io::task<result<std::size_t>> node::co_read(std::span<std::byte> into, std::uint64_t offset,
                                            io::call_cancellation* by) noexcept {
    if (const auto may = may_use(granted_.can_read()); not may) co_return failure(may.error());
    run_list::hint hint;
    const auto waiting = [&] { return system_.read(*inode_, hint, into, offset); };
    if (not domain().is_inline()) {
        io::task<result<std::size_t>> reading = on_thread(waiting, by);
        co_return co_await std::move(reading);
    }
    auto got = system_.read(*inode_, hint, into, offset, may_wait::no);
    if (got or got.error() != std::errc::resource_unavailable_try_again) co_return got;
    // Reads directly from the image: as many concurrent reads as the loop's multiplexer can have in
    // flight.
    if (system_.pins_extents()) {
        const auto pinned =
            system_.pin_extents(*inode_, {.offset = offset, .length = into.size()}, any_number, may_wait::no);
        if (pinned) {
            io::task<result<std::size_t>> reading = read_pinned(*pinned, into);
            co_return co_await std::move(reading);
        }
    }
    io::task<result<std::size_t>> reading = on_thread(waiting, by);
    co_return co_await std::move(reading);
}

io::task<result<std::size_t>> node::read_pinned(const vfs::host_runs& from,
                                                std::span<std::byte> into) const noexcept {
    std::optional<vfs::loop_bound_file> file;
    if (from.file != nullptr) file.emplace(*from.file, vfs::loop_here(around_.loops));
    if (file and not file->attached()) co_return failure(file->attached().error());
    std::size_t done = 0;
    for (const vfs::host_run& run : from.runs) {
        ENSURE(run.length <= into.size() - done, "the runs fit into the buffer");
        const auto part = into.subspan(done, static_cast<std::size_t>(run.length));
        done += part.size();
        if (not run.place) {
            std::ranges::fill(part, std::byte{});
            continue;
        }
        const io::io_request<io::bytes_type> request{.buffers = part, .offset = *run.place};
        const auto read = co_await io::co_read(file->file(), request);
        if (not read) co_return failure(read.error());
        if (read->size() != part.size()) co_return failure({EIO, "read of an image that was cut"});
    }
    co_return done;
}

// Returns EAGAIN if the write has to wait, or if a recent one had to.
result<void> node::write_at_once(std::span<const std::byte> from, std::uint64_t offset) noexcept {
    const auto began = vfs::buffered_write_hint::clock::now();
    if (not around_.writes.is_prompt(began)) return failure({EAGAIN, "write at once"});
    run_list::hint hint;
    const auto done = system_.write(*inode_, hint, from, offset, may_wait::no);
    around_.writes.record(began, vfs::buffered_write_hint::clock::now(), from.size());
    return done;
}

io::task<result<void>> node::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                      io::call_cancellation* by) noexcept {
    if (const auto may = may_use(granted_.can_write()); not may) co_return may;
    result<void> done = domain().is_inline() ? write_at_once(from, offset) : failure({EAGAIN, "write"});
    if (done and system_.is_commit_due() and not around_.is_committing.exchange(true)) {
        io::task<result<void>> committing = on_thread([&] { return system_.commit(); }, nullptr);
        done = co_await std::move(committing);
        around_.is_committing = false;
    } else if (not done and done.error() == std::errc::resource_unavailable_try_again) {
        run_list::hint hint;
        io::task<result<void>> writing =
            on_thread([&] { return system_.write(*inode_, hint, from, offset); }, by);
        done = co_await std::move(writing);
    }
    if (done and not inode_->is_removed) around_.feed->record_written(*inode_);
    co_return done;
}

io::task<result<void>> node::co_flush(io::call_cancellation* by) noexcept {
    io::task<result<void>> flushing = on_thread([&] { return system_.flush(*inode_); }, by);
    co_return co_await std::move(flushing);
}

result<void> node::truncate(std::uint64_t size_bytes) noexcept {
    if (const auto may = may_use(granted_.can_write()); not may) return may;
    return recorded(system_.truncate(*inode_, size_bytes), vfs::change_kind::modified);
}

result<void> node::allocate(std::uint64_t size_bytes) noexcept {
    if (const auto may = may_use(granted_.can_write()); not may) return may;
    return system_.preallocate(*inode_, size_bytes);
}

result<void> node::zero(std::uint64_t offset, std::uint64_t length, bool) noexcept {
    if (const auto may = may_use(granted_.can_write()); not may) return may;
    return recorded(system_.zero(*inode_, {.offset = offset, .length = length}), vfs::change_kind::modified);
}

result<std::span<io::extent_pair>> node::allocated_ranges(std::uint64_t offset, std::uint64_t length,
                                                          std::span<io::extent_pair> storage) noexcept {
    if (const auto may = may_use(granted_.can_read() or granted_.can_write()); not may)
        return failure(may.error());
    if (storage.empty()) return failure({EINVAL, "list ranges"});
    std::size_t filled = 0;
    const auto done = system_.for_each_extent(
        *inode_, {.offset = offset, .length = length}, [&](const file_system::piece& each) {
            if (not each.place) return true;
            if (filled == 0) {
                storage[filled++] = {.offset = each.offset, .length = each.length};
            } else {
                ENSURE(each.offset == storage[0].offset + storage[0].length);
                storage[0].length += each.length;  // the only hole is the one at the end
            }
            return true;
        });
    if (not done) return failure(done.error());
    return storage.first(filled);
}

result<std::uint64_t> node::clone_to(vfs::node& destination, io::extent_pair source,
                                     std::uint64_t destination_offset, bool only_shared) noexcept {
    auto* const other = dynamic_cast<node*>(&destination);
    if (only_shared or other == nullptr or &other->system_ != &system_) return not_supported("clone");
    if (const auto may = may_use(granted_.can_read()); not may) return failure(may.error());
    if (const auto may = other->may_use(other->granted_.can_write()); not may) return failure(may.error());
    const std::uint64_t size = system_.status(*inode_).size_bytes;
    if (source.offset >= size) return 0U;
    const std::uint64_t length = std::min(source.length, size - source.offset);
    std::vector<std::byte> part(static_cast<std::size_t>(std::min<std::uint64_t>(length, copied_bytes)));
    run_list::hint hint;
    run_list::hint other_hint;
    // Backwards if the copy would overwrite source bytes that are not yet copied.
    const bool is_backward = &other->held() == &held() and destination_offset > source.offset;
    for (std::uint64_t done = 0; done < length;) {
        const std::uint64_t bytes = std::min<std::uint64_t>(part.size(), length - done);
        const std::uint64_t at = is_backward ? length - done - bytes : done;
        const auto piece = std::span(part).first(static_cast<std::size_t>(bytes));
        const auto read = system_.read(*inode_, hint, piece, source.offset + at);
        if (not read) return failure(read.error());
        if (*read < bytes) return failure({EIO, "clone"});  // the file was truncated concurrently
        const auto written = system_.write(*other->inode_, other_hint, piece, destination_offset + at);
        if (not written) return failure(written.error());
        done += bytes;
    }
    const auto recorded = other->recorded({}, vfs::change_kind::modified);
    (void)recorded;
    return length;
}

result<void> node::rename(std::string_view path, vfs::when_taken taken) noexcept {
    const std::string before = this->path();
    const auto seen = around_.feed->names_of(before);
    const auto how =
        taken == vfs::when_taken::replace ? file_system::if_taken::replace : file_system::if_taken::refuse;
    // Find the replaced inode before the rename, so that its removal can be reported.
    auto replaced = how == file_system::if_taken::replace ? system_.find(path) : failure({ENOENT, "find"});
    const bool is_other = replaced and & **replaced != &held();
    const std::string other = is_other ? system_.path_of(**replaced) : std::string();
    const auto done = system_.rename(*inode_, path, how);
    if (not done) return done;
    const std::string after = this->path();
    if (is_other) {
        around_.feed->record(vfs::change_kind::removed, (*replaced)->is_directory, other);
        if ((*replaced)->is_directory) around_.feed->record_end(**replaced);
    }
    if (before != after) around_.feed->record_move(seen, inode_->is_directory, after);
    return {};
}

vfs::name_identity node::identity_of(inode& which) noexcept {
    const vfs::metadata status = metadata_of(system_.status(which), system_.shape().serial);
    return vfs::name_identity{.key = key_of(which), .changed = status.changed};
}

result<vfs::name_place> node::place() noexcept {
    if (inode_->is_removed) return failure({ENOENT, "find the name"});
    const std::string now = path();
    if (now.empty()) return failure({EBUSY, "find the name"});
    const vfs::path_parts parts = vfs::split_path(now);
    const auto directory = system_.find(parts.parent);
    if (not directory) return failure(directory.error());
    ENSURE((*directory)->is_directory, "a name is in a directory");
    return vfs::name_place{
        .directory = key_of(**directory), .name = std::string(parts.name), .identity = identity_of(*inode_)};
}

result<vfs::name_identity> node::identity_of(std::string_view name) noexcept {
    ENSURE(inode_->is_directory and not name.contains('/'), "a directory identifies one of its names");
    const auto found = system_.find(vfs::join_path(path(), name));
    if (not found) return failure(found.error());
    return identity_of(**found);
}

result<void> node::remove() noexcept {
    const std::string before = path();
    const auto done = system_.remove(*inode_);
    if (not done) return done;
    around_.feed->record(vfs::change_kind::removed, inode_->is_directory, before);
    if (inode_->is_directory) around_.feed->record_end(*inode_);
    return {};
}

result<vfs::short_name> node::alternate_name() noexcept {
    const auto alias = system_.alias_of(*inode_);
    if (not alias) return failure(alias.error());
    return vfs::short_name(shown_alias(*alias));
}

result<std::unique_ptr<vfs::directory_listing>> node::list() noexcept {
    return std::make_unique<listing>(system_, system_.again(*inode_));
}

}  // namespace sluice::fat
