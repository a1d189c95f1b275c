#include "sluice/vfs/host/host_stream.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/sync/small_mutex.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/granted_access.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

std::string attribute_of(std::string_view stream) {
    std::string attribute(stream_prefix);
    attribute += stream;
    return attribute;
}

/// A named stream: an extended attribute, read whole, changed and written whole by every call.
/// Readers see one version of it; changes are serialised by the caller, for all nodes of the file.
/// After the stream is removed, or renamed by another node without follow_stream_name(), calls fail
/// with ENOENT and do not create it again.
/// Thread safety: as node. Immutable, but for access (atomic), and name and key, guarded by a
/// mutex that is held while one of them is read or set.
class host_stream final : public node, public node_data, public node_names, public node_attached {
public:
    host_stream(host_tree& tree, io::handle file, file_key key, std::string path, std::string name)
        : node(tree.domain_of_found()),
          tree_(tree),
          file_(std::move(file)),
          path_(std::move(path)),
          key_(key),
          name_(std::move(name)) {
        key_.stream = stream_number(name_);
    }

    [[nodiscard]] node_kind kind() const noexcept override { return node_kind::file; }
    [[nodiscard]] file_key key() const noexcept override {
        const std::scoped_lock guard(name_mutex_);
        return key_;
    }
    [[nodiscard]] std::string path() const override;
    [[nodiscard]] std::string location() const override { return link_of(file_); }
    [[nodiscard]] std::string stream_name() const override {
        const std::scoped_lock guard(name_mutex_);
        return name_;
    }
    [[nodiscard]] result<metadata> status() noexcept override;
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override;
    [[nodiscard]] io::task<result<void>> co_flush(io::call_withdrawal* by) noexcept override;
    [[nodiscard]] node_data* data() noexcept override { return this; }
    [[nodiscard]] node_names* names() noexcept override { return this; }
    [[nodiscard]] node_attached* attached() noexcept override { return this; }
    [[nodiscard]] node_children* children() noexcept override { return nullptr; }

    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override;
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_withdrawal* by) noexcept override;
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_withdrawal* by) noexcept override;
    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool frees_blocks) noexcept override;
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override;
    [[nodiscard]] result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override;

    [[nodiscard]] result<void> rename(std::string_view path, when_taken taken) noexcept override;
    void follow_stream_name(std::string_view name) noexcept override;
    [[nodiscard]] result<void> remove() noexcept override;

    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override {
        return list_extended_attributes(file_);
    }
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override {
        if (const auto may = tree_.may_change(); not may) return may;
        return change_extended_attribute(file_, name, value);
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override { return load_security(file_); }
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override {
        if (const auto may = tree_.may_change(); not may) return may;
        return store_security(file_, descriptor);
    }

private:
    [[nodiscard]] result<void> may_use(data_access wanted) const noexcept;
    [[nodiscard]] result<void> write_at(std::span<const std::byte> from, std::uint64_t offset);
    [[nodiscard]] result<std::vector<std::byte>> content() const {
        return load_attribute(file_, attribute());
    }
    [[nodiscard]] std::string attribute() const {
        const std::scoped_lock guard(name_mutex_);
        return attribute_of(name_);
    }
    [[nodiscard]] result<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const;
    [[nodiscard]] result<void> flush() const;
    // Carries out a transfer where it may run; inline it never suspends, as
    // transfers_at_once() promises.
    template <class Call>
    [[nodiscard]] io::task<std::invoke_result_t<Call&>> co_run(Call call, io::call_withdrawal* by) noexcept {
        if (domain().is_inline()) {
            const fs_domain::inline_call now(domain());
            co_return call();
        }
        co_return co_await domain().offload(tree_.multiplexer_here(), by, std::move(call));
    }

    host_tree& tree_;
    const io::handle file_;
    const std::string path_;
    granted_access granted_;
    mutable sync::basic_small_mutex<sync::real_atomics> name_mutex_;  // guards what follows
    file_key key_;
    std::string name_;
};

std::string host_stream::path() const {
    return shown_path(tree_.present_path(file_, domain().may_call_here()).value_or(path_));
}

