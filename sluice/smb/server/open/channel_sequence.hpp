#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/ensure.hpp"
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
    /// A request that is being served, for finished().
    struct ticket {
        std::uint32_t step = 0;
    };

    /// The number of the CREATE that has made the open.
    void begin_at(std::uint16_t number) noexcept {
        ENSURE(in_flight_ == 0 and before_ == 0, "a sequence begins before the first request");
        number_ = number;
    }
    /// The client has the open back, by a CREATE with this number. Its earlier requests may still
    /// be in progress, although their session has ended, and their numbers may be the same.
    void continue_at(std::uint16_t number) noexcept { step_to(number); }

    /// A request with this number comes; `is_replay` if the client has sent it before. Returns
    /// std::nullopt if it is from before the last failure: it must not change anything.
    [[nodiscard]] std::optional<ticket> arrived(std::uint16_t number, bool is_replay) noexcept {
        const auto ahead = static_cast<std::uint16_t>(number - number_);
        constexpr std::uint16_t ahead_max = 0x7fff;
        if (ahead > ahead_max) return std::nullopt;
        if (ahead != 0) step_to(number);
        // The first attempt of a repeated request may still be in progress.
        if (is_replay and before_ != 0) return std::nullopt;
        ++in_flight_;
        return ticket{step_};
    }
    /// A request that had arrived has been served.
    void finished(ticket of) noexcept {
        std::uint32_t& count = of.step == step_ ? in_flight_ : before_;
        ENSURE(count != 0, "a request ends once");
        --count;
    }

private:
    void step_to(std::uint16_t number) noexcept {
        before_ += in_flight_;
        in_flight_ = 0;
        number_ = number;
        ++step_;
    }

    std::uint16_t number_ = 0;
    std::uint32_t step_ = 0;       // how often the number has changed
    std::uint32_t in_flight_ = 0;  // requests of the present step
    std::uint32_t before_ = 0;     // requests of earlier ones
};

/// Whether a command that is late is to be refused for it; others only look.
[[nodiscard]] constexpr bool is_refused_when_late(wire::command code) noexcept {
    return code == wire::command::write or code == wire::command::set_info or code == wire::command::ioctl;
}

}  // namespace sluice::smb::server
