#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <mutex>

#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_compression.hpp"
#include "sluice/vfs/host/host_transfer.hpp"
#include "sluice/vfs/host/stream/host_stream.hpp"
#include "sluice/vfs/path.hpp"

// The data of streams: small ones in attributes, large ones in files, and the step from one to the
// other.

namespace sluice::vfs {
namespace {

constexpr std::uint64_t stream_bytes_max = INT64_MAX;

bool is_missing(const error& why) noexcept {
    return why == std::errc::no_such_file_or_directory;
}

bool exceeds(std::uint64_t offset, std::size_t length, std::uint64_t bytes_max) noexcept {
    return offset > bytes_max or length > bytes_max - offset;
}

// The clock that a file system takes its times from; between two of its ticks, they are equal.
std::int64_t tick_of_kernel() noexcept {
    timespec now{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    constexpr std::int64_t nanoseconds = 1'000'000'000;
    return now.tv_sec * nanoseconds + now.tv_nsec;
}

}  // namespace

// --- small or large

result<std::vector<std::byte>> host_stream::content() const {
    if (large() != nullptr) return failure({ENOENT, "read stream"});
    return load_attribute(file_, attribute());
}

host_stream::large_file host_stream::keep(io::file_handle opened) noexcept {
    const std::scoped_lock guard(name_mutex_);
    // Several threads may find the stream at once; `opened` is closed by the later ones.
    if (large() == nullptr) {
        large_ = std::move(opened);
        opened_.store(&large_, std::memory_order_release);  // pairs with the acquire in large()
    }
    return large_file(large_);
}

// For writing, too, even if only reading is granted: the node is asked for both, and `granted_`
// decides.
result<io::file_handle> host_stream::open_in(const stream_directory& directory) const {
    const std::string name = stream_name();
    if (not tree_.options.read_only and directory.is_own()) {
        auto opened = directory.open(name, {.read = true, .write = true});
        if (opened or (opened.error().code() != EROFS and opened.error().code() != EACCES)) return opened;
    }
    return directory.open(name, {.read = true});
}

result<void> host_stream::open_found(const stream_directory& in) {
    if (not in.is_own()) return {};
    auto opened = open_in(in);
    if (not opened) return failure(opened.error());
    (void)keep(std::move(*opened));
    return {};
}

result<host_stream::large_file> host_stream::open_large(purpose what) {
    if (io::file_handle* const kept = large(); kept != nullptr) return large_file(*kept);
    const stream_store store(tree_);
    auto directory = store.find(file_);
    if (not directory) return failure(directory.error());
    if (not*directory) return failure({ENOENT, "find stream"});
    if (what == purpose::change and not(*directory)->is_own()) {
        auto own = store.find_or_create(file_);
        if (not own) return failure(own.error());
        *directory = std::move(*own);
    }
    auto opened = open_in(**directory);
    if (not opened) return failure(opened.error());
    if ((*directory)->is_own()) return keep(std::move(*opened));
    return large_file(std::move(*opened));
}

result<host_stream::large_file> host_stream::make_large() {
    if (const auto bytes = content(); not bytes) {
        if (not is_missing(bytes.error())) return failure(bytes.error());
        return open_large(purpose::change);
    }
    const stream_store store(tree_);
    result<large_file> moved = failure({EAGAIN, "move stream"});
    for (unsigned attempt = 0; attempt != limits::lookup_attempts_max; ++attempt) {
        const auto directory = store.find_or_create(file_);
        if (not directory) return failure(directory.error());
        directory->lock();
        // Another server may have moved it before this one had the lock.
        const auto bytes = content();
        if (not bytes and is_missing(bytes.error())) return open_large(purpose::change);
        if (not bytes) return failure(bytes.error());
        moved = move_out(*directory, stream_name(), *bytes);
        // The directory was empty, and another server has removed it, or has written to the stream.
        if (moved or (not is_missing(moved.error()) and moved.error().code() != EAGAIN)) return moved;
    }
    return moved;
}

// The attribute remains the stream until it is removed, which is one step. Before that, its content
// must be durable in the file: it may be old, and a crash must not lose it. An empty one has
// nothing to lose.
result<host_stream::large_file> host_stream::move_out(const stream_directory& to, const std::string& name,
                                                      std::span<const std::byte> bytes) {
    // In another case, a leftover of a crash would become a stream of its own.
    if (const auto gone = to.remove_every_spelling(name); not gone) return failure(gone.error());
    auto file = to.create(name, stream_directory::existing::empty);
    if (not file) return failure(file.error());
    const auto moved = [&]() -> result<void> {
        if (not bytes.empty()) {
            if (const auto done = write_waiting(&*file, bytes, 0); not done) return done;
            if (const auto done = file->barrier(); not done) return failure(done.error());
            if (const auto done = to.barrier(); not done) return done;
        }
        if (const auto gone = remove_small_spellings(file_, name, {name}); not gone) return gone;
        // Another server may have written to it during all this.
        const std::string moved_from = std::string(stream_prefix) + name;
        const auto present = load_attribute(file_, moved_from);
        if (present and not std::ranges::equal(*present, bytes)) return failure({EAGAIN, "move stream"});
        return io::remove_xattr(file_, moved_from);
    }();
    if (moved) return keep(std::move(*file));
    (void)to.remove(name);
    to.remove_if_empty();
    return failure(moved.error().code() == ENODATA ? error(ENOENT, "move stream") : moved.error());
}

// --- status

result<metadata> host_stream::file_status() noexcept {
    const auto status = io::status_of(file_, node_fields);
    if (not status) return failure(status.error());
    const auto stored = load_metadata(file_);
    if (not stored) return failure(stored.error());
    return metadata_of(*status, *stored, split_path(path_).name, tree_.dots());
}

result<metadata> host_stream::status() noexcept {
    const auto of_file = file_status();
    if (not of_file) return of_file;
    metadata found = *of_file;
    found.kind = node_kind::file;
    found.is_sparse = false;
    if (large() == nullptr) {
        const auto size = io::xattr_bytes(file_, attribute());
        if (size) {
            found.size_bytes = found.allocated_bytes = *size;
            return found;
        }
        if (size.error().code() != ENODATA) return failure(size.error());
    }
    auto file = open_large(purpose::reading);
    if (not file) return failure(file.error());
    const auto itself =
        io::status_of(**file, io::stat_fields::size | io::stat_fields::allocated | io::stat_fields::links);
    if (not itself) return failure(itself.error());
    if (itself->links == 0) return failure({ENOENT, "stream"});
    const auto own = [&] {
        const account_identity::pause as_process;
        return load_metadata(**file);
    }();
    found.size_bytes = itself->size_bytes;
    found.allocated_bytes = itself->allocated_bytes;
    found.is_sparse = own and * own and (*own)->is_sparse;
    return found;
}

// Whether it is sparse is a property of the stream; everything else is one of the file.
result<void> host_stream::change(const metadata_change& wanted) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    auto before = status();
    if (not before) return failure(before.error());
    if (wanted.is_sparse and *wanted.is_sparse != before->is_sparse) {
        if (const auto done = set_sparse(*wanted.is_sparse); not done) return done;
    }
    if (wanted.is_compressed and *wanted.is_compressed != before->is_compressed) {
        if (const auto done = mark_compressed(file_, *wanted.is_compressed); not done) return done;
    }
    metadata_change of_file = wanted;
    of_file.is_sparse.reset();
    before->is_sparse = false;
    if (of_file.is_empty()) return {};
    return apply_change(file_, of_file, *before);
}

result<void> host_stream::set_sparse(bool is_sparse) {
    if (const auto may = may_use({.write = true}); not may) return may;
    auto file = make_large();
    if (not file) return failure(file.error());
    const account_identity::pause as_process;
    const auto done = store_metadata(**file, {.is_sparse = is_sparse, .born = {}});
    touch();
    return done;
}

result<void> host_stream::open_data(data_access wanted) noexcept {
    if (wanted.write) {
        if (const auto may = tree_.may_change(); not may) return may;
    }
    if (const auto may = may_use(wanted); not may) return may;
    granted_.add(wanted);
    return {};
}

void host_stream::touch() noexcept {
    const std::int64_t now = tick_of_kernel();
    // The time would be the same.
    if (touched_.exchange(now, std::memory_order_relaxed) == now) return;
    if (::utimensat(file_.descriptor(), "", nullptr, AT_EMPTY_PATH) == 0) return;
    // Before Linux 5.8. Best effort: the stream has changed, whatever the time of its file says.
    (void)::utimensat(AT_FDCWD, io::descriptor_path(file_.descriptor()).c_str(), nullptr, 0);
}

io::task<result<void>> host_stream::co_flush(io::call_cancellation* by) noexcept {
    return co_offload([this] { return flush(); }, by);
}

result<void> host_stream::flush() {
    const auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (not bytes) {  // also if another node has made it large
        auto file = open_large(purpose::reading);
        if (not file) return failure(file.error());
        if (const auto done = (*file)->barrier(); not done) return failure(done.error());
        const auto directory = stream_store(tree_).find(file_);
        if (not directory) return failure(directory.error());
        if (*directory) {
            if (const auto done = (*directory)->barrier(); not done) return done;
        }
    }
    const io::descriptor_path itself(file_.descriptor());
    const auto kind = io::status_of(file_, io::stat_fields::type);
    if (kind and kind->type == io::file_type::directory) {
        const auto opened = io::directory_handle::open({}, itself.c_str());
        if (not opened) return failure(opened.error());
        return opened->barrier();
    }
    auto opened = io::file_handle::open({}, itself.c_str(), io::mode::read);
    if (not opened) return failure(opened.error());
    const auto done = opened->barrier();
    if (not done) return failure(done.error());
    return {};
}

// --- transfers

io::task<result<std::size_t>> host_stream::co_read(std::span<std::byte> into, std::uint64_t offset,
                                                   io::call_cancellation* by) noexcept {
    if (io::file_handle* const file = large(); file != nullptr) {
        io::file_handle* const granted = granted_.can_read() ? file : nullptr;
        return co_read_file({.tree = tree_, .domain = domain(), .file = granted}, into, offset, by);
    }
    return co_read_unopened(into, offset, by);
}

// A large stream of a copied file is not kept open: its reads wait for the device.
io::task<result<std::size_t>> host_stream::co_read_unopened(std::span<std::byte> into, std::uint64_t offset,
                                                            io::call_cancellation* by) noexcept {
    auto small = co_await co_run([=, this] { return read_small(into, offset); }, by);
    if (not small) co_return failure(small.error());
    if (*small) co_return **small;
    const auto call = [=, this]() -> result<std::size_t> {
        auto file = open_large(purpose::reading);
        return file ? read_waiting(**file, into, offset) : failure(file.error());
    };
    co_return co_await co_offload(call, by);
}

// Reads an attribute; std::nullopt if the stream is not in one.
result<std::optional<std::size_t>> host_stream::read_small(std::span<std::byte> into, std::uint64_t offset) {
    if (not granted_.can_read()) return failure({EBADF, "read stream"});
    const auto bytes = content();
    if (not bytes and is_missing(bytes.error())) return std::optional<std::size_t>();
    if (not bytes) return failure(bytes.error());
    if (offset >= bytes->size()) return std::optional<std::size_t>(0U);
    const auto part = std::span(*bytes).subspan(static_cast<std::size_t>(offset));
    const std::size_t count = std::min(part.size(), into.size());
    std::ranges::copy(part.first(count), into.begin());
    return std::optional(count);
}

io::task<result<void>> host_stream::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                             io::call_cancellation* by) noexcept {
    const auto call = [=, this] { return write_at(from, offset); };
    if (large() != nullptr) return co_write_by(tree_, domain(), from.size(), by, call);
    // A stream that becomes large waits for a device, and for other servers. Whether it does is
    // known only when the attributes are full.
    return co_offload(call, by);
}