result<metadata> host_stream::status() noexcept {
    const auto size = io::xattr_bytes(file_, attribute());
    if (not size) return failure({size.error().code() == ENODATA ? ENOENT : size.error().code(), "stream"});
    const auto status = io::status_of(file_, node_fields);
    if (not status) return failure(status.error());
    const auto stored = load_metadata(file_);
    if (not stored) return failure(stored.error());
    metadata found = metadata_of(*status, *stored, split_path(path_).name, tree_.dots());
    found.kind = node_kind::file;
    found.size_bytes = *size;
    found.allocated_bytes = *size;
    found.is_sparse = false;
    return found;
}

result<void> host_stream::change(const metadata_change& wanted) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    const auto before = status();
    if (not before) return failure(before.error());
    return apply_change(file_, wanted, *before);
}

// As for a file, an account's rights are checked when the data is opened: transfers are not made
// with its identity. By the system call itself: what the C library has in its place, where the
// kernel lacks it, checks another identity.
result<void> host_stream::may_use(data_access wanted) const noexcept {
    const int rights = (wanted.read ? R_OK : 0) | (wanted.write ? W_OK : 0);
    if (::syscall(SYS_faccessat2, file_.descriptor(), "", rights, AT_EACCESS | AT_EMPTY_PATH) == 0) return {};
    return failure(error::last("open stream", file_.descriptor()));
}

result<void> host_stream::open_data(data_access wanted) noexcept {
    if (wanted.write) {
        if (const auto may = tree_.may_change(); not may) return may;
    }
    if (account_identity::is_in_use()) {
        if (const auto may = may_use(wanted); not may) return may;
    }
    granted_.add(wanted);
    return {};
}

io::task<result<std::size_t>> host_stream::co_read(std::span<std::byte> into, std::uint64_t offset,
                                                   io::call_withdrawal* by) noexcept {
    return co_run([=, this] { return read_at(into, offset); }, by);
}

result<std::size_t> host_stream::read_at(std::span<std::byte> into, std::uint64_t offset) const {
    if (not granted_.can_read()) return failure(error(EBADF, "read stream"));
    const auto bytes = content();
    if (not bytes) return failure(bytes.error());
    if (offset >= bytes->size()) return 0U;
    const auto part = std::span(*bytes).subspan(static_cast<std::size_t>(offset));
    const std::size_t count = std::min(part.size(), into.size());
    std::ranges::copy(part.first(count), into.begin());
    return count;
}

result<void> host_stream::write_at(std::span<const std::byte> from, std::uint64_t offset) {
    if (not granted_.can_write()) return failure({EBADF, "write stream"});
    auto bytes = content();
    if (not bytes) return failure(bytes.error());
    if (from.empty()) return {};
    if (offset > limits::attribute_bytes_max or from.size() > limits::attribute_bytes_max - offset)
        return failure({ENOSPC, "write stream"});
    const auto at = static_cast<std::size_t>(offset);
    bytes->resize(std::max(bytes->size(), at + from.size()));
    std::ranges::copy(from, bytes->begin() + static_cast<std::ptrdiff_t>(at));
    return store_attribute(file_, attribute(), *bytes);
}

io::task<result<void>> host_stream::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                             io::call_withdrawal* by) noexcept {
    return co_run([=, this] { return write_at(from, offset); }, by);
}

io::task<result<void>> host_stream::co_flush(io::call_withdrawal* by) noexcept {
    co_return co_await domain().offload(tree_.multiplexer_here(), by, [this] { return flush(); });
}

result<void> host_stream::flush() const {
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

result<void> host_stream::truncate(std::uint64_t size_bytes) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "truncate stream"});
    auto bytes = content();
    if (not bytes) return failure(bytes.error());
    if (size_bytes > limits::attribute_bytes_max) return failure({ENOSPC, "truncate stream"});
    bytes->resize(static_cast<std::size_t>(size_bytes));
    return store_attribute(file_, attribute(), *bytes);
}

result<void> host_stream::allocate(std::uint64_t size_bytes) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "allocate stream"});
    if (size_bytes > limits::attribute_bytes_max) return failure({ENOSPC, "allocate stream"});
    return {};
}

result<void> host_stream::zero(std::uint64_t offset, std::uint64_t length, bool) noexcept {
    if (not granted_.can_write()) return failure({EBADF, "zero stream"});
    auto bytes = content();
    if (not bytes) return failure(bytes.error());
    if (offset >= bytes->size()) return {};
    const auto part = std::span(*bytes).subspan(static_cast<std::size_t>(offset));
    std::ranges::fill(part.first(static_cast<std::size_t>(std::min<std::uint64_t>(length, part.size()))),
                      std::byte{});
    return store_attribute(file_, attribute(), *bytes);
}

