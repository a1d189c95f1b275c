#include "sluice/fsmutex/queue/sip_hash.hpp"

#include <algorithm>
#include <bit>

#include "sluice/base/endian.hpp"

namespace sluice::fsmutex {
namespace {

class sip_state {
public:
    sip_state(sip_key key, bool is_wide) noexcept
        : v_{key.low ^ 0x736f'6d65'7073'6575, key.high ^ 0x646f'7261'6e64'6f6d,
             key.low ^ 0x6c79'6765'6e65'7261, key.high ^ 0x7465'6462'7974'6573} {
        if (is_wide) v_[1] ^= 0xee;
    }

    void absorb(bytes_view data) noexcept {
        std::size_t at = 0;
        for (; data.size() - at >= 8; at += 8)
            absorb_word(data.take_at<le64>(at)->value());
        std::array<std::byte, 8> last{};
        std::copy(data.begin() + at, data.end(), last.begin());
        last[7] = static_cast<std::byte>(data.size());
        absorb_word(std::bit_cast<le64>(last).value());
    }

    [[nodiscard]] std::uint64_t squeeze(std::size_t lane, std::uint64_t mark) noexcept {
        v_[lane] ^= mark;
        for (int i = 0; i != 4; ++i)
            round();
        return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    }

private:
    void absorb_word(std::uint64_t word) noexcept {
        v_[3] ^= word;
        round();
        round();
        v_[0] ^= word;
    }
    void round() noexcept {
        v_[0] += v_[1];
        v_[1] = std::rotl(v_[1], 13) ^ v_[0];
        v_[0] = std::rotl(v_[0], 32);
        v_[2] += v_[3];
        v_[3] = std::rotl(v_[3], 16) ^ v_[2];
        v_[0] += v_[3];
        v_[3] = std::rotl(v_[3], 21) ^ v_[0];
        v_[2] += v_[1];
        v_[1] = std::rotl(v_[1], 17) ^ v_[2];
        v_[2] = std::rotl(v_[2], 32);
    }

    std::array<std::uint64_t, 4> v_;
};

}  // namespace

std::uint64_t sip_hash_64(bytes_view data, sip_key key) noexcept {
    sip_state state(key, false);
    state.absorb(data);
    return state.squeeze(2, 0xff);
}

std::array<std::uint64_t, 2> sip_hash_128(bytes_view data, sip_key key) noexcept {
    sip_state state(key, true);
    state.absorb(data);
    const std::uint64_t low = state.squeeze(2, 0xee);
    return {low, state.squeeze(1, 0xdd)};
}

}  // namespace sluice::fsmutex
