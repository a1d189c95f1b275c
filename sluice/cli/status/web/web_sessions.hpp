#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {

/// The shortest and the longest token.
inline constexpr std::size_t web_token_bytes_min = 16;
inline constexpr std::size_t web_token_bytes_max = 512;

/// Reads a token from the first line of a file that only its owner, this account or root, can
/// access. Errors: a message with the path, the rule and the remedy. Blocks: for the file system;
/// not for a pipe, which is an error. Allocates: the token.
[[nodiscard]] std::expected<std::string, std::string> read_web_token(const std::string& path);

/// The token of the administrators, and the browsers that have entered it.
///
/// Tokens are compared by codes under a random key, in a time that does not depend on them.
/// Invariant: at most sessions_max sessions; a further one replaces the one that was idle longest.
/// Thread safety: one thread. Allocates: the sessions.
class web_sessions {
public:
    static constexpr std::size_t sessions_max = 16;
    static constexpr std::chrono::minutes idle_max{30};
    static constexpr std::chrono::hours age_max{12};

    /// The token is not empty. `clock` and `random` outlive this.
    web_sessions(std::string_view token, const clock_source& clock, secret_random_source& random);
    web_sessions(const web_sessions&) = delete;
    web_sessions& operator=(const web_sessions&) = delete;

    [[nodiscard]] bool is_token(std::string_view given) const noexcept;

    /// Begins a session. Returns the value of its cookie.
    [[nodiscard]] std::string begin();
    /// Ends a session; does nothing if there is none.
    void end(std::string_view cookie) noexcept;

    struct found_session {
        std::uint64_t number = 0;  // for the log
        std::string form_token;    // proves that a form comes from a page of this session
    };
    /// Returns the session of a cookie, and counts as a use of it.
    [[nodiscard]] std::optional<found_session> find(std::string_view cookie);
    [[nodiscard]] static bool is_same(std::string_view one, std::string_view other) noexcept;

private:
    struct session {
        std::uint64_t number = 0;
        std::string cookie;
        std::string form_token;
        clock_source::steady_time began{};
        clock_source::steady_time used{};
    };
    [[nodiscard]] std::string make_secret() noexcept;
    [[nodiscard]] smb::auth::secret_bytes<32> code_of(std::string_view text) const noexcept;
    void remove_expired() noexcept;

    const clock_source& clock_;
    secret_random_source& random_;
    smb::auth::hmac_sha256 codes_;
    smb::auth::secret_bytes<32> token_code_;
    std::vector<session> sessions_;
    std::uint64_t last_number_ = 0;
};

/// Returns the value of our cookie in a Cookie header (RFC 6265, section 4.2.1); empty if it is
/// missing. Pure function.
[[nodiscard]] std::string_view web_cookie_in(std::string_view header) noexcept;
inline constexpr std::string_view web_cookie_name = "sluice_web";

}  // namespace sluice::cli