result<std::span<io::extent_pair>> host_stream::allocated_ranges(
    std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept {
    const auto found = status();
    if (not found) return failure(found.error());
    if (storage.empty()) return failure({EINVAL, "list ranges"});
    if (offset >= found->size_bytes or length == 0) return storage.first(0);
    storage[0] = {.offset = offset, .length = std::min(length, found->size_bytes - offset)};
    return storage.first(1);
}

result<std::uint64_t> host_stream::clone_to(node& destination, io::extent_pair source,
                                            std::uint64_t destination_offset, bool only_shared) noexcept {
    auto* const other = dynamic_cast<host_stream*>(&destination);
    if (only_shared or other == nullptr) return failure({EOPNOTSUPP, "clone stream"});
    if (not granted_.can_read()) return failure({EBADF, "clone stream"});
    const auto bytes = content();
    if (not bytes) return failure(bytes.error());
    if (source.offset >= bytes->size()) return 0U;
    const auto part = std::span(*bytes).subspan(static_cast<std::size_t>(source.offset));
    const auto wanted =
        part.first(static_cast<std::size_t>(std::min<std::uint64_t>(source.length, part.size())));
    if (const auto done = other->write_at(wanted, destination_offset); not done) return failure(done.error());
    return wanted.size();
}

result<void> host_stream::rename(std::string_view name, when_taken taken) noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    if (const auto valid = check_stream_name(name); not valid) return valid;
    const auto bytes = content();
    if (not bytes) return failure(bytes.error());
    const auto other = find_attribute(file_, stream_prefix, name);
    if (not other and other.error() != std::errc::no_such_file_or_directory) return failure(other.error());
    const std::string before = attribute();
    const bool is_own = other and * other == before;
    if (is_own and before == attribute_of(name)) return {};
    if (other and not is_own) {
        if (taken == when_taken::refuse) return failure(error::with_path(EEXIST, "rename stream", name));
    }
    // The new one first: a file system that is full then loses nothing. If the one that is replaced
    // has this very name, the file system exchanges its value in one step.
    const std::string wanted = attribute_of(name);
    if (const auto done = store_attribute(file_, wanted, *bytes); not done) return done;
    if (other and not is_own and *other != wanted) {
        if (const auto gone = io::remove_xattr(file_, *other); not gone) {
            (void)io::remove_xattr(file_, wanted);  // or there would be two spellings of one stream
            return gone;
        }
    }
    if (const auto gone = io::remove_xattr(file_, before); not gone) return gone;
    follow_stream_name(name);
    return {};
}

void host_stream::follow_stream_name(std::string_view name) noexcept {
    const std::scoped_lock guard(name_mutex_);
    name_ = name;
    key_.stream = stream_number(name_);
}

result<void> host_stream::remove() noexcept {
    if (const auto may = tree_.may_change(); not may) return may;
    const auto done = io::remove_xattr(file_, attribute());
    if (not done and done.error().code() == ENODATA) return failure({ENOENT, "remove stream"});
    return done;
}

}  // namespace

result<node_ptr> open_host_stream(host_tree& tree, const io::handle& file, file_key key, std::string path,
                                  const stream_request& wanted) {
    if (const auto valid = check_stream_name(wanted.name); not valid) return failure(valid.error());
    auto found = find_attribute(file, stream_prefix, wanted.name);
    if (not found and found.error() != std::errc::no_such_file_or_directory) return failure(found.error());
    if (found and wanted.create and wanted.exclusive)
        return failure(error::with_path(EEXIST, "create stream", wanted.name));
    if (not found) {
        if (not wanted.create) return failure(error::with_path(ENOENT, "find stream", wanted.name));
        if (const auto may = tree.may_change(); not may) return failure(may.error());
        found = attribute_of(wanted.name);
        if (const auto made = store_attribute(file, *found, {}); not made) return failure(made.error());
    }
    io::handle held(
        {.descriptor = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0), .kind = io::handle_kind::path});
    if (not held.is_valid()) return failure(error::last("dup", file.descriptor()));
    return std::make_unique<host_stream>(tree, std::move(held), key, std::move(path),
                                         found->substr(stream_prefix.size()));
}

}  // namespace sluice::vfs
