#pragma once

#include <expected>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::client {

/// Why the client could not do something: what it was doing, and who refused.
///
/// Trivially copyable. What it was applied to (host, share, path) is for the caller to add, who knows it.
class client_error {
public:
    enum class kind : std::uint8_t {
        io,        ///< the network, or this machine: code() is the errno value
        status,    ///< the server said no: status()
        protocol,  ///< the server said what no server may: rule() names what was broken; the connection is
                   ///< gone
        policy,    ///< we refuse: rule() says what was asked of us that is not met, and what to do
    };

    /// `step` and `rule` must be string literals or otherwise outlive the error.
    [[nodiscard]] static constexpr client_error of_io(const char* step, int code) noexcept {
        return {kind::io, step, "", wire::nt_status::success, code};
    }
    [[nodiscard]] static constexpr client_error of_io(const char* step, const error& why) noexcept {
        return of_io(step, why.code());
    }
    [[nodiscard]] static client_error of_status(const char* step, wire::nt_status status) noexcept;
    [[nodiscard]] static constexpr client_error of_protocol(const char* step, const char* rule) noexcept {
        return {kind::protocol, step, rule, wire::nt_status::success, EPROTO};
    }
    [[nodiscard]] static constexpr client_error of_policy(const char* step, const char* rule) noexcept {
        return {kind::policy, step, rule, wire::nt_status::success, EACCES};
    }

    [[nodiscard]] constexpr kind which() const noexcept { return kind_; }
    /// "log on", "open"
    [[nodiscard]] constexpr const char* step() const noexcept { return step_; }
    [[nodiscard]] constexpr const char* rule() const noexcept { return rule_; }
    /// What the server answered; `success` if it was not the server.
    [[nodiscard]] constexpr wire::nt_status status() const noexcept { return status_; }
    /// The nearest errno value, whoever refused.
    [[nodiscard]] constexpr int code() const noexcept { return code_; }

    /// Whether the connection, or the session on it, is of no more use, so that the same may succeed over
    /// another one.
    [[nodiscard]] bool is_of_connection() const noexcept;

    /// "open: no such file or folder (STATUS_OBJECT_NAME_NOT_FOUND)", and what to do where that is known.
    /// Allocates: the string.
    [[nodiscard]] std::string message() const;

private:
    constexpr client_error(kind which, const char* step, const char* rule, wire::nt_status status,
                           int code) noexcept
        : step_(step), rule_(rule), status_(status), code_(code), kind_(which) {}

    const char* step_;
    const char* rule_;
    wire::nt_status status_;
    int code_;
    kind kind_;
};

/// A value or why there is none.
template <class T>
using outcome = std::expected<T, client_error>;

[[nodiscard]] inline std::unexpected<client_error> failed(client_error why) noexcept {
    return std::unexpected<client_error>(why);
}

}  // namespace sluice::smb::client
