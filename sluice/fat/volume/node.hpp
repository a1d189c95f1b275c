#pragma once

#include <atomic>
#include <memory>
#include <type_traits>
#include <vector>

#include "sluice/fat/engine/file_system.hpp"
#include "sluice/fat/volume/inode_holder.hpp"
#include "sluice/fat/volume/volume_change_feed.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "sluice/vfs/buffered_write_hint.hpp"
#include "sluice/vfs/granted_access.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/volume.hpp"

// Internal to the volume.

namespace sluice::fat {

/// Data shared by the nodes of a volume.
struct volume_context {
    vfs::volume* owner = nullptr;
    std::unique_ptr<file_system> system;
    std::uint64_t number = 0;                // number of the engine
    std::vector<io::io_multiplexer*> loops;  // that run transfers
    io::call_threads* threads = nullptr;     // for calls that wait; null: they wait on the loop
    std::unique_ptr<volume_change_feed> feed;
    vfs::buffered_write_hint writes;
    std::atomic<bool> is_committing = false;  // a due commit, as part of a write
};

/// A file or directory of a FAT volume.
///
/// A transfer runs on the loop if it does not have to wait, and otherwise on a thread; but if the
/// file system can pin extents of its image, the loop's multiplexer reads data that is not in the
/// host's memory. In a domain whose calls are offloaded, all transfers run on the domain's workers.
/// Thread safety: as vfs::node; immutable, but for atomic members.
class node final : public vfs::node,
                   public vfs::node_data,
                   public vfs::node_names,
                   public vfs::node_children,
                   public inode_holder {
public:
    /// `around` outlives the node.
    node(volume_context& around, inode_handle what) noexcept
        : vfs::node(around.owner->domain()),
          around_(around),
          system_(*around.system),
          inode_(std::move(what)) {}

    [[nodiscard]] inode& held() const noexcept override { return *inode_; }

    [[nodiscard]] vfs::node_kind kind() const noexcept override {
        return inode_->is_directory ? vfs::node_kind::directory : vfs::node_kind::file;
    }
    [[nodiscard]] vfs::file_key key() const noexcept override { return key_of(*inode_); }
    [[nodiscard]] std::string path() const override { return system_.path_of(*inode_); }

    [[nodiscard]] result<vfs::metadata> status() noexcept override;
    [[nodiscard]] result<void> change(const vfs::metadata_change& wanted) noexcept override;
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override;
    [[nodiscard]] vfs::node_data* data() noexcept override { return inode_->is_directory ? nullptr : this; }
    [[nodiscard]] vfs::node_names* names() noexcept override { return this; }
    [[nodiscard]] vfs::node_attached* attached() noexcept override { return nullptr; }
    [[nodiscard]] vfs::node_children* children() noexcept override {
        return inode_->is_directory ? this : nullptr;
    }

    [[nodiscard]] bool transfers_at_once() const noexcept override { return true; }
    [[nodiscard]] result<void> open_data(vfs::data_access wanted) noexcept override;
    [[nodiscard]] bool pins_extents() noexcept override { return system_.pins_extents(); }
    [[nodiscard]] result<vfs::host_runs> pin_extents(io::extent_pair range,
                                                     std::size_t runs_max) noexcept override;
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override;
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override;
    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool frees_blocks) noexcept override;
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override;
    [[nodiscard]] result<std::uint64_t> clone_to(vfs::node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override;

    [[nodiscard]] result<void> rename(std::string_view path, vfs::when_taken taken) noexcept override;
    [[nodiscard]] result<vfs::name_place> place() noexcept override;
    [[nodiscard]] result<void> remove() noexcept override;
    [[nodiscard]] result<vfs::short_name> alternate_name() noexcept override;
    [[nodiscard]] result<std::unique_ptr<vfs::directory_listing>> list() noexcept override;
    [[nodiscard]] result<vfs::name_identity> identity_of(std::string_view name) noexcept override;

private:
    [[nodiscard]] static std::unexpected<error> not_supported(const char* operation) noexcept {
        return failure({EOPNOTSUPP, operation});
    }
    [[nodiscard]] vfs::file_key key_of(const inode& which) const noexcept {
        return {.image = around_.number, .volume = system_.shape().serial, .file = which.id, .stream = 0};
    }
    [[nodiscard]] vfs::name_identity identity_of(inode& which) noexcept;
    [[nodiscard]] result<void> may_use(bool is_granted) const noexcept;
    [[nodiscard]] io::task<result<std::size_t>> read_pinned(const vfs::host_runs& from,
                                                            std::span<std::byte> into) const noexcept;
    [[nodiscard]] result<void> write_at_once(std::span<const std::byte> from, std::uint64_t offset) noexcept;
    template <class Call>
    [[nodiscard]] io::task<std::invoke_result_t<Call&>> on_thread(Call call,
                                                                  io::call_cancellation* by) noexcept;
    result<void> recorded(result<void> done, vfs::change_kind what);

    volume_context& around_;
    file_system& system_;
    inode_handle inode_;
    vfs::granted_access granted_;
};

}  // namespace sluice::fat
