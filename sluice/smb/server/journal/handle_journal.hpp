#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/base/mutex.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/journal/handle_record.hpp"
#include "sluice/smb/server/journal/journal_storage.hpp"

namespace sluice::smb::server {

/// The directory whose files the records of a journal are about, and the boot of the machine in
/// which they are valid.
struct journal_identity {
    std::array<std::byte, 16> boot{};
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t born = 0;  // when the root was created, in the unit of vfs::time_point

    [[nodiscard]] friend bool operator==(const journal_identity&, const journal_identity&) noexcept = default;
};

/// The content of the storage when a journal was opened.
enum class journal_origin : std::uint8_t {
    fresh,       ///< nothing: it has just been created
    continued,   ///< the records of an earlier process, which take_recovered() returns
    other_boot,  ///< emptied: an earlier boot's records, whose promises have ended
    other_root,  ///< emptied: another directory's records
    unknown,     ///< emptied: no journal of this version, or a damaged header
    set_aside,   ///< copied and emptied: several processes in a row have ended while restoring it
};

/// A table of the persistent opens of one share root, in memory that outlives the process. A record
/// is complete when its stores are: a process that is killed at any moment leaves the record before
/// a change or the one after it, never a mixture. It ends with the boot of the machine.
///
/// Thread safety: any thread. `slot` objects are independent of each other; each is used by one
/// thread at a time, for which its open's file provides the mutex. `mutex_` guards the free slots,
/// `growing_` the length of the storage.
///
/// Invariants:
///   1. A slot is free, or belongs to one `slot` object, or has been kept for the next process.
///   2. Of the two copies of a slot, a store changes the one that is not current, and makes it
///      current by its last store.
///   3. Before begin_service() no record disappears, except by slot::clear(): a server that fails
///      to start leaves the promises of its predecessor to its successor. After freeze(), nothing
///      in the storage changes.
class handle_journal : public std::enable_shared_from_this<handle_journal> {
    struct token {};

public:
    static constexpr std::uint32_t slots_max = 16'384;
    /// Processes in a row that may end between take_recovered() and begin_service(); then the
    /// journal is set aside.
    static constexpr std::uint32_t attempts_max = 3;

    class slot;
    struct recovered_handle;

    struct options {
        std::uint32_t slots_at_most = slots_max;  // not 0; more than slots_max are not used
        std::uint32_t process_id = 0;             // the server's, for one that is excluded
    };

    /// Opens the journal in `storage`. Empties it if its boot, its root or its version is another
    /// one, or if too many restorations in a row have ended their process.
    /// Errors: those of `storage`. Allocates: the journal. Blocks: for the file system.
    /// Complexity: linear in the slots.
    [[nodiscard]] static result<std::shared_ptr<handle_journal>> open(
        std::unique_ptr<journal_storage> storage, const journal_identity& identity, const options& settings);
    /// The same with the default options.
    [[nodiscard]] static result<std::shared_ptr<handle_journal>> open(
        std::unique_ptr<journal_storage> storage, const journal_identity& identity) {
        return open(std::move(storage), identity, options());
    }

    handle_journal(token, std::unique_ptr<journal_storage> storage, const options& settings) noexcept;
    ~handle_journal() = default;

    /// Returns the path of the storage, for messages. Allocates: the text.
    [[nodiscard]] std::string name() const { return storage_->name(); }
    /// Returns the state that open() found.
    [[nodiscard]] journal_origin origin() const noexcept { return origin_; }
    /// Returns why a journal that was set aside has no copy.
    [[nodiscard]] const std::optional<error>& copy_error() const noexcept { return copy_error_; }

    /// Returns the records of the earlier process, in the order of their slots; a second call
    /// returns none. Counts an attempt to restore them, if there are any: a start that fails before
    /// says nothing about the records. One thread calls it. Allocates: the result. Complexity:
    /// linear in them.
    [[nodiscard]] std::vector<recovered_handle> take_recovered();
    /// Returns how many records take_recovered() could not decode; their slots are free again.
    [[nodiscard]] std::uint32_t dropped() const noexcept { return dropped_; }

