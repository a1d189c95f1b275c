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
#include "sluice/fat/engine/item.hpp"
#include "sluice/vfs/host_runs.hpp"

namespace sluice::fat {

/// How much a crash may take.
enum class write_mode : std::uint8_t {
    fast,     ///< order is up to the disk but for the dirty mark; a flush makes durable
    ordered,  ///< a crash leaves lost clusters at worst; a flush makes durable
    sync,     ///< ordered, and each call durable when it returns
};

struct mount_options {
    bool is_read_only = false;
    write_mode mode = write_mode::ordered;
    code_page page = code_page::cp437;
    time_zone zone = time_zone::host();
    lookup_strategy strategy = lookup_strategy::runs;
    bool discards = true;  // tell the device which clusters became free, once that is durable
    /// Whoever left it dirty had a journal, which has been carried out: it is marked clean in the end.
    bool is_known_sound = false;
};

/// What is to be changed of an item; what is not given stays.
struct item_change {
    std::optional<time_point> created{};
    std::optional<time_point> accessed{};
    std::optional<time_point> modified{};
    std::optional<attributes> bits{};  // of read_only, hidden, system, archive
};

struct item_status {
    std::uint64_t id = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    attributes bits = attributes::none;
    time_point created{};
    time_point accessed{};
    time_point modified{};
    time_point changed{};  // while in use, of anything; else as modified
    bool is_directory = false;
    bool is_removed = false;
};

class file_system;

/// A file or directory that is held; what is removed lives on until its last handle goes.
/// Move-only. Goes before its file system.
class item_handle {
public:
    item_handle() noexcept = default;
    item_handle(item_handle&& other) noexcept
        : system_(std::exchange(other.system_, nullptr)), item_(std::move(other.item_)) {}
    item_handle& operator=(item_handle&& other) noexcept {
        std::swap(system_, other.system_);
        std::swap(item_, other.item_);
        return *this;
    }
    ~item_handle();

    [[nodiscard]] explicit operator bool() const noexcept { return item_ != nullptr; }
    [[nodiscard]] item& operator*() const noexcept { return *item_; }
    [[nodiscard]] item* operator->() const noexcept { return item_.get(); }

private:
    friend class file_system;
    item_handle(file_system& system, item_ptr held) noexcept : system_(&system), item_(std::move(held)) {}

    file_system* system_ = nullptr;
    item_ptr item_;
};

/// A FAT volume, mounted: the engine beneath fat::volume, the commands and the benchmarks.
///
/// What is changed of names and of where files lie stays in memory until commit(), which writes it in an
/// order that leaves the volume usable at every moment (docs/algorithms/fat.md): the dirty mark; data; the
/// table, new entries before links to them; directories, what is new before what is gone; and then what was
/// given up becomes free. Data is written at once.
///
/// Invariants:
///   1. Locks are taken in this order: ranges of an item; changes_; names_; an item's mutex; queue_; those
///      inside allocator and table. Who changes names or commits holds changes_ throughout, and names_ but
///      while the commit waits for the disk: then others look names up and let items go, and change neither
///      a directory nor what the commit still has to write. Contents are dropped only with changes_ held, or
///      of what is removed and has no handle any more.
///   2. A directory is in memory once: by_cluster_ has the items whose content is loaded. A second one that
///      claims the same cluster is refused (ELOOP), be it its own ancestor.
///   3. Size and valid length of a file change only under a lock on its ranges from the lesser one to the
///   end;
///      so who holds a range within the valid length may transfer it in place.
///   4. What changed an item's entry is in it before the item is in dirty_items_; what it gave up is released
///      after that. So a commit that takes the released before the entries writes no entry that leads to
///      what it frees.
///   5. A cluster is freed only if the table has it as taken. A cluster that is free in the table becomes
///   part
///      of a chain only for the file that it was allocated to, and gets no link before. So two files of a
///      damaged volume that share a cluster do not free it twice, and neither continues after a cluster that
///      the other has freed.
///   6. What is lent (lend()) nobody else is given before it comes back, and what ever was lent not before
///      the host has forgotten its pages. So who was lent a file's bytes, or has taken their pages by
///      reference, sees bytes of that file, of whatever time, and never another's.
/// Thread safety: any thread, all members but the destructor. Blocks: for the device. Allocates: yes.
class file_system {
public:
    /// `on` and `clock` outlive it. Errors: EIO if the root cannot be read; those of the device.
    [[nodiscard]] static result<std::unique_ptr<file_system>> mount(device& on, const geometry& shape,
                                                                    const clock_source& clock,
                                                                    const mount_options& options = {});
    file_system(const file_system&) = delete;
    file_system& operator=(const file_system&) = delete;
    /// Commits and marks the volume clean, as far as that works: who wants to know calls unmount() before.
    ~file_system();
    /// Commits, writes what FSInfo has, and marks the volume clean, unless it was not when it was mounted.
    [[nodiscard]] result<void> unmount() noexcept;

    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }
    [[nodiscard]] bool is_read_only() const noexcept { return options_.is_read_only; }
    /// As the boot sector or FAT[1] said when it was mounted.
    [[nodiscard]] bool was_dirty() const noexcept { return was_dirty_; }
    /// The label in the root, else the boot sector's, as text; empty if there is none.
    [[nodiscard]] std::string label();
    /// Clusters that are free. Complexity: O(1), but for the first time, which may look through the table.
    [[nodiscard]] result<std::uint32_t> free_clusters() noexcept;
    [[nodiscard]] const table_counters& counters() const noexcept { return table_.counters(); }

