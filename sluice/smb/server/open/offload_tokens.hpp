#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"

namespace sluice::smb::server {

/// The data that a token of an offloaded copy stands for: a range of an open file, as long as its
/// content is the same.
struct offload_source {
    wire::file_id file{};  // the open that it was read through
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t changes = 0;   // file_state::ended_changes() at that time
    std::uint64_t modified = 0;  // the time when the content had changed last
    clock_source::steady_time ends_at{};

    [[nodiscard]] friend bool operator==(const offload_source&, const offload_source&) noexcept = default;
};

/// Makes tokens of offloaded copies, and reads them again. A token contains its source, and a code
/// that only this server can compute. So the server keeps nothing for a token, and clients may ask
/// for any number of them. A token says what to copy, and does not permit it: its reader checks the
/// open and the user.
///
/// Immutable. Thread safety: any thread. Allocates: nothing.
class offload_tokens {
public:
    explicit offload_tokens(secret_random_source& random) noexcept;

    [[nodiscard]] wire::offload_token make(const offload_source& of) const noexcept;
    /// Returns std::nullopt for a token that this server has not made, or that is too old.
    [[nodiscard]] std::optional<offload_source> read(const wire::offload_token& token,
                                                     clock_source::steady_time now) const noexcept;

private:
    auth::hmac_sha256 code_;
};

}  // namespace sluice::smb::server
