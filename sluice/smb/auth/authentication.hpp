#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/base/case_fold.hpp"
#include "sluice/smb/auth/logon/nt_hash.hpp"
#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::auth {

/// A user's account on a server.
struct account {
    nt_hash hash;
    bool is_disabled = false;
    bool is_guest = false;  // logs on with a password, but counts as a guest
};

/// The source of accounts. The acceptor's thread calls it once per logon attempt. Names are UTF-8
/// as the client wrote them. The source decides whether case matters and which domains exist. An
/// attacker can measure the duration of find(), so it must not depend on whether the user exists.
class account_source {
public:
    [[nodiscard]] virtual std::optional<account> find(std::string_view user,
                                                      std::string_view domain) noexcept = 0;

    struct account_name {
        std::string_view user;
        std::string_view domain;
    };
    /// Returns whether both names identify the same account. The default implementation compares
    /// users and domains without case.
    [[nodiscard]] virtual bool is_same(const account_name& one, const account_name& other) const noexcept {
        return equal_ignoring_case(one.user, other.user) and equal_ignoring_case(one.domain, other.domain);
    }

    /// Returns the names of all accounts that find() finds, in no order, for those who ask which
    /// users there are. The default implementation returns none. Any thread. Complexity: linear.
    /// Allocates: the list.
    [[nodiscard]] virtual std::vector<std::string> found_names() const { return {}; }

    /// A number that changes with every change of the accounts. The default implementation is for
    /// accounts that never change. Any thread.
    [[nodiscard]] virtual std::uint64_t generation() const noexcept { return 0; }

    account_source(const account_source&) = delete;
    account_source& operator=(const account_source&) = delete;

protected:
    account_source() noexcept = default;
    ~account_source() = default;
};

// The results of one step of an exchange, on either side.

/// Send this token and wait for the peer's token. A server sends it with
/// `more_processing_required`.
struct step_continue {
    std::vector<std::byte> token;
};

/// The exchange succeeded. Names are UTF-8.
struct step_done {
    std::vector<std::byte> token;  // a last token to send, if not empty
    session_key key;
    std::string user;
    std::string domain;
    std::string workstation;
    bool is_guest = false;
    // No proof of identity: the key has no value, and the caller decides.
    bool is_anonymous = false;
};

/// The exchange failed. Answer with this status. The reason is for the log, never for the peer.
struct step_refused {
    wire::nt_status why;
    const char* reason;
};

using step_result = std::variant<step_continue, step_done, step_refused>;

}  // namespace sluice::smb::auth
