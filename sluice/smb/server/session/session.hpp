#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/used_message_ids.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/switch_point.hpp"
#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/server/core/waiter_list.hpp"
#include "sluice/smb/server/session/admitted.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/negotiated.hpp"
#include "sluice/smb/server/session/tree.hpp"

namespace sluice::smb::server {

class open;

/// The user that a session acts for.
struct user_identity {
    std::string name;
    std::string domain;
    bool is_guest = false;
    bool is_anonymous = false;
};

/// The identity that an authentication has proved.
[[nodiscard]] user_identity identity_of(const auth::step_done& who);
/// Returns whether both identities mean the same account, according to `accounts`. A guest differs
/// from a user of the same name. False if either is anonymous.
[[nodiscard]] bool is_same_account(const auth::account_source& accounts, const user_identity& one,
                                   const user_identity& other) noexcept;

/// Holds the mutex of a session. The simulation may change to another loop when it is unlocked.
class [[nodiscard]] SLUICE_SCOPED_CAPABILITY session_section {
public:
    explicit session_section(ranked_mutex<lock_rank::session>& held) SLUICE_ACQUIRE(held) : held_(held) {
        held_.lock();
    }
    session_section(const session_section&) = delete;
    session_section& operator=(const session_section&) = delete;
    ~session_section() SLUICE_RELEASE() {
        held_.unlock();
        switch_point::mark();
    }

private:
    ranked_mutex<lock_rank::session>& held_;
};

/// A logon: a user, the session's keys, its tree connections and opens ([MS-SMB2] 3.3.1.8).
///
/// Clients reach it over its channels; it ends with the last established one. Invariants:
///   1. Every open in its table refers to this session, and its tree connection is one of the
///      session's, or has ended.
///   2. A channel in its list has not ended. A channel that has ended may be in its
///      connection's table for a moment.
///   3. The key of a tree connection in its table is its number.
///   4. Once the phase is `gone`, it has no opens, tree connections and channels, and gets no more.
///      Until then it is in the session table.
///   5. It has a client from the time it is valid. Its keys are derived once.
///   6. After it is gone, its opens end, once. A thread that finds it gone can wait for that.
/// Monitor: any thread. `mutex_` guards the private members, and each change of the phase, which
/// any thread reads. The connection on which the session begins sets the other public members,
/// before the session is valid.
class session : public std::enable_shared_from_this<session> {
public:
    enum class phase : std::uint8_t {
        in_progress,  ///< authentication is in progress; nothing else is served
        valid,
        expired,  ///< its lifetime is over: reauthentication precedes all but CLOSE, LOGOFF, LOCK
        gone,
    };

    /// `by`: the result of the negotiation of its first connection; that of every further
    /// connection must be the same. `memory`, for its table of opens, outlives it.
    session(std::uint64_t number, negotiated by, std::pmr::memory_resource& memory) noexcept
        : id(number), agreed(std::move(by)), opens_(&memory) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session();

    const std::uint64_t id;
    const negotiated agreed;
    user_identity user;              // never changes once the session is established
    clock_source::utc_time since{};  // when it was begun
    admitted_session admitted;       // declared before all that counts for its client

    /// Null for guests and the anonymous: they have no key.
    std::optional<auth::secret_bytes<16>> signing_key;  // that of the first channel,
                                                        // which vouches for others
    std::optional<auth::sealing_key> encryption_key;    // for what we send; each
                                                        // channel has a sealer of it
    std::optional<auth::cipher_key> decryption_key;     // for what we receive
    std::optional<auth::secret_bytes<16>> application_key;
    bool requires_signing = false;
    bool requires_encryption = false;

    /// acquire: a thread that finds a phase sees what was set before it; pairs with the
    /// releases of `phase_`.
    [[nodiscard]] phase state() const noexcept { return phase_.load(std::memory_order_acquire); }
    /// Makes the session valid: its client has authenticated, for the first time or again, with the
    /// password of that hash (none: anonymous). Returns false if the session is gone.
    [[nodiscard]] bool make_valid(std::optional<auth::nt_hash> proof) noexcept;
    /// Makes a valid session expired, at the end of lifetime `number`. Returns false if a newer
    /// lifetime has begun.
    bool expire(std::uint32_t number) noexcept;
    /// Returns the number of the next set_lifetime(), which identifies its timer.
    [[nodiscard]] std::uint32_t next_lifetime() const noexcept;
    /// Begins a new lifetime, which the timer `fresh` ends. Returns the timer of the previous
    /// lifetime, or `fresh` if the session is gone or has a newer lifetime: the caller cancels it.
    [[nodiscard]] std::optional<timer_queue::entry> set_lifetime(std::uint32_t number,
                                                                 const timer_queue::entry& fresh) noexcept;
    /// Returns whether its client has proved that it knows a password; or one with this hash.
    [[nodiscard]] bool has_proof() const noexcept;
    [[nodiscard]] bool has_proof_of(const auth::nt_hash& now) const noexcept;

