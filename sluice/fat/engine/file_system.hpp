#pragma once

#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <set>

#include "sluice/base/clock.hpp"
#include "sluice/fat/codec/timestamp.hpp"
#include "sluice/fat/engine/allocator.hpp"
#include "sluice/fat/engine/extent_pin_table.hpp"
#include "sluice/fat/engine/inode.hpp"
#include "sluice/vfs/host_runs.hpp"

namespace sluice::fat {

/// The extent of the damage that a crash may cause.
enum class write_mode : std::uint8_t {
    fast,     ///< only the dirty mark is ordered; durable after a flush
    ordered,  ///< a crash leaves at worst lost clusters; durable after a flush
    sync,     ///< ordered, and each call durable when it returns
};

struct mount_options {
    bool is_read_only = false;
    write_mode mode = write_mode::ordered;
    code_page page = code_page::cp437;
    time_zone zone = time_zone::host();
    lookup_strategy strategy = lookup_strategy::runs;
    bool discards = true;  // discard freed clusters on the device, once that is durable
    /// The last writer used a journal, which has been recovered: unmounting marks the volume clean.
    bool is_known_consistent = false;
};

/// A change of an inode; unset members stay as they are.
struct inode_change {
    std::optional<time_point> created{};
    std::optional<time_point> accessed{};
    std::optional<time_point> modified{};
    std::optional<attributes> bits{};  // of read_only, hidden, system, archive
};

struct inode_status {
    std::uint64_t id = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    attributes bits = attributes::none;
    time_point created{};
    time_point accessed{};
    time_point modified{};
    time_point changed{};  // last change of any kind while in use; otherwise as modified
    bool is_directory = false;
    bool is_removed = false;
};

class file_system;

/// A reference to a file or directory. A removed file exists until its last handle is destroyed.
/// Move-only. Destroyed before its file system.
class inode_handle {
public:
    inode_handle() noexcept = default;
    inode_handle(inode_handle&& other) noexcept
        : system_(std::exchange(other.system_, nullptr)), inode_(std::move(other.inode_)) {}
    inode_handle& operator=(inode_handle&& other) noexcept {
        std::swap(system_, other.system_);
        std::swap(inode_, other.inode_);
        return *this;
    }
    ~inode_handle();

    [[nodiscard]] explicit operator bool() const noexcept { return inode_ != nullptr; }
    [[nodiscard]] inode& operator*() const noexcept { return *inode_; }
    [[nodiscard]] inode* operator->() const noexcept { return inode_.get(); }

private:
    friend class file_system;
    inode_handle(file_system& system, inode_ptr held) noexcept : system_(&system), inode_(std::move(held)) {}

    file_system* system_ = nullptr;
    inode_ptr inode_;
};

/// A mounted FAT volume: the engine below fat::volume, the commands and the benchmarks.
///
/// Changes of names and of cluster chains stay in memory until commit(). It writes them in an order
/// that leaves the volume usable at every moment (docs/algorithms/fat.md): the dirty mark; data;
/// the table, new entries before links to them; directories, additions before removals. Then the
/// released clusters become free. Data is written at once.
///
/// Invariants:
///   1. Locks are acquired in this order: ranges of an inode; changes_; names_; an inode's mutex;
///      queue_; those inside allocator and table. A thread that changes names or commits holds
///      changes_ for the whole operation, and names_ except while the commit waits for the disk.
///      During that wait, other threads can look up names and close inodes, but change neither a
///      directory nor anything that the commit still has to write. Contents are dropped only with
///      changes_ held, or if the inode is removed and has no handles.
///   2. A directory is in memory once: by_cluster_ has the inodes whose content is loaded. A second
///      directory that claims the same cluster, even its own ancestor, is rejected (ELOOP).
///   3. Size and valid length of a file change only under a lock on its ranges from the lesser one
///      to the end. So a thread that holds a range within the valid length may transfer it in
///      place.
///   4. A change is in an inode's entry before the inode is in dirty_inodes_; the clusters that the
///      change gave up are released after that. So if a commit collects the released clusters
///      before the entries, it writes no entry that refers to a cluster that it frees.
///   5. A cluster is freed only if it is taken in the table. A cluster that is free in the table
///      becomes part of a chain only for the file that it was allocated to, and gets no link
///      before. So if two files of a damaged volume share a cluster, they do not free it twice, and
///      neither continues after a cluster that the other has freed.
///   6. Pinned extents (pin_extents()) are not reallocated before they are unpinned, and extents
///      that were ever pinned are not reallocated before the host has evicted their pages. So a
///      holder of a pin, or of pages spliced from it, sees old or new bytes of that file, but never
///      those of another file.
/// Thread safety: any thread, all members but the destructor. Blocks: for the
/// device. Allocates: yes.
class file_system {
public:
    /// `on` and `clock` outlive the file system. Errors: EIO if the root cannot be read; those of
    /// the device.
    [[nodiscard]] static result<std::unique_ptr<file_system>> mount(device& on, const geometry& shape,
                                                                    const clock_source& clock,
                                                                    const mount_options& options = {});
    file_system(const file_system&) = delete;
    file_system& operator=(const file_system&) = delete;
    /// Commits and marks the volume clean, if that succeeds. To get the result, call unmount()
    /// first.
    ~file_system();
    /// Commits, writes FSInfo, and marks the volume clean, unless it was dirty when it was mounted.
    [[nodiscard]] result<void> unmount() noexcept;

    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] bool is_read_only() const noexcept { return options_.is_read_only; }
    /// Returns the state of the mark in the boot sector or FAT[1] at mount time.
    [[nodiscard]] bool was_dirty() const noexcept { return was_dirty_; }
    /// Returns the label of the root, or else of the boot sector, as text; empty if there is none.
    [[nodiscard]] std::string label();
    /// Returns the number of free clusters. Complexity: O(1), except for the first call, which may
    /// scan the table.
    [[nodiscard]] result<std::uint32_t> free_clusters() noexcept;
    [[nodiscard]] const table_counters& counters() const noexcept { return table_.counters(); }