    /// The records have been restored, cleared or kept. The attempt has succeeded, so that the kill
    /// of a server that serves clients is not counted, however early it is. From now on the end of
    /// a slot clears it.
    void begin_service() noexcept;
    /// From now on nothing is stored or cleared: the next process finds the present records.
    /// Threads that store at the same time may still do so.
    void freeze() noexcept;
    [[nodiscard]] bool is_frozen() const noexcept;
    /// For tests: freezes just before the `number`-th store or clear from now on, 1 for the next
    /// one, as if the process were killed there. is_frozen() then means that a change was lost.
    void freeze_before(std::uint32_t number) noexcept;

    /// Returns a free slot; std::nullopt if none is left, or the storage is full. Its record is
    /// recovered only after the first store(). The caller holds no mutex of the server (ENSURE in
    /// checked builds). Allocates: nothing, or a part of the list of free slots. Blocks: for the
    /// file system, when the storage is extended by 64 slots.
    [[nodiscard]] std::optional<slot> reserve() noexcept;

    /// Returns the number of slots that are not free.
    [[nodiscard]] std::uint32_t slots_in_use() const noexcept {
        return in_use_.load(std::memory_order_relaxed);
    }

private:
    /// A slot, and the generation of its current copy.
    struct place {
        std::uint32_t index = 0;
        std::uint64_t generation = 0;
    };
    /// `restoring` until begin_service().
    enum class phase : std::uint8_t { restoring, serving, frozen };

    [[nodiscard]] result<void> prepare(const journal_identity& identity) noexcept;
    [[nodiscard]] journal_origin examine(const journal_identity& identity) const noexcept;
    [[nodiscard]] result<void> write_header(const journal_identity& identity) noexcept;
    void find_slots();
    [[nodiscard]] std::optional<place> take_free() noexcept;
    void put_free(const place& returned) noexcept;
    [[nodiscard]] bool grow() noexcept;
    void write(const place& to, const handle_record* record) noexcept;
    [[nodiscard]] bool may_write() noexcept;

    const std::unique_ptr<journal_storage> storage_;
    const options settings_;

    // Set by open(); later only take_recovered() changes them.
    journal_origin origin_ = journal_origin::fresh;
    std::optional<error> copy_error_{};
    std::uint32_t dropped_ = 0;
    std::vector<place> found_;  // with a record of the earlier process

    std::atomic<phase> phase_{phase::restoring};
    std::atomic<std::uint32_t> in_use_{0};
    std::atomic<std::uint32_t> until_frozen_{0};  // freeze_before(); 0: never

    mutex growing_;
    std::uint32_t slots_ SLUICE_GUARDED_BY(growing_) = 0;  // that the storage has

    ranked_mutex<lock_rank::leaf> mutex_;
    std::vector<place> free_ SLUICE_GUARDED_BY(mutex_);  // has room for all slots
};

/// The place of one open's record. Its end clears the record and frees the slot, so that an open
/// that ends in whatever way is not restored. Move-only; a moved-from slot has no place.
/// Thread safety: one thread at a time. Blocks: never; nothing below calls the system.
class handle_journal::slot {
public:
    slot(slot&& other) noexcept = default;
    slot& operator=(slot&& other) noexcept;
    ~slot() { end(); }

    /// Makes `record` the slot's record, if it fits(); otherwise returns false, and the previous
    /// record remains. When this returns, a kill of the process does not lose it. After freeze(),
    /// does nothing. Complexity: linear in the encoded record.
    [[nodiscard]] bool store(const handle_record& record) noexcept;
    /// Makes the slot empty: the open will not be restored. After freeze(), does nothing.
    void clear() noexcept;

    /// Returns whether the slot has a record.
    [[nodiscard]] bool has_record() const noexcept { return has_record_; }
    /// Returns the number of the slot, for logs.
    [[nodiscard]] std::uint32_t index() const noexcept { return place_.index; }

private:
    friend class handle_journal;
    slot(std::shared_ptr<handle_journal> journal, const place& where, bool has_record) noexcept
        : journal_(std::move(journal)), place_(where), has_record_(has_record) {}
    void write(const handle_record* record) noexcept;
    void end() noexcept;

    std::shared_ptr<handle_journal> journal_;
    place place_;
    bool has_record_;
};

/// A record of an earlier process, and its slot. Before begin_service(), its end keeps the record;
/// slot::clear() removes it. `record` refers to `content` and `locks`.
struct handle_journal::recovered_handle {
    const handle_journal* in = nullptr;
    handle_journal::slot slot;
    handle_record record;
    std::vector<std::byte> content;
    std::vector<recorded_lock> locks;
};

}  // namespace sluice::smb::server