result<void> host_stream::write_here(std::span<const std::byte> from, std::uint64_t offset) noexcept {
    return write_at(from, offset);
}

result<void> host_stream::write_at(std::span<const std::byte> from, std::uint64_t offset) {
    if (not granted_.can_write()) return failure({EBADF, "write stream"});
    if (exceeds(offset, from.size(), stream_bytes_max)) return failure({EFBIG, "write stream"});
    auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (bytes) {
        if (from.empty()) return {};
        if (not exceeds(offset, from.size(), limits::inline_stream_bytes_max)) {
            const auto at = static_cast<std::size_t>(offset);
            bytes->resize(std::max(bytes->size(), at + from.size()));
            std::ranges::copy(from, bytes->begin() + static_cast<std::ptrdiff_t>(at));
            const auto stored = store_small(*bytes);
            if (stored or stored.error().code() != ENOSPC) return stored;
        }
    }
    auto file = bytes ? make_large() : open_large(purpose::change);
    if (not file) return failure(file.error());
    return write_large(**file, from, offset);
}

// Stores the content of a small stream. Errors: ENOSPC also if it has to become large, or another
// server has made it large: an attribute that is created then would hide it.
result<void> host_stream::store_small(std::span<const std::byte> bytes) {
    if (bytes.size() > limits::inline_stream_bytes_max) return failure({ENOSPC, "store stream"});
    const auto stored = store_attribute(file_, attribute(), bytes, io::xattr_creation::replace_existing);
    if (not stored and stored.error().code() == ENODATA) return failure({ENOSPC, "store stream"});
    return stored;
}