    // --- names; paths are in the form of vfs::check_path

    /// Finds an inode by its path. Errors: ENOENT if the last component is missing; ENOTDIR if an
    /// earlier one is missing or is a file; ELOOP for a directory that claims the cluster of
    /// another; EIO.
    [[nodiscard]] result<inode_handle> find(std::string_view path) noexcept;
    /// Creates a file or directory. Errors: as find for the parent directory; EEXIST; ENOSPC, also
    /// for a full directory; EROFS; EILSEQ for a name that ends in a dot or a space.
    [[nodiscard]] result<inode_handle> create(std::string_view path, bool is_directory,
                                              attributes bits) noexcept;
    /// Returns another handle of the inode.
    [[nodiscard]] inode_handle again(inode& of) noexcept;
    enum class if_taken : bool { refuse, replace };
    /// Renames or moves an inode. Errors: as create; EBUSY for the root; ENOENT if it was removed;
    /// EINVAL for a directory into itself; ENOTEMPTY, EISDIR, ENOTDIR if the target cannot be
    /// replaced.
    [[nodiscard]] result<void> rename(inode& what, std::string_view path, if_taken taken) noexcept;
    /// Removes an inode. Errors: EBUSY for the root; ENOENT if it was removed; ENOTEMPTY; EROFS.
    [[nodiscard]] result<void> remove(inode& what) noexcept;
    /// Returns the path of an inode. For a removed inode, returns its last name in its former
    /// directory.
    [[nodiscard]] std::string path_of(const inode& of) noexcept;
    /// Returns the short name of an inode if it differs from its name by more than case; else
    /// empty, also for a removed inode. Errors: as find; EIO if the medium has lost its entry.
    [[nodiscard]] result<std::string> alias_of(inode& of) noexcept;
    /// Returns the first name of a directory at or after `from_slot`, and its status; std::nullopt
    /// at the end.
    /// Errors: ENOTDIR; as find.
    struct listed {
        std::string name;
        // The short name if it differs from `name` by more than case; else empty.
        std::string alias;
        inode_status status;
        std::uint32_t slot = 0;
    };
    [[nodiscard]] result<std::optional<listed>> list(inode& of, std::uint32_t from_slot) noexcept;
    /// Appends names in the order of their slots, until `found` has `most` names, or the directory
    /// ends. Holds the lock of the names throughout. Errors: as above. Allocates: the names.
    [[nodiscard]] result<void> list(inode& of, std::uint32_t from_slot, std::size_t most,
                                    std::vector<listed>& found) noexcept;
    /// Returns the on-disk identity of a directory, and whether list() returns all of its names.
    /// Errors: ENOTDIR; as find. Complexity: O(1) if the directory is in memory, else linear in its
    /// size.
    struct directory_state {
        std::uint32_t first_cluster = 0;  // 0: the root of FAT12 and FAT16
        bool is_cut_off = false;          // its cluster chain is damaged: names after
                                          // the damage are missing
    };
    [[nodiscard]] result<directory_state> state_of(inode& of) noexcept;

