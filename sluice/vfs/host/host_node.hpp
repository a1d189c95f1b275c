#pragma once

#include <atomic>
#include <mutex>

#include "sluice/sync/small_mutex.hpp"
#include "sluice/vfs/granted_access.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/node_memory.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// Internal to the host volume.

namespace sluice::vfs {

/// A file, directory, link or other thing of the host.
///
/// Held by a descriptor that names it (O_PATH). Its data is opened on demand through that
/// descriptor, so that it is the same file even if its name has changed. A file that was just
/// created, or opened for its data at once, is held by the descriptor of its data alone.
///
/// Thread safety: as node. Descriptors are set once and published by an atomic pointer. The name
/// and the key, which may change, are a monitor with its own mutex: name_mutex_ is held while one
/// of them is read or set, never during a call of the kernel.
class host_node final : public node,
                        public node_data,
                        public node_names,
                        public node_attached,
                        public node_children {
public:
    host_node(host_tree& tree, io::handle held, const io::file_status& status, std::string_view path);
    /// Creates the node of a file whose data is open already, for reading or for both.
    host_node(host_tree& tree, host_tree::opened_file opened, std::string_view path);

    static void* operator new(std::size_t bytes) { return node_memory().allocate(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        node_memory().deallocate(memory, bytes);
    }

    [[nodiscard]] node_kind kind() const noexcept override { return kind_.load(std::memory_order_relaxed); }
    [[nodiscard]] file_key key() const noexcept override {
        const std::scoped_lock guard(name_mutex_);
        return key_;
    }
    [[nodiscard]] std::string path() const override;
    [[nodiscard]] std::string location() const override;
    [[nodiscard]] result<metadata> status() noexcept override;
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override;
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override;
    [[nodiscard]] node_data* data() noexcept override {
        return found_as_ == node_kind::file ? this : nullptr;
    }
    [[nodiscard]] node_names* names() noexcept override { return this; }
    [[nodiscard]] node_attached* attached() noexcept override { return this; }
    [[nodiscard]] node_children* children() noexcept override {
        return found_as_ == node_kind::directory ? this : nullptr;
    }

    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override;
    [[nodiscard]] bool transfers_at_once() const noexcept override { return true; }
    void keep_access_time(bool keeps) noexcept override;
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override;
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override;
    [[nodiscard]] io::file_handle* host_file() noexcept override;
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
    [[nodiscard]] result<void> link(std::string_view path, when_taken taken) noexcept override;
    [[nodiscard]] result<short_name> alternate_name() noexcept override;
    [[nodiscard]] result<void> set_alternate_name(const short_name& name) noexcept override;
    [[nodiscard]] result<name_place> place() noexcept override;
    [[nodiscard]] result<void> recycle() noexcept override;
    [[nodiscard]] bool has_lost_name() noexcept override;
    [[nodiscard]] result<void> remove() noexcept override;
    [[nodiscard]] result<std::string> read_link() noexcept override;
    [[nodiscard]] result<void> become_link(std::string_view target) noexcept override;

    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override;
    [[nodiscard]] bool streams_may_wait() noexcept override;
    [[nodiscard]] result<void> remove_streams() noexcept override;
    [[nodiscard]] result<node_ptr> open_stream(const stream_request& wanted) noexcept override;
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override;
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override;
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override;
    [[nodiscard]] result<std::vector<std::byte>> security_as_of(const metadata& status) noexcept override;
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override;
    [[nodiscard]] result<std::unique_ptr<directory_listing>> list() noexcept override;
    [[nodiscard]] result<name_identity> identity_of(std::string_view name) noexcept override;

    /// Returns the descriptor that names it.
    [[nodiscard]] const io::handle& held() const noexcept {
        // Pairs with the release in hold_again().
        return *named_by_.load(std::memory_order_acquire);
    }
    /// Returns the status that the kernel has reported.
    [[nodiscard]] result<metadata> status_from(const io::file_status& found) noexcept;
    /// The same, if its attributes are known as well.
    [[nodiscard]] metadata status_from(const io::file_status& found, const private_attributes& own) noexcept;
    /// The host's path, as last known.
    [[nodiscard]] std::string known_path() const {
        const std::scoped_lock guard(name_mutex_);
        return std::string(path_);
    }

private:
    void go_by(std::string_view path);
    [[nodiscard]] std::string present_path() const;
    [[nodiscard]] result<void> may_move() const noexcept;
    [[nodiscard]] bool may_have_large_streams() const noexcept;
    [[nodiscard]] result<void> bring_streams() noexcept;
    [[nodiscard]] result<void> rename_within(std::string_view path, when_taken taken) noexcept;
    [[nodiscard]] result<void> link_within(std::string_view path, when_taken taken) noexcept;
    [[nodiscard]] result<void> rename_over(const host_place& there, when_taken taken);
    [[nodiscard]] result<void> replace_by(const io::handle& renamed, const std::string& taken) noexcept;
    [[nodiscard]] bool remove_empty_store() const noexcept;
    [[nodiscard]] result<void> become_file(const std::string& where);
    [[nodiscard]] result<void> hold_again(const std::string& where);
    [[nodiscard]] bool can_have_attributes() const noexcept;
    [[nodiscard]] result<private_attributes> private_attributes_at(time_point change_time) noexcept;
    [[nodiscard]] result<private_attributes> ask_private_attributes() const noexcept;
    [[nodiscard]] result<std::vector<std::byte>> security_if_any(
        const result<private_attributes>& own) const noexcept;
    // Returns the cheapest descriptor for attributes: that of the data, which needs no name.
    [[nodiscard]] const io::handle& asked() const noexcept;
    [[nodiscard]] result<io::file_handle> reopen(io::mode wanted) const noexcept;
    [[nodiscard]] result<void> flush() noexcept;
    // The file for transfers; null if it is not open for them. Thread safety:
    // any number of threads.
    [[nodiscard]] io::file_handle* readable() noexcept;
    [[nodiscard]] io::file_handle* writable() noexcept;
    // Sets the flags of a file that is open for data.
    void set_flags(const io::file_handle& file) const noexcept;
    // Turns O_NONBLOCK off before the first transfer: with it, a ring returns EAGAIN where it would
    // wait. An open that transfers nothing does not need the call.
    void end_nonblocking() noexcept;

    host_tree& tree_;
    const bool is_root_;
    const node_kind found_as_;  // decides which parts it has
    std::atomic<node_kind> kind_;
    granted_access granted_;
    std::atomic<bool> keeps_access_time_ = false;
    // The change time with which the file was last seen without a reference to large streams.
    std::atomic<time_point> without_streams_at_ = time_point::min();
    // Each is opened once. Two for data, because widening must not close one with reads in flight.
    io::handle held_;
    io::file_handle reading_;
    io::file_handle writing_;
    std::atomic<const io::handle*> named_by_;                    // one of them; never null
    std::atomic<const io::handle*> asked_by_ = nullptr;          // one that is open for data
    std::atomic<const io::file_handle*> nonblocking_ = nullptr;  // the one with O_NONBLOCK on

    mutable sync::basic_small_mutex<sync::real_atomics> name_mutex_;  // guards what follows
    file_key key_;
    std::pmr::string path_;  // the host's, as last known
};

/// Creates the node of an open file. Errors: EIO.
[[nodiscard]] result<node_ptr> make_host_node(host_tree& tree, io::handle held,
                                              std::string_view path) noexcept;

}  // namespace sluice::vfs