    // --- names; paths as vfs::check_path has them

    /// Errors: ENOENT if the last component is missing; ENOTDIR if an earlier one is, or is a file; ELOOP for
    /// a directory that claims the place of another; EIO.
    [[nodiscard]] result<item_handle> find(std::string_view path) noexcept;
    /// Errors: as find of what is above; EEXIST; ENOSPC, also for a directory that is full; EROFS; EILSEQ for
    /// a name that ends in a dot or a space.
    [[nodiscard]] result<item_handle> create(std::string_view path, bool is_directory,
                                             attributes bits) noexcept;
    /// One more handle.
    [[nodiscard]] item_handle again(item& of) noexcept;
    enum class if_taken : bool { refuse, replace };
    /// Errors: as create; EBUSY for the root; ENOENT if it was removed; EINVAL for a directory into itself;
    /// ENOTEMPTY, EISDIR, ENOTDIR for what is not replaced.
    [[nodiscard]] result<void> rename(item& what, std::string_view path, if_taken taken) noexcept;
    /// Errors: EBUSY for the root; ENOENT if it was removed; ENOTEMPTY; EROFS.
    [[nodiscard]] result<void> remove(item& what) noexcept;
    /// Where it is called what; of what was removed, where its directory is and what it was called last.
    [[nodiscard]] std::string path_of(const item& of) noexcept;
    /// The first name of a directory at `from_slot` or behind, and its status; nothing at the end.
    /// Errors: ENOTDIR; as find.
    struct listed {
        std::string name;
        item_status status;
        std::uint32_t slot = 0;
    };
    [[nodiscard]] result<std::optional<listed>> list(item& of, std::uint32_t from_slot) noexcept;
    /// Appends names in the order of their slots, until `found` has `most`, or at the end. Takes the lock of
    /// the names once, for as long as that lasts. Errors: as above. Allocates: the names.
    [[nodiscard]] result<void> list(item& of, std::uint32_t from_slot, std::size_t most,
                                    std::vector<listed>& found) noexcept;
    /// The identity of a directory on the disk, and whether list() returns all of its names.
    /// Errors: ENOTDIR; as find. Complexity: O(1) if the directory is in memory, else linear in its size.
    struct directory_state {
        std::uint32_t first_cluster = 0;  // 0: the root of FAT12 and FAT16
        bool is_cut_off = false;          // its cluster chain is damaged: names after the damage are missing
    };
    [[nodiscard]] result<directory_state> state_of(item& of) noexcept;