    // --- status of an inode

    [[nodiscard]] inode_status status(inode& of) noexcept;
    /// Changes times or attributes. Errors: EROFS.
    [[nodiscard]] result<void> change(inode& of, const inode_change& wanted) noexcept;

    // --- data of a file. Each stream of requests has its own `hint`. EAGAIN means that the call
    // would have to wait but may not, and that nothing was done.

    /// Reads; returns fewer bytes only at the end of the file. Errors: EIO if the chain is shorter
    /// than the size.
    [[nodiscard]] result<std::size_t> read(inode& of, run_list::hint& hint, std::span<std::byte> into,
                                           std::uint64_t offset, may_wait waits = may_wait::yes) noexcept;
    /// Writes. Errors: EFBIG beyond 2^32 - 1 bytes; ENOSPC; EROFS; EIO. If it may not wait, it
    /// commits nothing (see is_commit_due()), and works only if the device writes into the host's
    /// memory.
    [[nodiscard]] result<void> write(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                     std::uint64_t offset, may_wait waits = may_wait::yes) noexcept;
    /// Sets the size. Added bytes read as zeros, which are not written before that is necessary.
    /// Errors: as write.
    [[nodiscard]] result<void> truncate(inode& of, std::uint64_t size_bytes) noexcept;
    /// Preallocates clusters for an expected size. Errors: ENOSPC, EFBIG, EROFS.
    [[nodiscard]] result<void> preallocate(inode& of, std::uint64_t size_bytes) noexcept;
    /// Moves a file's data to fewer runs of clusters, if there is free space for them. The move is
    /// a separate commit, after a commit of all earlier changes: until then neither the table nor a
    /// directory refers to the new clusters. So a crash leaves the old runs or the new ones;
    /// without a journal, at worst also lost clusters. Times do not change. Errors: EISDIR, EROFS;
    /// EIO for a damaged chain; those of the device. Allocates: 1 MiB and lists. Blocks: for the
    /// device; requests for the same file wait. Complexity: linear in the file.
    struct run_counts {
        std::uint64_t before = 0;
        std::uint64_t after = 0;  // equal to `before` if there was no better place
    };
    [[nodiscard]] result<run_counts> defragment(inode& of) noexcept;
    /// Sets a range to zeros; never extends the file. Errors: as write.
    [[nodiscard]] result<void> zero(inode& of, byte_extent where) noexcept;
    /// Makes the data and name of the inode durable.
    [[nodiscard]] result<void> flush(inode& of) noexcept;

    /// Visits the data of a range: contiguous pieces of the device, in ascending order, each as
    /// large as possible. Zeros that are not on the device come as pieces without a place. The
    /// bytes cannot be changed through the file system while `visit` runs; if it returns false, the
    /// visit ends. Errors: as read.
    struct piece {
        std::uint64_t offset = 0;  // in the file
        std::uint64_t length = 0;
        std::optional<std::uint64_t> place{};  // on the device
    };
    [[nodiscard]] result<void> for_each_extent(inode& of, byte_extent where,
                                               const std::function<bool(const piece&)>& visit,
                                               may_wait waits = may_wait::yes) noexcept;

    /// Returns whether pin_extents() can work: the device is (part of) a file of the
    /// host, and either it is read-only, or clusters are whole pages that can be evicted
    /// from the host's memory.
    [[nodiscard]] bool pins_extents() const noexcept { return pins_extents_; }
    /// Pins bytes and returns their location in the file of the host, for transfers that bypass the
    /// engine and its locks: later writes to the file may or may not be visible. Errors: as read;
    /// EOPNOTSUPP if extents cannot be pinned; E2BIG if there are more than `runs_max` runs.
    [[nodiscard]] result<vfs::host_runs> pin_extents(inode& of, byte_extent where, std::size_t runs_max,
                                                     may_wait waits = may_wait::yes) noexcept;

    /// Makes all changes durable, in order. Errors: those of the device; the next commit retries
    /// the rest.
    [[nodiscard]] result<void> commit() noexcept;
    /// Returns whether there are so many changes that a commit should not be postponed. Calls that
    /// may wait commit by themselves.
    [[nodiscard]] bool is_commit_due() noexcept;

private:
    friend class inode_handle;
    using location = std::uint64_t;

