#include "sluice/smb/auth/upper_case.hpp"

#include <algorithm>
#include <cstdint>

#include "sluice/base/endian.hpp"

namespace sluice::smb::auth {
namespace {

// Small letters from `first` to `last`, of which every `step`th has its capital `distance` below itself.
struct letters {
    std::uint16_t first;
    std::uint16_t last;
    std::uint16_t step;
    std::int32_t distance;
};

constexpr letters small_letters[] = {
    {0x0061, 0x007a, 1, 32},    // a to z
    {0x00e0, 0x00f6, 1, 32},    // Latin-1, without the division sign
    {0x00f8, 0x00fe, 1, 32},    //
    {0x00ff, 0x00ff, 1, -121},  // y with diaeresis
    {0x0101, 0x012f, 2, 1},     // Latin Extended-A: capital and small letter in turn
    {0x0133, 0x0137, 2, 1},     //
    {0x013a, 0x0148, 2, 1},     //
    {0x014b, 0x0177, 2, 1},     //
    {0x017a, 0x017e, 2, 1},     //
    {0x03ac, 0x03ac, 1, 38},    // Greek, with accents
    {0x03ad, 0x03af, 1, 37},    //
    {0x03b1, 0x03c1, 1, 32},    // alpha to rho; the final sigma has no capital of its own
    {0x03c3, 0x03cb, 1, 32},    //
    {0x03cc, 0x03cc, 1, 64},    //
    {0x03cd, 0x03ce, 1, 63},    //
    {0x0430, 0x044f, 1, 32},    // Cyrillic
    {0x0450, 0x045f, 1, 80},    //
    {0x0461, 0x0481, 2, 1},     //
    {0x048b, 0x04bf, 2, 1},     //
    {0x04c2, 0x04ce, 2, 1},     //
    {0x04d1, 0x052f, 2, 1},     //
    {0x0561, 0x0586, 1, 48},    // Armenian
    {0x1e01, 0x1e95, 2, 1},     // Latin Extended Additional
    {0x1ea1, 0x1eff, 2, 1},     // Vietnamese
    {0xff41, 0xff5a, 1, 32},    // full width
};

std::uint16_t upper_case_of(std::uint16_t unit) noexcept {
    const auto* const found =
        std::ranges::find_if(small_letters, [unit](const letters& each) { return unit <= each.last; });
    if (found == std::end(small_letters) or unit < found->first) return unit;
    if ((unit - found->first) % found->step != 0) return unit;
    return static_cast<std::uint16_t>(unit - found->distance);
}

}  // namespace

void make_upper_case(mutable_bytes utf16) noexcept {
    for (std::size_t at = 0; utf16.size() - at >= sizeof(le16); at += sizeof(le16)) {
        const le16 upper(upper_case_of(utf16.take_at<le16>(at)->value()));
        std::memcpy(utf16.data() + at, &upper, sizeof(upper));
    }
}

}  // namespace sluice::smb::auth
