#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/create/lease.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

class file_state;
class open;

/// A notification that asks a client to give up caching, [MS-SMB2] 2.2.23.
struct break_notice {
    wire::lease_state from = wire::lease_state::none;
    wire::lease_state to = wire::lease_state::none;
    bool needs_answer = false;

    [[nodiscard]] friend bool operator==(const break_notice&, const break_notice&) noexcept = default;
};

/// The caching that a client has been granted for one file, and the progress of its break: the
/// state of a lease ([MS-SMB2] 3.3.1.12), or of an oplock, which is the lease of a single open:
/// level II is R, exclusive RW, batch RWH.
///
/// Decides which notifications are due. Its users send them, wait, and apply the time limits.
///
/// Invariants:
///   1. held() loses bits by answers, by time_out(), and by breaks from R alone; it gains
///   them by raise() only.
///   2. While is_breaking(), the client has been notified once since its last
///      answer, and not again.
///   3. While is_breaking(), the client is asked to keep less than held().
///   4. Once nothing is breaking, held() has none of the bits that any earlier ask() requested,
///      unless raise() gave them since.
/// Thread safety: under the mutex of its file, except for what never changes.
/// Allocates: nothing of its own.
class lease {
public:
    enum class kind : std::uint8_t { oplock, lease_v1, lease_v2 };

    /// The identity by which a lease is found: clients choose the keys.
    struct identity {
        wire::guid client{};
        wire::lease_key key{};

        [[nodiscard]] friend auto operator<=>(const identity&, const identity&) noexcept = default;
    };

    /// `of`: the file, whose mutex guards it. `epoch` is the client's value. A lease of
    /// version 2 counts its changes from there, beginning with the grant. `memory`, for the
    /// list of opens, outlives it.
    lease(std::shared_ptr<file_state> of, kind which, const identity& who, wire::lease_state granted,
          std::uint16_t epoch, std::pmr::memory_resource& memory = *std::pmr::get_default_resource()) noexcept
        : file(std::move(of)),
          opens(&memory),
          kind_(which),
          who_(who),
          epoch_(static_cast<std::uint16_t>(granted == wire::lease_state::none ? epoch : epoch + 1)),
          held_(granted) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    [[nodiscard]] bool is_oplock() const noexcept { return kind_ == kind::oplock; }
    [[nodiscard]] bool has_epoch() const noexcept { return kind_ == kind::lease_v2; }
    [[nodiscard]] const identity& who() const noexcept { return who_; }
    [[nodiscard]] wire::lease_state held() const noexcept { return held_; }
    [[nodiscard]] bool is_breaking() const noexcept { return is_breaking_; }
    /// Returns zero except for version 2.
    [[nodiscard]] std::uint16_t epoch() const noexcept { return has_epoch() ? epoch_ : std::uint16_t{0}; }

    /// Another open requests `requested`, of which `grantable` can be granted. That becomes the
    /// held state only if it is the whole request, adds to the held state, and no break is pending.
    void raise(wire::lease_state requested, wire::lease_state grantable) noexcept;

    /// Asks the client to give up everything except `keep`. Returns the notification to send now;
    /// std::nullopt if the client holds no more than that, or has yet to answer the previous one.
    [[nodiscard]] std::optional<break_notice> ask(wire::lease_state keep) noexcept;

    /// The result of an answer: the client has given up everything except `kept`.
    struct answer {
        /// `success`; UNSUCCESSFUL if it was not asked; REQUEST_NOT_ACCEPTED if it
        /// keeps more than it may.
        wire::nt_status status = wire::nt_status::success;
        std::optional<break_notice> next{};  // to send next
    };
    [[nodiscard]] answer acknowledge(wire::lease_state kept) noexcept;

    /// The client did not answer in time, or broke the protocol: it has nothing any more.
    void time_out() noexcept;

    /// The client cannot be reached and keeps its opens: it has only `keep` from now on, as if it
    /// had answered every break. Its reconnect reports the state.
    void yield(wire::lease_state keep) noexcept;

    /// Returns the state that the client has after its answers to all breaks, and the epoch of that
    /// state. They are recorded, because a change that a break makes possible does not wait for the
    /// answer.
    [[nodiscard]] wire::lease_state state_after_breaks() const noexcept {
        return is_breaking_ ? wanted_ : held_;
    }
    [[nodiscard]] std::uint16_t epoch_after_breaks() const noexcept {
        const bool has_more_steps = is_breaking_ and wanted_ != asked_;
        return static_cast<std::uint16_t>(epoch() + (has_more_steps and has_epoch() ? 1 : 0));
    }

    /// The file that its client caches. Never changes.
    const std::shared_ptr<file_state> file;
    /// The opens that have it, in the order of their creation; empty: it has ended.
    std::pmr::vector<open*> opens;
    /// The key of the directory's lease, as the client last sent it; returned in replies.
    std::optional<wire::lease_key> parent_key;
    /// How many replies that grant the lease, or reply to an answer of its
    /// holder, are not sent yet.
    std::uint32_t unsent_grants = 0;
    /// A notification that follows the last of these. While there is one, the lease is not raised.
    std::optional<break_notice> parked;
    /// A break of it was decided, and is about to be sent (decided_breaks).
    bool is_being_sent = false;
    /// The time limit for the answer to the pending break, from its decision on.
    std::optional<timer_queue::entry> time_limit;
    /// How many notifications of breaks have been decided. By this number, what follows a decision,
    /// its time limit and the check of its delivery, detects that it is outdated.
    std::uint32_t breaks_decided = 0;

private:
    kind kind_;
    identity who_;
    std::uint16_t epoch_;
    wire::lease_state held_;
    bool is_breaking_ = false;
    wire::lease_state asked_ = wire::lease_state::none;   // the most that the client was asked to
                                                          // keep
    wire::lease_state wanted_ = wire::lease_state::none;  // the state after all breaks
};

/// Converts an oplock's level to a lease's state, and back; a state between two levels becomes the
/// lower one.
[[nodiscard]] wire::lease_state state_of(wire::oplock_level level) noexcept;
[[nodiscard]] wire::oplock_level level_of(wire::lease_state state) noexcept;

}  // namespace sluice::smb::server