    file_system(device& on, const geometry& shape, const clock_source& clock, const mount_options& options);

    // lookup, with names_ held; trim also with changes_ (file_system.cpp)
    [[nodiscard]] cluster_width width() const noexcept;
    [[nodiscard]] static location location_of(const inode& parent, std::uint32_t slot) noexcept;
    [[nodiscard]] inode_ptr inode_at(const inode_ptr& parent, const name_entry& entry);
    [[nodiscard]] result<directory*> content_of(const inode_ptr& of);
    void drop_content(inode& of) noexcept;
    [[nodiscard]] std::uint64_t id_of(const inode& parent, const name_entry& entry) const noexcept;
    void save_uses(const inode& of);
    void restore_uses(const inode& of);
    void trim() noexcept;
    void try_to_trim() noexcept;
    [[nodiscard]] result<inode_ptr> walk(std::string_view path);
    [[nodiscard]] inode_handle hold(inode_ptr which);
    [[nodiscard]] bool is_last(const inode& held) noexcept;
    void closed(inode_ptr& which) noexcept;
    static void forget_use(const inode_ptr& last) noexcept;
    [[nodiscard]] inode_status status_of(const directory_entry& entry) const noexcept;
    [[nodiscard]] inode_status status_locked(const inode& of) const noexcept;
    [[nodiscard]] listed listed_of(const inode& directory, const name_entry& entry) const;
    [[nodiscard]] std::string path_locked(const inode& of) const;
    static std::uint64_t new_id_base() noexcept { return std::uint64_t{1} << 63; }

    // names, with changes_ and names_ held (file_system_names.cpp)
    struct place {
        inode_ptr parent;
        directory* in = nullptr;
        std::string_view name;
        const name_entry* taken = nullptr;
    };
    [[nodiscard]] result<place> place_of(std::string_view path);
    [[nodiscard]] result<void> may_change() const noexcept;
    [[nodiscard]] result<void> make_room(const place& there);
    [[nodiscard]] result<void> grow_directory(inode& which, directory& in);
    [[nodiscard]] result<cluster_extent> take_cluster(const allocation_request& wanted, reservation& own);
    [[nodiscard]] result<std::uint32_t> make_directory_cluster(const inode& parent);
    [[nodiscard]] directory_entry new_entry(bool is_directory, attributes bits) const noexcept;
    void touch(const inode_ptr& which);
    [[nodiscard]] result<void> move_over(const inode_ptr& what, const place& there);
    [[nodiscard]] result<void> move_to(const inode_ptr& what, const place& there);
    [[nodiscard]] result<void> change_case(const inode_ptr& what, const place& there);
    void update_location(const inode_ptr& what, const place& there, const name_entry& entry);
    [[nodiscard]] result<void> may_replace(const inode_ptr& what, const inode_ptr& other);
    [[nodiscard]] result<void> after_change();

    // data (file_system_data.cpp)
    [[nodiscard]] result<allocator*> clusters() noexcept;
    [[nodiscard]] result<cluster_run> run_at(inode& of, std::uint32_t file_cluster, run_list::hint& hint,
                                             may_wait waits) noexcept;
    template <class Transfer>
    [[nodiscard]] result<void> for_each_piece(inode& of, run_list::hint& hint, byte_extent where,
                                              Transfer transfer, may_wait waits) noexcept;
    [[nodiscard]] result<void> zero_on_device(inode& of, byte_extent where) noexcept;
    void put_back(const std::vector<cluster_extent>& taken) noexcept;
    [[nodiscard]] result<void> make_clusters(inode& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] result<void> try_make_clusters(inode& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] sync::range_guard lock_to_read(inode& of, byte_extent where, may_wait waits) noexcept;
    [[nodiscard]] sync::range_guard lock_to_write(inode& of, byte_extent where, bool& lengthens,
                                                  may_wait waits) noexcept;
    [[nodiscard]] bool lengthens_at_once(inode& of, std::uint64_t offset) noexcept;
    [[nodiscard]] result<void> write_pieces(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                            std::uint64_t offset, may_wait waits) noexcept;
    [[nodiscard]] result<void> write_longer(inode& of, run_list::hint& hint, std::span<const std::byte> from,
                                            std::uint64_t offset, may_wait waits) noexcept;
    [[nodiscard]] result<void> shrink(inode& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] bool has_unwritten_zeros(const inode& of) const noexcept;
    [[nodiscard]] result<void> write_zeros(inode& of) noexcept;
    // defragmenting, with all ranges of the inode locked (file_system_defragment.cpp)
    [[nodiscard]] result<std::uint32_t> runs_in(inode& of) noexcept;
    [[nodiscard]] result<std::vector<cluster_extent>> take_better_room(inode& of,
                                                                       std::uint32_t runs) noexcept;
    [[nodiscard]] result<void> copy_to(inode& of, std::span<const cluster_extent> room) noexcept;
    [[nodiscard]] result<void> move_to_clusters(inode& of, std::span<const cluster_extent> room) noexcept;
    void drop(inode& of) noexcept;
    void mark_changed(inode& of, bool is_content) noexcept;