    /// Claims the end of the session for a caller who ends it later. Returns false if another has
    /// claimed it.
    [[nodiscard]] bool claim_end() noexcept {
        // relaxed: only the flag counts; end() orders the rest.
        return not is_end_claimed_.exchange(true, std::memory_order_relaxed);
    }

    /// The objects of a session that has ended, for the caller to end.
    struct ended_objects {
        std::vector<std::shared_ptr<channel>> channels;
        std::vector<std::shared_ptr<tree>> trees;
        std::vector<std::shared_ptr<open>> opens;
        std::optional<timer_queue::entry> lifetime;
    };
    /// Ends the session and its channels; the caller ends the rest. Returns std::nullopt if it is
    /// gone already, or if `only_in_progress` is set and it is not in progress. `also` runs with
    /// the mutex held, if the session ends.
    template <class Also>
    [[nodiscard]] std::optional<ended_objects> end(bool only_in_progress, Also also) noexcept {
        const session_section held(mutex_);
        if (state() == phase::gone or (only_in_progress and state() != phase::in_progress))
            return std::nullopt;
        return end_all(also);
    }

    /// Wakes the waiters of have_opens_ended(), after the opens and trees of an ended session have
    /// ended.
    void signal_opens_ended() noexcept;
    /// Returns whether signal_opens_ended() was called; otherwise `blocked` is queued until then.
    [[nodiscard]] bool have_opens_ended(waiter& blocked) noexcept;
    /// A waiter does not wait any more.
    void forget(waiter& one) noexcept;

    /// Appends a channel. Returns false if the session is gone, or has the maximum number of
    /// channels. `evicted` receives a channel that was not established and has ended to make room.
    [[nodiscard]] bool add(const std::shared_ptr<channel>& fresh, std::shared_ptr<channel>& evicted);
    /// Establishes a channel on which the client has authenticated. Returns false if the channel or
    /// the session has ended.
    [[nodiscard]] bool establish(channel& of) noexcept;
    /// Records that the connection of a channel is lost: the channel stays, but is not established
    /// any more. If no other channel is, the session ends: returns its objects. `also` as for
    /// end().
    template <class Also>
    [[nodiscard]] std::optional<ended_objects> lose(channel& of, Also also) noexcept {
        const session_section held(mutex_);
        of.set_established(false);
        if (state() == phase::gone or is_any_established()) return std::nullopt;
        return end_all(also);
    }
    /// Ends a channel and removes it; does nothing if it has ended. If no other channel is
    /// established, the session ends: returns its objects. `also` as for end().
    template <class Also>
    [[nodiscard]] std::optional<ended_objects> remove(channel& ending, Also also) noexcept {
        const session_section held(mutex_);
        if (ending.has_ended()) return std::nullopt;
        take_out(ending);
        if (is_any_established()) return std::nullopt;
        return end_all(also);
    }
    /// Returns the first established channel; null if the session has ended, or is not established
    /// yet.
    [[nodiscard]] std::shared_ptr<channel> first_channel() const noexcept;
    /// Returns the channels. Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<channel>> channels() const;
    /// Gives one of its channels the ciphers of the session's keys, if the session has keys.
    /// Errors: those of channel::make_ciphers().
    [[nodiscard]] result<void> make_ciphers(channel& of, secret_random_source& random) noexcept;

    /// The message ids with which the session's own key may sign: those below `first_signed` belong
    /// to the bindings of other connections.
    void begin_binding_ids(std::uint64_t first_signed) noexcept;
    /// Returns whether the key may sign a reply with that id, once.
    [[nodiscard]] bool claim_binding_id(std::uint64_t id) noexcept;

