#pragma once

#include <cstdint>

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::server {

/// Tells requests that a client sent before one of its channels failed from those it has
/// sent since, so that one which arrives late, or twice, changes nothing ([MS-SMB2]
/// 3.3.5.2.10). An open has one.
///
/// The client counts its failures in each header. Thread safety: under the mutex of its
/// open. Allocates: nothing.
class channel_sequence {
public:
    enum class verdict : std::uint8_t {
        current,  ///< serve it; finished(number) when it has been
        stale,    ///< a request from before the last failure: must not change anything
    };

    /// A request with this number comes; `is_replay` if the client has sent it before.
    [[nodiscard]] verdict arrived(std::uint16_t number, bool is_replay) noexcept {
        const auto ahead = static_cast<std::uint16_t>(number - number_);
        constexpr std::uint16_t ahead_max = 0x7fff;
        if (ahead > ahead_max) return verdict::stale;
        if (ahead != 0) {
            before_ += in_flight_;
            in_flight_ = 0;
            number_ = number;
        }
        // The first attempt of a repeated request may still be in progress.
        if (is_replay and before_ != 0) return verdict::stale;
        ++in_flight_;
        return verdict::current;
    }
    /// A request that had arrived as current has been served.
    void finished(std::uint16_t number) noexcept {
        if (number == number_ and in_flight_ != 0) {
            --in_flight_;
        } else if (before_ != 0) {
            --before_;
        }
    }

private:
    std::uint16_t number_ = 0;
    std::uint32_t in_flight_ = 0;  // requests with the number
    std::uint32_t before_ = 0;     // requests with an earlier one
};

/// Whether a command that is late is to be refused for it; others only look.
[[nodiscard]] constexpr bool is_refused_when_late(wire::command code) noexcept {
    return code == wire::command::write or code == wire::command::set_info or code == wire::command::ioctl;
}

}  // namespace sluice::smb::server
