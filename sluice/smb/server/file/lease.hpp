#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/create/lease.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

class open;

/// What a client is to be told: to give up caching, [MS-SMB2] 2.2.23.
struct break_notice {
    wire::lease_state from = wire::lease_state::none;
    wire::lease_state to = wire::lease_state::none;
    bool needs_answer = false;

    [[nodiscard]] friend bool operator==(const break_notice&, const break_notice&) noexcept = default;
};

/// What a client may keep to itself of one file, and how far it is in giving it up: the state of a lease
/// ([MS-SMB2] 3.3.1.12), or of an oplock, which is a lease that one open has alone: level II is R, exclusive
/// RW, batch RWH.
///
/// Says what is to be told to whom; telling, waiting and time limits are its users'.
///
/// Invariants:
///   1. held() loses bits by answers, by time_out(), and by breaks from R alone; it gains them by raise()
///   only.
///   2. While is_breaking(), the client has been told once since the last answer, and nothing more is said.
///   3. While is_breaking(), the client is asked to keep less than held().
///   4. Once nothing is breaking, held() has none of the bits that any ask() before wanted given up, unless
///      raise() gave them since.
/// Thread safety: under the server's latch. Allocates: nothing of its own.
class lease {
public:
    enum class kind : std::uint8_t { oplock, lease_v1, lease_v2 };

    /// What a lease is found by: keys are the client's to choose.
    struct identity {
        wire::guid client{};
        wire::lease_key key{};

        [[nodiscard]] friend auto operator<=>(const identity&, const identity&) noexcept = default;
    };

    /// `epoch` is what the client said; a lease of version 2 counts its changes from there, of which being
    /// granted something is the first. `memory`, for the list of opens, outlives it.
    lease(kind which, const identity& who, wire::lease_state granted, std::uint16_t epoch,
          std::pmr::memory_resource& memory = *std::pmr::get_default_resource()) noexcept
        : opens(&memory),
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
    /// Zero but for version 2.
    [[nodiscard]] std::uint16_t epoch() const noexcept { return has_epoch() ? epoch_ : std::uint16_t{0}; }

    /// Another open wants `requested`, of which `grantable` may be had: taken only if it is all that was
    /// requested, adds to what is held, and nothing is being given up.
    void raise(wire::lease_state requested, wire::lease_state grantable) noexcept;

    /// Wants everything given up but `keep`. Says what to tell the client now: nothing if it holds no more,
    /// or is still to answer what it was told before.
    [[nodiscard]] std::optional<break_notice> ask(wire::lease_state keep) noexcept;

    /// The client has given up everything but `kept`.
    struct answer {
        /// `success`; UNSUCCESSFUL if it was not asked; REQUEST_NOT_ACCEPTED if it keeps more than it may.
        wire::nt_status status = wire::nt_status::success;
        std::optional<break_notice> next{};  // what else it is to give up
    };
    [[nodiscard]] answer acknowledge(wire::lease_state kept) noexcept;

    /// The client did not answer in time, or broke the protocol: it has nothing any more.
    void time_out() noexcept;

    /// The opens that have it, in the order of their making.
    std::pmr::vector<open*> opens;
    /// Of the directory's lease, as the client last said; kept to be said back.
    std::optional<wire::lease_key> parent_key;
    /// Until when the break under way is to be answered.
    std::optional<timer_queue::entry> time_limit;
    /// How often the holder was told to give something up: which break it is that somebody looks after.
    std::uint32_t breaks_told = 0;
    /// A further break has begun, of which the holder is not notified yet: it cannot answer it.
    bool is_untold = false;

private:
    kind kind_;
    identity who_;
    std::uint16_t epoch_;
    wire::lease_state held_;
    bool is_breaking_ = false;
    wire::lease_state asked_ = wire::lease_state::none;   // what the client was told to keep at most
    wire::lease_state wanted_ = wire::lease_state::none;  // what it is to keep in the end
};

/// An oplock's level as a lease's state, and back; what is no level becomes the next lower one.
[[nodiscard]] wire::lease_state state_of(wire::oplock_level level) noexcept;
[[nodiscard]] wire::oplock_level level_of(wire::lease_state state) noexcept;

}  // namespace sluice::smb::server
