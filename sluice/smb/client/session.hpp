#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/client/connection.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"

namespace sluice::smb::client {

/// How long a server has refused something that it may take yet.
struct patience {
    std::optional<clock_source::steady_time> since{};
    std::chrono::milliseconds pause = limits::repeat_pause_min;
};

/// A user logged on to a server, over one connection or several (channels).
///
/// Thread safety: the loop's thread. Allocates: its keys. The connections outlive it.
class session {
public:
    /// Logs on over `first`, with NTLMv2 within SPNEGO. `who.hash` none: as nobody.
    ///
    /// Errors: `status` (`logon_failure` and its like); `policy` if the server takes the user for a guest,
    /// whose messages nobody can sign, while the connection is to sign, or if it cannot encrypt what must be;
    /// `protocol` if the last answer is not signed with the key only the right server has. The connection is
    /// still good after `status`.
    [[nodiscard]] static io::task<outcome<owned<session>>> log_on(connection& first,
                                                                  const auth::credentials& who) noexcept;

    /// Makes `further`, which has agreed on the same dialect, another channel of this session
    /// ([MS-SMB2] 3.2.4.2.3.1). From 3.0 on. Errors: as log_on(); `policy` before 3.0.
    [[nodiscard]] io::task<outcome<void>> bind(connection& further, const auth::credentials& who) noexcept;

    /// Says good-bye. What the server answers does not matter.
    [[nodiscard]] io::task<void> log_off() noexcept;

    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// The oldest channel that is not broken; if all are, the first.
    [[nodiscard]] connection& first() const noexcept;
    /// The channel with the least under way, of those that are not broken: for READ and WRITE.
    [[nodiscard]] connection& idlest() const noexcept;
    /// Whether a request that failed with `after` may be sent once more, over another channel: only if the
    /// one it was sent over is lost, and not all are.
    [[nodiscard]] bool can_repeat(const connection& over, const client_error& after) noexcept;
    /// The same of a request that changes something, whose options are marked for it. Also if the server,
    /// which has heard of a loss, would not take what was sent before, or is still at it
    /// ([MS-SMB2] 3.3.5.2.10). Suspends: then, for a while that grows with `so_far`.
    [[nodiscard]] io::task<bool> co_can_repeat(const connection& over, client_error after,
                                               request_options& how, patience& so_far) noexcept;
    /// Takes the broken channels out, and counts that as one loss more, so that the server can tell what was
    /// sent before from what is sent now. They may be closed and destroyed then; but if none is left, the
    /// last one stays.
    void forget_lost() noexcept;
    /// How often channels were lost when something is sent ([MS-SMB2] 3.2.4.1.8).
    [[nodiscard]] std::uint16_t channel_sequence() const noexcept { return channel_sequence_; }
    [[nodiscard]] const std::vector<connection*>& channels() const noexcept { return channels_; }
    [[nodiscard]] bool encrypts() const noexcept { return encrypts_; }

private:
    explicit session(connection& first) noexcept : channels_{&first} {}

    // What a session set-up has come to.
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
    bool is_unauthenticated_ = false;  // nobody proved who he is: nothing is signed
    bool encrypts_ = false;
    std::optional<auth::sealing_key> seals_with_;
    std::optional<auth::cipher_key> opens_with_;
    std::optional<auth::secret_bytes<16>> signs_with_;  // binding requests
    // With AES-GMAC, the message ids of binding requests: those that the first channel used before it had a
    // key.
    std::uint64_t next_binding_id_ = 1;
    std::uint64_t binding_ids_end_ = 0;
};

}  // namespace sluice::smb::client