    // --- what an item is

    [[nodiscard]] item_status status(item& of) noexcept;
    /// Errors: EROFS.
    [[nodiscard]] result<void> change(item& of, const item_change& wanted) noexcept;

    // --- data of a file; `hint` is that of one stream of requests. EAGAIN: not without waiting, which was
    // not allowed, and nothing was done.

    /// Fewer bytes only at the end. Errors: EIO where the chain ends before the size says.
    [[nodiscard]] result<std::size_t> read(item& of, run_list::hint& hint, std::span<std::byte> into,
                                           std::uint64_t offset, may_wait waits = may_wait::yes) noexcept;
    /// Errors: EFBIG beyond 2^32 - 1 bytes; ENOSPC; EROFS; EIO. Without waiting it commits nothing (see
    /// is_commit_due()), and works only where the device takes writes into the host's memory.
    [[nodiscard]] result<void> write(item& of, run_list::hint& hint, std::span<const std::byte> from,
                                     std::uint64_t offset, may_wait waits = may_wait::yes) noexcept;
    /// What is added reads as zeros, which are not written before they must be. Errors: as write.
    [[nodiscard]] result<void> truncate(item& of, std::uint64_t size_bytes) noexcept;
    /// Expects it to grow to that. Errors: ENOSPC, EFBIG, EROFS.
    [[nodiscard]] result<void> expect(item& of, std::uint64_t size_bytes) noexcept;
    /// Moves a file's data to fewer runs of clusters, if there is room for that. The move is one commit of
    /// its own, after one of all that was changed before: until then neither the table nor a directory has
    /// the new clusters. So a crash leaves the old runs or the new ones, and with a journal nothing else;
    /// without one, at worst lost clusters. Times do not change. Errors: EISDIR, EROFS; EIO for a damaged
    /// chain; those of the device. Allocates: 1 MiB and lists. Blocks: for the device; requests for the same
    /// file wait. Complexity: linear in the file.
    struct run_counts {
        std::uint64_t before = 0;
        std::uint64_t after = 0;  // the same if there was no better room
    };
    [[nodiscard]] result<run_counts> defragment(item& of) noexcept;
    /// Errors: as write; never lengthens.
    [[nodiscard]] result<void> zero(item& of, byte_extent where) noexcept;
    /// Makes data and names durable.
    [[nodiscard]] result<void> flush(item& of) noexcept;

    /// Where data lies: contiguous pieces of the device, ascending, each as large as it can be; what reads as
    /// zeros without being there comes without a place. The bytes are kept from being changed through the
    /// file system while `visit` looks at them; false ends it. Errors: as read.
    struct piece {
        std::uint64_t offset = 0;  // in the file
        std::uint64_t length = 0;
        std::optional<std::uint64_t> place{};  // on the device
    };
    [[nodiscard]] result<void> for_each_extent(item& of, byte_extent where,
                                               const std::function<bool(const piece&)>& visit,
                                               may_wait waits = may_wait::yes) noexcept;

    /// Whether lend() can work: the device is (part of) a file of the host, and read-only, or clusters are
    /// whole pages that the host can be made to forget.
    [[nodiscard]] bool lends() const noexcept { return lends_; }
    /// Where bytes lie in the file of the host, for transfers that bypass us, and lock nothing: writes to the
    /// file may show, at once or never. Errors: as read; EOPNOTSUPP if it does not lend; E2BIG if that would
    /// be more than `runs_max` runs.
    [[nodiscard]] result<vfs::host_runs> lend(item& of, byte_extent where, std::size_t runs_max,
                                              may_wait waits = may_wait::yes) noexcept;

    /// Makes everything durable, in order. Errors: of the device; what was not written is tried again by the
    /// next one.
    [[nodiscard]] result<void> commit() noexcept;
    /// Whether so much has changed that one should not be put off. Who may wait sees to it by himself.
    [[nodiscard]] bool is_commit_due() noexcept;

private:
    friend class item_handle;
    using location = std::uint64_t;

