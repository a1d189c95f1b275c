#pragma once

#include <atomic>
#include <initializer_list>
#include <optional>

#include "sluice/sync/small_mutex.hpp"
#include "sluice/vfs/granted_access.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// Internal to the host volume.

namespace sluice::vfs {

/// Opens a named stream of a file. Errors: as node_attached::open_stream; EOPNOTSUPP.
[[nodiscard]] result<node_ptr> open_host_stream(host_tree& tree, const io::handle& file, file_key file_key,
                                                std::string path, const stream_request& wanted);

/// Returns the named streams of a file. Errors: as node_attached::streams.
[[nodiscard]] result<std::vector<stream_info>> list_host_streams(const host_tree& tree,
                                                                 const io::handle& file);

/// Removes the attributes that have the name of a stream in any case, except those `kept`. There
/// are several only after a crash, or if another program has created them. Errors: as
/// host_stream::remove. Blocks: for the file system. Allocates: names.
[[nodiscard]] result<void> remove_small_spellings(const io::handle& file, std::string_view name,
                                                  std::initializer_list<std::string_view> kept = {});

/// A named stream. A small one is an extended attribute of the file, which every call reads whole,
/// changes and writes whole. A large one is a file in a stream store. It becomes large when it
/// grows, and never small again. docs/formats/streams.md has the layout, and
/// docs/decisions/0024-streams-outside-extended-attributes.md the order of the steps.
///
/// Changes of a small stream are serialised by the caller, for all nodes of the file; readers see
/// one version of it. A large one is used like a file: concurrently, until its last node is
/// destroyed, even if it was removed. After a small stream is removed, or renamed by another node
/// without follow_stream_name(), calls fail with ENOENT and do not create it again.
///
/// Invariants:
///   1. If the attribute exists, it is the stream; a file of the same name is a leftover of a
///      crash.
///   2. `large_` is open if and only if `opened_` is set, which is set once. Then there is no
///      attribute.
///   3. A file that refers to streams of another, because it is a copy, has no stream that is kept
///      open.
/// Thread safety: as node. Immutable, but for `granted_`, `opened_` and `touched_` (atomic),
/// `large_` (written before `opened_` is set), and name and key, guarded by a mutex that is held
/// while they or `opened_` are set.
class host_stream final : public node, public node_data, public node_names, public node_attached {
public:
    host_stream(host_tree& tree, io::handle file, file_key key, std::string path, std::string name);

    [[nodiscard]] node_kind kind() const noexcept override { return node_kind::file; }
    [[nodiscard]] file_key key() const noexcept override;
    [[nodiscard]] std::string path() const override;
    [[nodiscard]] std::string location() const override { return link_of(file_); }
    [[nodiscard]] std::string stream_name() const override;
    [[nodiscard]] result<metadata> status() noexcept override;
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override;
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override;
    [[nodiscard]] node_data* data() noexcept override { return this; }
    [[nodiscard]] node_names* names() noexcept override { return this; }
    [[nodiscard]] bool has_lost_name() noexcept override;
    [[nodiscard]] node_attached* attached() noexcept override { return this; }
    [[nodiscard]] node_children* children() noexcept override { return nullptr; }

    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override;
    [[nodiscard]] bool transfers_at_once() const noexcept override { return large() != nullptr; }
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override;
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override;
    [[nodiscard]] result<void> write_here(std::span<const std::byte> from,
                                          std::uint64_t offset) noexcept override;
    [[nodiscard]] bool is_written_here() const noexcept override { return true; }
    [[nodiscard]] bool pins_extents() noexcept override { return granted_.can_read() and large() != nullptr; }
    [[nodiscard]] result<host_runs> pin_extents(io::extent_pair range,
                                                std::size_t runs_max) noexcept override;
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
    [[nodiscard]] result<name_place> place() noexcept override;
    [[nodiscard]] result<void> remove() noexcept override;

    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override;
    [[nodiscard]] result<metadata> file_status() noexcept override;
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override;
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override;
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override;
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override;

