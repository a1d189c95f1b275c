#pragma once

#include <compare>
#include <expected>
#include <map>
#include <memory>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/wire/nt_status.hpp"

// Repeated CREATEs: a client that got no reply sends the request again ([MS-SMB2] 3.3.5.9.10).

namespace sluice::smb::server {

/// The opens that were made with a create guid and not used since, or are being made; and the
/// persistent opens, also when they have been used.
/// Invariant: an entry is in the table until its place is destroyed, or the
/// eligibility of its open ends.
/// Monitor: any thread; `mutex_` guards the entries. Allocates: a node per entry.
class replay_table {
public:
    struct identity {
        wire::guid client{};
        wire::guid create{};

        [[nodiscard]] friend auto operator<=>(const identity&, const identity&) noexcept = default;
    };

    replay_table() noexcept = default;
    replay_table(const replay_table&) = delete;
    replay_table& operator=(const replay_table&) = delete;

    /// The entry in the table for a CREATE in progress; released if the CREATE does not produce an
    /// open.
    class place {
    public:
        place(replay_table& table, const identity& which) noexcept : table_(&table), which_(which) {}
        place(place&& other) noexcept : table_(std::exchange(other.table_, nullptr)), which_(other.which_) {}
        place& operator=(place&&) = delete;
        ~place() {
            if (table_ != nullptr) table_->remove(which_);
        }
        /// `made` has the create guid. It may have ended in the meantime: then the entry goes.
        void keep(const std::shared_ptr<open>& made) noexcept {
            replay_table& table = *std::exchange(table_, nullptr);
            table.keep(which_, made);
            if (not made->progress.begin_eligibility()) table.end_eligibility(*made);
        }

    private:
        replay_table* table_;
        identity which_;
    };

    /// The open that was created with the same guid, or a place for a new one.
    struct outcome {
        std::shared_ptr<open> made;
        std::optional<place> fresh;
    };
    /// Errors: FILE_NOT_AVAILABLE while the first is in progress; DUPLICATE_OBJECTID if this is not
    /// a replay.
    [[nodiscard]] std::expected<outcome, wire::nt_status> find_or_begin(const identity& which,
                                                                        bool is_replay);
    /// Adds an open of an earlier process. Returns false if its guid is used already.
    [[nodiscard]] bool adopt(const std::shared_ptr<open>& restored);
    /// Returns the open that was made with a guid; null if there is none, or it is being made.
    /// Complexity: O(log n) in entries.
    [[nodiscard]] std::shared_ptr<open> find(const identity& which) const noexcept;
    /// The open was used: its client has received the reply, and the guid may be used again.
    void end_eligibility(open& one) noexcept {
        if (one.progress.end_eligibility()) remove({.client = one.client, .create = *one.create_guid});
    }
    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return entries_.size();
    }

private:
    using entry_map = std::map<identity, std::shared_ptr<open>>;

    void keep(const identity& which, const std::shared_ptr<open>& made);
    void remove(const identity& which) noexcept;

    mutable ranked_mutex<lock_rank::leaf> mutex_;
    entry_map entries_ SLUICE_GUARDED_BY(mutex_);  // null: being made
};

}  // namespace sluice::smb::server