    file_system(device& on, const geometry& shape, const clock_source& clock, const mount_options& options);

    // look-up, with names_ held; trim with changes_, too (file_system.cpp)
    [[nodiscard]] cluster_width width() const noexcept;
    [[nodiscard]] static location location_of(const item& parent, std::uint32_t slot) noexcept;
    [[nodiscard]] item_ptr item_at(const item_ptr& parent, const name_entry& entry);
    [[nodiscard]] result<directory*> content_of(const item_ptr& of);
    void drop_content(item& of) noexcept;
    [[nodiscard]] std::uint64_t id_of(const item& parent, const name_entry& entry) const noexcept;
    void put_uses_aside(const item& of);
    void take_uses_back(const item& of);
    void trim() noexcept;
    void try_to_trim() noexcept;
    [[nodiscard]] result<item_ptr> walk(std::string_view path);
    [[nodiscard]] item_handle hold(item_ptr which);
    [[nodiscard]] bool is_last(const item& held) noexcept;
    void closed(item_ptr& which) noexcept;
    static void forget_use(const item_ptr& last) noexcept;
    [[nodiscard]] item_status status_of(const directory_entry& entry) const noexcept;
    [[nodiscard]] item_status status_locked(const item& of) const noexcept;
    [[nodiscard]] listed listed_of(const item& directory, const name_entry& entry) const;
    [[nodiscard]] std::string path_locked(const item& of) const;
    static std::uint64_t new_id_base() noexcept { return std::uint64_t{1} << 63; }

    // names, with changes_ and names_ held (file_system_names.cpp)
    struct place {
        item_ptr parent;
        directory* in = nullptr;
        std::string_view name;
        const name_entry* taken = nullptr;
    };
    [[nodiscard]] result<place> place_of(std::string_view path);
    [[nodiscard]] result<void> may_change() const noexcept;
    [[nodiscard]] result<void> make_room(const place& there);
    [[nodiscard]] result<void> grow_directory(item& which, directory& in);
    [[nodiscard]] result<cluster_extent> take_cluster(const allocation_request& wanted, reservation& own);
    [[nodiscard]] result<std::uint32_t> make_directory_cluster(const item& parent);
    [[nodiscard]] directory_entry new_entry(bool is_directory, attributes bits) const noexcept;
    void touch(const item_ptr& which);
    [[nodiscard]] result<void> move_over(const item_ptr& what, const place& there);
    [[nodiscard]] result<void> move_to(const item_ptr& what, const place& there);
    [[nodiscard]] result<void> respell(const item_ptr& what, const place& there);
    void settle_in(const item_ptr& what, const place& there, const name_entry& entry);
    [[nodiscard]] result<void> may_replace(const item_ptr& what, const item_ptr& other);
    [[nodiscard]] result<void> after_change();

