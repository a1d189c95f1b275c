#pragma once

#include <expected>
#include <string>

#include "sluice/base/error.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::client {

/// The reason why an operation of the client failed: the step, and the party that rejected it.
///
/// Trivially copyable. The caller adds the object (host, share, path), which it knows.
class client_error {
public:
    enum class kind : std::uint8_t {
        io,        ///< the network, or this machine: code() is the errno value
        status,    ///< the server returned an error: status()
        protocol,  ///< the server violated the protocol: rule() is the violation; the
                   ///< connection is closed
        policy,    ///< the client refuses: rule() is the requirement that is not met, and a remedy
    };

    /// Construct an error. `step` and `rule` must be string literals or otherwise outlive the
    /// error.
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
    /// Returns the same error as the failure of a larger operation.
    [[nodiscard]] constexpr client_error of_step(const char* step) const noexcept {
        return {kind_, step, rule_, status_, code_};
    }
    /// Returns the operation that failed, as in "log on", "open".
    [[nodiscard]] constexpr const char* step() const noexcept { return step_; }
    [[nodiscard]] constexpr const char* rule() const noexcept { return rule_; }
    /// Returns the server's status; `success` if the server did not report the error.
    [[nodiscard]] constexpr wire::nt_status status() const noexcept { return status_; }
    /// Returns the nearest errno value, for errors of any kind.
    [[nodiscard]] constexpr int code() const noexcept { return code_; }

    /// Returns whether the connection, or the session on it, is unusable, so that the operation may
    /// succeed over another connection.
    [[nodiscard]] bool is_of_connection() const noexcept;

    /// Returns a text such as "open: no such file or directory (STATUS_OBJECT_NAME_NOT_FOUND)",
    /// with a remedy if one is known. Allocates: the string.
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

/// A value, or the reason for its absence.
template <class T>
using outcome = std::expected<T, client_error>;

[[nodiscard]] inline std::unexpected<client_error> failed(client_error why) noexcept {
    return std::unexpected<client_error>(why);
}

}  // namespace sluice::smb::client