    /// Keeps the large stream open that was found in this directory. For a new node. Errors:
    /// ENOENT; EMFILE.
    [[nodiscard]] result<void> open_found(const stream_directory& in);

private:
    /// A large stream, for one call: the file that the node keeps open, or one of this call.
    class large_file {
    public:
        explicit large_file(io::file_handle& kept) noexcept : used_(&kept) {}
        explicit large_file(io::file_handle&& own) noexcept : own_(std::move(own)) {}
        [[nodiscard]] io::file_handle& operator*() noexcept { return used_ != nullptr ? *used_ : own_; }
        [[nodiscard]] io::file_handle* operator->() noexcept { return &**this; }

    private:
        io::file_handle* used_ = nullptr;
        io::file_handle own_;
    };

    [[nodiscard]] io::file_handle* large() const noexcept {
        return opened_.load(std::memory_order_acquire);  // pairs with the release in keep()
    }
    [[nodiscard]] std::string attribute() const;
    [[nodiscard]] result<std::vector<std::byte>> content() const;
    [[nodiscard]] result<void> may_use(data_access wanted) const noexcept;
    [[nodiscard]] result<void> may_change_streams() const noexcept;
    // Opens the large stream; ENOENT if there is none. For a change, also if the file is a copy.
    enum class purpose : bool { reading, change };
    [[nodiscard]] result<large_file> open_large(purpose what);
    [[nodiscard]] result<io::file_handle> open_in(const stream_directory& directory) const;
    [[nodiscard]] large_file keep(io::file_handle opened) noexcept;
    // Makes the stream large, if it is not, with the content of its attribute.
    [[nodiscard]] result<large_file> make_large();
    [[nodiscard]] result<large_file> move_out(const stream_directory& to, const std::string& name,
                                              std::span<const std::byte> bytes);

    [[nodiscard]] io::task<result<std::size_t>> co_read_unopened(std::span<std::byte> into,
                                                                 std::uint64_t offset,
                                                                 io::call_cancellation* by) noexcept;
    [[nodiscard]] result<std::optional<std::size_t>> read_small(std::span<std::byte> into,
                                                                std::uint64_t offset);
    [[nodiscard]] result<void> write_at(std::span<const std::byte> from, std::uint64_t offset);
    [[nodiscard]] result<void> store_small(std::span<const std::byte> bytes);
    [[nodiscard]] result<void> write_large(io::file_handle& file, std::span<const std::byte> from,
                                           std::uint64_t offset) noexcept;
    [[nodiscard]] result<std::uint64_t> clone_small(std::span<const std::byte> bytes, host_stream& to,
                                                    io::extent_pair source, std::uint64_t destination_offset);
    [[nodiscard]] result<void> set_sparse(bool is_sparse);
    [[nodiscard]] result<void> flush();
    // A change of a large stream is a change of its file ([MS-FSA] 2.1.5.4).
    void touch() noexcept;

    // Another stream, which a rename replaces; without a name: none.
    struct replaced_stream {
        std::string name{};
        bool is_large = false;
    };
    [[nodiscard]] result<void> rename_small(std::string_view name, std::span<const std::byte> bytes,
                                            const replaced_stream& replaced);
    [[nodiscard]] result<void> rename_large(std::string_view name, const replaced_stream& replaced);
    [[nodiscard]] result<bool> remove_large(std::string_view name);

    // Carries out a transfer of a small stream where it may run.
    template <class Call>
    [[nodiscard]] io::task<std::invoke_result_t<Call&>> co_run(Call call,
                                                               io::call_cancellation* by) noexcept {
        if (domain().is_inline()) {
            const fs_domain::inline_call now(domain());
            co_return call();
        }
        co_return co_await domain().offload(tree_.multiplexer_here(), by, std::move(call));
    }
    template <class Call>
    [[nodiscard]] io::task<std::invoke_result_t<Call&>> co_offload(Call call,
                                                                   io::call_cancellation* by) noexcept {
        co_return co_await domain().offload(tree_.multiplexer_here(), by, std::move(call));
    }

    host_tree& tree_;
    const io::handle file_;
    const std::string path_;
    granted_access granted_;
    io::file_handle large_;
    std::atomic<io::file_handle*> opened_ = nullptr;  // null, or &large_
    // When touch() has set the time, in ticks of the kernel.
    std::atomic<std::int64_t> touched_ = 0;
    mutable sync::basic_small_mutex<sync::real_atomics> name_mutex_;  // guards what follows
    file_key key_;
    std::string name_;
};

}  // namespace sluice::vfs