    // data (file_system_data.cpp)
    [[nodiscard]] result<allocator*> clusters() noexcept;
    [[nodiscard]] result<cluster_run> run_at(item& of, std::uint32_t file_cluster, run_list::hint& hint,
                                             may_wait waits) noexcept;
    template <class Transfer>
    [[nodiscard]] result<void> for_each_piece(item& of, run_list::hint& hint, byte_extent where,
                                              Transfer transfer, may_wait waits) noexcept;
    [[nodiscard]] result<void> zero_on_device(item& of, byte_extent where) noexcept;
    void put_back(const std::vector<cluster_extent>& taken) noexcept;
    [[nodiscard]] result<void> make_clusters(item& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] result<void> try_make_clusters(item& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] sync::range_guard lock_to_read(item& of, byte_extent where, may_wait waits) noexcept;
    [[nodiscard]] sync::range_guard lock_to_write(item& of, byte_extent where, bool& lengthens,
                                                  may_wait waits) noexcept;
    [[nodiscard]] bool lengthens_at_once(item& of, std::uint64_t offset) noexcept;
    [[nodiscard]] result<void> write_pieces(item& of, run_list::hint& hint, std::span<const std::byte> from,
                                            std::uint64_t offset, may_wait waits) noexcept;
    [[nodiscard]] result<void> write_longer(item& of, run_list::hint& hint, std::span<const std::byte> from,
                                            std::uint64_t offset, may_wait waits) noexcept;
    [[nodiscard]] result<void> shrink(item& of, std::uint64_t size_bytes) noexcept;
    [[nodiscard]] bool is_unsettled(const item& of) const noexcept;
    [[nodiscard]] result<void> settle(item& of) noexcept;
    // defragmenting, with all ranges of the item locked (file_system_defragment.cpp)
    [[nodiscard]] result<std::uint32_t> runs_in(item& of) noexcept;
    [[nodiscard]] result<std::vector<cluster_extent>> take_better_room(item& of, std::uint32_t runs) noexcept;
    [[nodiscard]] result<void> copy_to(item& of, std::span<const cluster_extent> room) noexcept;
    [[nodiscard]] result<void> move_to_clusters(item& of, std::span<const cluster_extent> room) noexcept;
    void give_up(item& of) noexcept;
    void mark_changed(item& of, bool is_content) noexcept;

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
    void stamp(directory_entry& raw, const item& of) const noexcept;
    [[nodiscard]] directory_entry entry_of(item& of) noexcept;
    void write_entries();
    [[nodiscard]] result<void> write_directories(bool is_removing) noexcept;
    struct cut {
        item_ptr of;
        std::uint32_t last = 0;  // the cluster that is to be the last of its chain
    };
    struct given_up {
        std::vector<cut> cuts;
        std::vector<cluster_extent> rest;   // not yet free in the table
        std::vector<cluster_extent> freed;  // free there, and to be had once that is durable
        std::uint64_t asked = 0;            // how many were released for those
        [[nodiscard]] bool is_empty() const noexcept { return cuts.empty() and rest.empty() and asked == 0; }
    };
    [[nodiscard]] given_up take_given_up();
    [[nodiscard]] result<void> free_given_up(given_up& what) noexcept;
    [[nodiscard]] byte_extent on_device(cluster_extent what) const noexcept;
    void discard(std::vector<cluster_extent>& freed) noexcept;
    void make_available(std::vector<cluster_extent> freed, std::uint64_t asked) noexcept;
    void ask_for_loans() noexcept;
    [[nodiscard]] std::shared_ptr<extent_pin_table> loans();
    [[nodiscard]] std::shared_ptr<extent_pin_table> loans_so_far() noexcept;
    [[nodiscard]] bool has_changes() noexcept;

    device& device_;
    const geometry shape_;
    const clock_source& clock_;
    const mount_options options_;
    const remembered_zone zone_;
    allocation_table table_;
    bool was_dirty_ = false;
    const bool lends_;
    const bool writes_at_once_;  // into the memory of the host, which puts off the disk

    std::mutex allocator_made_;
    std::atomic<allocator*> clusters_{nullptr};
    std::unique_ptr<allocator> own_clusters_;
    std::mutex loans_made_;
    std::shared_ptr<extent_pin_table> loans_;  // null: no extent has been pinned

    std::mutex changes_;
    std::mutex names_;  // guards what follows, and the names and contents of items
    item_ptr root_;
    std::size_t handles_ = 0;  // given out
    std::uint64_t next_id_ = new_id_base();
    std::unordered_map<location, name_use> uses_;  // of names whose directory is not in memory
    std::unordered_map<std::uint32_t, item*> by_cluster_;
    std::list<item_ptr> recent_;  // directories with content, the last used first
    std::size_t recent_bytes_ = 0;
    std::set<item_ptr> dirty_directories_;
    bool is_marked_ = false;
    std::deque<given_up> unfinished_;  // of this commit, and of those that failed
    std::vector<cluster_extent>
        lent_;  // free on the disk, and lent, or remembered by the host, when last seen

    std::mutex queue_;  // guards what follows
    std::vector<item_ptr> dirty_items_;
    std::vector<cut> cuts_;
};

}  // namespace sluice::fat