    /// Adds a tree connection, and sets its number. Returns false if there are too many, or
    /// the session is gone.
    [[nodiscard]] bool add(const std::shared_ptr<tree>& fresh);
    /// Returns the tree connection with that number; null if there is none.
    [[nodiscard]] std::shared_ptr<tree> find_tree(std::uint32_t number) const noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<tree>> trees() const;
    /// The same with the number of opens through each. Complexity: linear in trees and opens.
    struct tree_use {
        std::shared_ptr<tree> of;
        std::size_t opens = 0;
    };
    [[nodiscard]] std::vector<tree_use> tree_uses() const;
    /// Removes a tree connection. Returns its opens; std::nullopt if it has ended already.
    [[nodiscard]] std::optional<std::vector<std::shared_ptr<open>>> end_tree(const tree& ending);

    enum class admission_result : std::uint8_t {
        admitted,
        gone,      ///< the session or the tree has ended
        too_many,  ///< limits::opens_per_session_max
        refused,   ///< `attach` has returned false
    };
    /// Adds an open under a number that no other open has, through a tree connection. `attach`
    /// attaches the open to the session, with the mutex held.
    template <class Attach>
    [[nodiscard]] admission_result admit(std::uint64_t number, const std::shared_ptr<open>& fresh,
                                         const tree& through, Attach attach) {
        const session_section held(mutex_);
        const auto by = trees_.find(through.id);
        if (state() == phase::gone or by == trees_.end() or by->second.get() != &through)
            return admission_result::gone;
        if (opens_.size() >= limits::opens_per_session_max) return admission_result::too_many;
        if (not attach()) return admission_result::refused;
        ENSURE(opens_.emplace(number, admitted_open{fresh, through.id}).second,
               "an open comes to its session once");
        return admission_result::admitted;
    }
    /// Removes an open; does nothing if it is not there.
    void remove(std::uint64_t number) noexcept;
    /// Removes an open if `detach`, which runs with the mutex held, has detached it from this
    /// session. Returns whether it has.
    template <class Detach>
    [[nodiscard]] bool release(std::uint64_t number, Detach detach) noexcept {
        std::shared_ptr<open> removed;  // released without the mutex
        const session_section held(mutex_);
        if (not detach()) return false;
        if (const auto found = opens_.find(number); found != opens_.end()) {
            removed = std::move(found->second.one);
            opens_.erase(found);
        }
        return true;
    }

    struct counts {
        std::size_t channels = 0;
        std::size_t trees = 0;
        std::size_t opens = 0;
    };
    [[nodiscard]] counts in_use() const noexcept;

private:
    [[nodiscard]] bool is_any_established() const noexcept SLUICE_REQUIRES(mutex_);
    template <class Also>
    [[nodiscard]] ended_objects end_all(Also& also) noexcept SLUICE_REQUIRES(mutex_) {
        also();  // first: end_all() marks the channels as ended
        return end_all();
    }
    [[nodiscard]] ended_objects end_all() noexcept SLUICE_REQUIRES(mutex_);
    void take_out(channel& ending) noexcept SLUICE_REQUIRES(mutex_);

    struct admitted_open {
        std::shared_ptr<open> one;
        std::uint32_t tree_id = 0;
    };

    std::atomic<phase> phase_{phase::in_progress};  // written under the mutex
    std::atomic<bool> is_end_claimed_{false};
    mutable ranked_mutex<lock_rank::session> mutex_;
    // In order of arrival.
    std::vector<std::shared_ptr<channel>> channels_ SLUICE_GUARDED_BY(mutex_);
    std::map<std::uint32_t, std::shared_ptr<tree>> trees_ SLUICE_GUARDED_BY(mutex_);
    // By their number.
    std::pmr::map<std::uint64_t, admitted_open> opens_ SLUICE_GUARDED_BY(mutex_);
    std::uint32_t next_tree_id_ SLUICE_GUARDED_BY(mutex_) = 1;
    // When a valid session expires.
    std::optional<timer_queue::entry> lifetime_ SLUICE_GUARDED_BY(mutex_);
    std::uint32_t lifetimes_ SLUICE_GUARDED_BY(mutex_) = 0;
    std::optional<auth::nt_hash> proof_ SLUICE_GUARDED_BY(mutex_);
    bool have_opens_ended_ SLUICE_GUARDED_BY(mutex_) = false;
    waiter_list until_opens_ended_ SLUICE_GUARDED_BY(mutex_);
    /// With AES-GMAC: message ids below those that the first channel signs with that key, for the
    /// replies to SESSION_SETUPs on other connections that bind them.
    auth::used_message_ids binding_ids_ SLUICE_GUARDED_BY(mutex_){{.first = 0, .end = 0}};
};

}  // namespace sluice::smb::server
