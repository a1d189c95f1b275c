#include "sluice/smb/auth/logon/rc4.hpp"

#include <numeric>
#include <utility>

#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {
namespace {

constexpr std::uint8_t low_byte(unsigned sum) noexcept {
    return static_cast<std::uint8_t>(sum & 0xff);
}

}  // namespace

rc4::rc4(bytes_view key) noexcept {
    ENSURE(!key.empty() and key.size() <= state_.size());
    std::iota(state_.begin(), state_.end(), std::uint8_t{0});
    std::uint8_t j = 0;
    for (unsigned i = 0; i < state_.size(); ++i) {
        j = low_byte(unsigned{j} + state_[i] + std::to_integer<unsigned>(key[i % key.size()]));
        std::swap(state_[i], state_[j]);
    }
}

rc4::~rc4() {
    wipe({reinterpret_cast<std::byte*>(state_.data()), state_.size()});
}

void rc4::apply(mutable_bytes bytes) noexcept {
    for (std::byte& each : bytes) {
        i_ = low_byte(unsigned{i_} + 1);
        j_ = low_byte(unsigned{j_} + state_[i_]);
        std::swap(state_[i_], state_[j_]);
        each ^= std::byte{state_[low_byte(unsigned{state_[i_]} + state_[j_])]};
    }
}

}  // namespace sluice::smb::auth
