#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/client/connection.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"

namespace sluice::smb::client {

/// The time for which a server has rejected a request that it may accept later.
struct wait_policy {
    std::optional<clock_source::steady_time> since{};
    std::chrono::milliseconds pause = limits::repeat_pause_min;
};

/// The session of a user on a server, over one connection or several (channels).
///
/// Thread safety: the loop's thread. Allocates: its keys. The connections outlive it.
class session {
public:
    /// Logs on over `first`, with NTLMv2 within SPNEGO. Without `who.hash`, it logs on anonymously.
    ///
    /// Errors: `status` (such as `logon_failure`); `policy` if the server accepts the user as a
    /// guest, whose messages cannot be signed, and the connection requires signing, or if required
    /// encryption is impossible; `protocol` if the last reply is not signed with the key that only
    /// the right server has. The connection is still usable after `status`.
    [[nodiscard]] static io::task<outcome<not_null_ptr<session>>> log_on(
        connection& first, const auth::credentials& who) noexcept;

    /// Makes `further`, which has negotiated the same dialect, another channel of this session
    /// ([MS-SMB2] 3.2.4.2.3.1). Requires 3.0. Errors: as log_on(); `policy` before 3.0.
    [[nodiscard]] io::task<outcome<void>> bind(connection& further, const auth::credentials& who) noexcept;

    /// Sends LOGOFF and ignores the reply.
    [[nodiscard]] io::task<void> log_off() noexcept;

    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Returns the oldest channel that is not broken; if all are broken, the first.
    [[nodiscard]] connection& first() const noexcept;
    /// Returns the unbroken channel with the fewest requests in flight, for READ and WRITE.
    [[nodiscard]] connection& idlest() const noexcept;
    /// Returns whether a request that failed with `after` may be sent once more over another
    /// channel: only if its channel is lost, and not all are.
    [[nodiscard]] bool can_repeat(const connection& over, const client_error& after) noexcept;
    /// Returns the same for a modifying request, whose options are marked for it. It also returns
    /// true if the server knows of the loss and rejects earlier requests, or is still executing
    /// them ([MS-SMB2] 3.3.5.2.10). Suspends: in that case, for a time that grows with `so_far`.
    [[nodiscard]] io::task<bool> co_can_repeat(const connection& over, client_error after,
                                               request_options& how, wait_policy& so_far) noexcept;
    /// Removes the broken channels and counts one more loss, so that the server can distinguish
    /// earlier requests from later ones. The removed channels may then be closed and destroyed. If
    /// none is left, the last one stays.
    void forget_lost() noexcept;
    /// Returns the number of losses so far, which every request contains ([MS-SMB2] 3.2.4.1.8).
    [[nodiscard]] std::uint16_t channel_sequence() const noexcept { return channel_sequence_; }
    [[nodiscard]] const std::vector<connection*>& channels() const noexcept { return channels_; }
    [[nodiscard]] bool encrypts() const noexcept { return encrypts_; }

private:
    explicit session(connection& first) noexcept : channels_{&first} {}

    // The result of a session setup.
    struct set_up {
        auth::session_key key;
        wire::session_flags flags = wire::session_flags::none;
        auth::preauth_integrity preauth;
        reply last;
    };
    [[nodiscard]] io::task<outcome<set_up>> exchange_tokens(connection& over, const auth::credentials& who,
                                                            bool binds) noexcept;
    [[nodiscard]] outcome<void> take_keys(connection& over, const set_up& made) noexcept;
    [[nodiscard]] outcome<auth::signer> signer_for(connection& over, const set_up& made) noexcept;
    [[nodiscard]] static outcome<void> verify_last(connection& over, auth::signer& with,
                                                   const set_up& made) noexcept;
    [[nodiscard]] outcome<auth::used_message_ids> ids_to_bind(connection& further) noexcept;
    [[nodiscard]] outcome<void> seal_over(connection& over, channel_security& security) noexcept;

    std::vector<connection*> channels_;
    std::uint16_t channel_sequence_ = 0;
    std::uint64_t id_ = 0;
    bool is_unauthenticated_ = false;  // the server authenticated no user: no signatures
    bool encrypts_ = false;
    std::optional<auth::sealing_key> seals_with_;
    std::optional<auth::cipher_key> opens_with_;
    std::optional<auth::secret_bytes<16>> signs_with_;  // signs binding requests
    // With AES-GMAC, the message ids of binding requests: those that the first channel used before
    // it had a key.
    std::uint64_t next_binding_id_ = 1;
    std::uint64_t binding_ids_end_ = 0;
};

}  // namespace sluice::smb::client
