#include "sluice/fat/codec/dbcs_code_page.hpp"

#include <iconv.h>

#include <cerrno>
#include <optional>
#include <span>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::size_t codes = 65536;

// The modules of iconv need the C library that they were built for. A static program contains
// another one, and would crash.
#ifdef SLUICE_WITHOUT_ICONV
constexpr bool has_iconv = false;
#else
constexpr bool has_iconv = true;
#endif

// Converts from one character set to another, one character at a time.
class converter {
public:
    converter(const char* to, const char* from) noexcept
        : state_(has_iconv ? iconv_open(to, from) : iconv_t(-1)) {}
    converter(const converter&) = delete;
    converter& operator=(const converter&) = delete;
    ~converter() {
        if (is_open()) iconv_close(state_);
    }
    [[nodiscard]] bool is_open() const noexcept { return state_ != iconv_t(-1); }

    /// Converts one character to the other set; the result has at most two bytes. Returns
    /// std::nullopt, with errno set, on failure.
    [[nodiscard]] std::optional<std::span<const unsigned char>> convert(
        std::span<const unsigned char> from) noexcept {
        iconv(state_, nullptr, nullptr, nullptr, nullptr);
        char* in = reinterpret_cast<char*>(const_cast<unsigned char*>(from.data()));
        char* out = reinterpret_cast<char*>(room_.data());
        std::size_t in_left = from.size();
        std::size_t out_left = room_.size();
        if (iconv(state_, &in, &in_left, &out, &out_left) == std::size_t(-1)) return std::nullopt;
        return std::span<const unsigned char>(room_).first(room_.size() - out_left);
    }

private:
    iconv_t state_;
    std::array<unsigned char, 2> room_{};
};

std::uint16_t number_of(std::span<const unsigned char> bytes) noexcept {
    ENSURE(bytes.size() == 1 or bytes.size() == 2, "a character has one byte or two");
    return static_cast<std::uint16_t>(bytes.size() == 1 ? bytes[0] : bytes[0] << 8 | bytes[1]);
}

}  // namespace

dbcs_code_page::dbcs_code_page(const char* charset) : characters_(codes, missing), codes_(codes) {
    converter decoder("UTF-16BE", charset);
    converter encoder(charset, "UTF-16BE");
    if (not decoder.is_open() or not encoder.is_open()) return;
    is_known_ = true;
    const auto learn = [&](std::span<const unsigned char> bytes) {
        const auto unit = decoder.convert(bytes);
        if (not unit or unit->size() != 2) return;
        const auto character = static_cast<char16_t>(number_of(*unit));
        characters_[number_of(bytes)] = character;
        // Some characters have two codes: iconv chooses the one to write.
        const std::array<unsigned char, 2> wanted{(*unit)[0], (*unit)[1]};
        if (const auto back = encoder.convert(wanted)) codes_[character] = number_of(*back);
    };
    for (unsigned first = 0x80; first != 0x100; ++first) {
        std::array<unsigned char, 2> bytes{static_cast<unsigned char>(first)};
        is_lead_[first] = not decoder.convert(std::span(bytes).first(1)) and errno == EINVAL;
        if (not is_lead_[first]) {
            learn(std::span(bytes).first(1));
            continue;
        }
        for (unsigned second = 0x40; second != 0xff; ++second) {
            bytes[1] = static_cast<unsigned char>(second);
            learn(bytes);
        }
    }
}

}  // namespace sluice::fat
