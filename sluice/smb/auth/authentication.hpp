#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/base/case_fold.hpp"
#include "sluice/smb/auth/nt_hash.hpp"
#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::auth {

/// What a server knows of a user.
struct account {
    nt_hash hash;
    bool is_disabled = false;
    bool is_guest = false;  // logs on with a password, yet counts as a guest
};

/// Where the accounts are. Called once for each attempt to log on, from the thread of the acceptor. Names
/// are UTF-8 as the client spelled them; whether case matters, and which domains exist, is the source's
/// business. An attacker can measure how long find() takes, so let it not depend on whether there is such a
/// user.
class account_source {
public:
    [[nodiscard]] virtual std::optional<account> find(std::string_view user,
                                                      std::string_view domain) noexcept = 0;

    struct account_name {
        std::string_view user;
        std::string_view domain;
    };
    /// Returns whether both names mean the same account. By default, if users and domains are equal without
    /// case.
    [[nodiscard]] virtual bool is_same(const account_name& one, const account_name& other) const noexcept {
        return equal_ignoring_case(one.user, other.user) and equal_ignoring_case(one.domain, other.domain);
    }

    account_source(const account_source&) = delete;
    account_source& operator=(const account_source&) = delete;

protected:
    account_source() noexcept = default;
    ~account_source() = default;
};

// What became of one step of an exchange, on either side.

/// Send this token and wait for the other side's: a server does so with `more_processing_required`.
struct step_continue {
    std::vector<std::byte> token;
};

/// Both sides know one another. Names are UTF-8.
struct step_done {
    std::vector<std::byte> token;  // a last one to send, if not empty
    session_key key;
    std::string user;
    std::string domain;
    std::string workstation;
    bool is_guest = false;
    bool is_anonymous = false;  // nobody proved anything: the key is worth nothing, and the caller decides
};

/// It has failed. Answer with this status; the reason is for the log, never for the other side.
struct step_refused {
    wire::nt_status why;
    const char* reason;
};

using step_result = std::variant<step_continue, step_done, step_refused>;

}  // namespace sluice::smb::auth