result<void> host_stream::write_large(io::file_handle& file, std::span<const std::byte> from,
                                      std::uint64_t offset) noexcept {
    const auto done = write_waiting(&file, from, offset);
    touch();
    return done;
}

result<host_runs> host_stream::pin_extents(io::extent_pair range, std::size_t runs_max) noexcept {
    io::file_handle* const file = large();
    if (file == nullptr or not granted_.can_read()) return failure({EOPNOTSUPP, "pin extents"});
    return runs_of(*file, range, runs_max);
}

// --- other calls for data

result<void> host_stream::truncate(std::uint64_t size_bytes) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "truncate stream"});
    if (size_bytes > stream_bytes_max) return failure({EFBIG, "truncate stream"});
    auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (bytes and size_bytes <= limits::inline_stream_bytes_max) {
        bytes->resize(static_cast<std::size_t>(size_bytes));
        const auto stored = store_small(*bytes);
        if (stored or stored.error().code() != ENOSPC) return stored;
    }
    auto file = bytes ? make_large() : open_large(purpose::change);
    if (not file) return failure(file.error());
    const auto done = (*file)->truncate(size_bytes);
    touch();
    if (not done) return failure(done.error());
    return {};
}

result<void> host_stream::allocate(std::uint64_t size_bytes) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "allocate stream"});
    if (size_bytes > stream_bytes_max) return failure({EFBIG, "allocate stream"});
    const auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (bytes and size_bytes <= limits::inline_stream_bytes_max) return {};
    auto file = bytes ? make_large() : open_large(purpose::change);
    if (not file) return failure(file.error());
    return reserve_file(**file, size_bytes);
}