    // commit, with changes_ and names_ held (file_system_commit.cpp)
    [[nodiscard]] result<void> commit_locked() noexcept;
    [[nodiscard]] result<void> write_changes() noexcept;
    [[nodiscard]] result<void> mark_dirty() noexcept;
    [[nodiscard]] result<void> mark_clean() noexcept;
    [[nodiscard]] result<void> write_mark(bool is_dirty) noexcept;
    template <class Wait>
    [[nodiscard]] result<void> while_others_look(Wait wait) noexcept;
    [[nodiscard]] result<void> order() noexcept;
    [[nodiscard]] result<void> wait_for_disk() noexcept;
    [[nodiscard]] result<void> flush_table() noexcept;
    void forget_written_directories();
    void stamp(directory_entry& raw, const inode& of) const noexcept;
    [[nodiscard]] directory_entry entry_of(inode& of) noexcept;
    void write_entries();
    [[nodiscard]] result<void> write_directories(bool is_removing) noexcept;
    struct cut {
        inode_ptr of;
        std::uint32_t last = 0;  // the cluster that becomes the last of its chain
    };
    struct given_up {
        std::vector<cut> cuts;
        std::vector<cluster_extent> rest;   // not yet free in the table
        std::vector<cluster_extent> freed;  // free there; available once that is durable
        std::uint64_t asked = 0;            // number of clusters released
        [[nodiscard]] bool is_empty() const noexcept { return cuts.empty() and rest.empty() and asked == 0; }
    };
    [[nodiscard]] given_up take_given_up();
    [[nodiscard]] result<void> free_given_up(given_up& what) noexcept;
    [[nodiscard]] byte_extent on_device(cluster_extent what) const noexcept;
    void discard(std::vector<cluster_extent>& freed) noexcept;
    void make_available(std::vector<cluster_extent> freed, std::uint64_t asked) noexcept;
    void recheck_pinned() noexcept;
    [[nodiscard]] std::shared_ptr<extent_pin_table> pin_table();
    [[nodiscard]] std::shared_ptr<extent_pin_table> pin_table_so_far() noexcept;
    [[nodiscard]] bool has_changes() noexcept;

    device& device_;
    const geometry shape_;
    const clock_source& clock_;
    const mount_options options_;
    const remembered_zone zone_;
    allocation_table table_;
    bool was_dirty_ = false;
    const bool pins_extents_;
    const bool writes_at_once_;  // into the memory of the host, without waiting for the disk

    std::mutex allocator_made_;
    std::atomic<allocator*> clusters_{nullptr};
    std::unique_ptr<allocator> own_clusters_;
    std::mutex pin_table_made_;
    std::shared_ptr<extent_pin_table> pin_table_;  // null: no extent has been pinned

    std::mutex changes_;
    std::mutex names_;  // guards the members below, and names and contents of inodes
    inode_ptr root_;
    std::size_t handles_ = 0;  // open handles
    std::uint64_t next_id_ = new_id_base();
    std::unordered_map<location, name_use> uses_;  // for names whose directory is not in memory
    std::unordered_map<std::uint32_t, inode*> by_cluster_;
    std::list<inode_ptr> recent_;  // directories with content, most recently used first
    std::size_t recent_bytes_ = 0;
    std::set<inode_ptr> dirty_directories_;
    bool is_marked_ = false;
    std::deque<given_up> unfinished_;  // of this commit, and of failed ones
    std::vector<cluster_extent>
        pinned_;  // free on the disk, but pinned, or in the host's memory, when last checked

    std::mutex queue_;  // guards the members below
    std::vector<inode_ptr> dirty_inodes_;
    std::vector<cut> cuts_;
};

}  // namespace sluice::fat
