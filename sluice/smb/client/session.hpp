#pragma once

#include <memory>
#include <vector>

#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/client/connection.hpp"
#include "sluice/smb/wire/session_setup.hpp"

namespace sluice::smb::client {

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
    /// Whether a request that failed over a broken channel may be sent once more over another. Counts the
    /// channels lost, so that the server can tell what was sent before from what is sent now.
    [[nodiscard]] bool can_repeat(const client_error& after) noexcept;
    /// How many channels were lost when something is sent ([MS-SMB2] 3.2.4.1.8).
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
    [[nodiscard]] outcome<void> seal_over(connection& over, channel_security& security) noexcept;

    std::vector<connection*> channels_;
    std::uint16_t channel_sequence_ = 0;
    std::size_t lost_ = 0;  // channels, counted in it
    std::uint64_t id_ = 0;
    bool is_unauthenticated_ = false;  // nobody proved who he is: nothing is signed
    bool encrypts_ = false;
    std::optional<auth::sealing_key> seals_with_;
    std::optional<auth::cipher_key> opens_with_;
    std::optional<auth::secret_bytes<16>> signs_with_;  // binding requests
};

}  // namespace sluice::smb::client