result<void> host_stream::zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "zero stream"});
    auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (bytes) {
        if (offset >= bytes->size()) return {};
        const auto part = std::span(*bytes).subspan(static_cast<std::size_t>(offset));
        std::ranges::fill(part.first(static_cast<std::size_t>(std::min<std::uint64_t>(length, part.size()))),
                          std::byte{});
        const auto stored = store_small(*bytes);
        if (stored or stored.error().code() != ENOSPC) return stored;
    }
    auto file = bytes ? make_large() : open_large(purpose::change);
    if (not file) return failure(file.error());
    const auto done = zero_file(**file, offset, length, frees_blocks);
    touch();
    return done;
}

result<std::span<io::extent_pair>> host_stream::allocated_ranges(
    std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept {
    if (storage.empty()) return failure({EINVAL, "list ranges"});
    const auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    if (not bytes) {
        auto file = open_large(purpose::reading);
        return file ? ranges_of_file(**file, offset, length, storage) : failure(file.error());
    }
    if (offset >= bytes->size() or length == 0) return storage.first(0);
    storage[0] = {.offset = offset, .length = std::min<std::uint64_t>(length, bytes->size() - offset)};
    return storage.first(1);
}

result<std::uint64_t> host_stream::clone_to(node& destination, io::extent_pair source,
                                            std::uint64_t destination_offset, bool only_shared) noexcept {
    auto* const other = dynamic_cast<host_stream*>(&destination);
    if (other == nullptr) return failure({EOPNOTSUPP, "clone stream"});
    if (not granted_.can_read() or not other->granted_.can_write()) return failure({EBADF, "clone stream"});
    const auto bytes = content();
    if (not bytes and not is_missing(bytes.error())) return failure(bytes.error());
    // Attributes have no blocks to share.
    if (only_shared and (bytes or other->large() == nullptr)) return failure({EOPNOTSUPP, "clone stream"});
    if (bytes) return clone_small(*bytes, *other, source, destination_offset);
    auto from = open_large(purpose::reading);
    if (not from) return failure(from.error());
    auto to = other->make_large();
    if (not to) return failure(to.error());
    const auto done = clone_file(**from, **to, source, destination_offset, only_shared);
    other->touch();
    return done;
}

result<std::uint64_t> host_stream::clone_small(std::span<const std::byte> bytes, host_stream& to,
                                               io::extent_pair source, std::uint64_t destination_offset) {
    if (source.offset >= bytes.size()) return 0U;
    const auto part = bytes.subspan(static_cast<std::size_t>(source.offset));
    const auto wanted =
        part.first(static_cast<std::size_t>(std::min<std::uint64_t>(source.length, part.size())));
    if (const auto done = to.write_at(wanted, destination_offset); not done) return failure(done.error());
    return wanted.size();
}

}  // namespace sluice::vfs
