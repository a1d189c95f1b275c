#include "sluice/smb/auth/logon/der.hpp"

#include "sluice/base/endian.hpp"

namespace sluice::smb::auth::der {
namespace {

// The low bits of the first byte are then the number of length bytes.
constexpr unsigned long_form = 0x80;
constexpr unsigned length_bytes_max = 4;      // more than memory; also prevents an
                                              // overflow of the sum below
constexpr unsigned multi_byte_number = 0x1f;  // a tag that continues in the
                                              // next byte: not supported

struct header {
    std::uint8_t tag_number;
    std::uint64_t length;
};

// Moves `bytes` past a tag and its length.
std::optional<header> take_header(byte_reader& bytes) noexcept {
    const auto tag_byte = bytes.take<le8>();
    if (!tag_byte or (tag_byte->value() & multi_byte_number) == multi_byte_number) return std::nullopt;
    const auto first = bytes.take<le8>();
    if (!first) return std::nullopt;
    if (first->value() < long_form) return header{tag_byte->value(), first->value()};

    const unsigned count = first->value() & ~long_form;
    if (count == 0 or count > length_bytes_max) return std::nullopt;
    std::uint64_t length = 0;
    for (unsigned i = 0; i < count; ++i) {
        const auto next = bytes.take<le8>();
        if (!next) return std::nullopt;
        length = length << 8 | next->value();
    }
    return header{tag_byte->value(), length};
}

}  // namespace

bool reader::next_is(tag expected) const noexcept {
    const auto next = bytes_.rest().take<le8>();
    return next and next->value() == static_cast<std::uint8_t>(expected);
}

std::optional<bytes_view> reader::take(tag expected) noexcept {
    byte_reader ahead = bytes_;
    const auto found = take_header(ahead);
    if (!found or found->tag_number != static_cast<std::uint8_t>(expected)) return std::nullopt;
    const auto contents = ahead.take_bytes(found->length);
    if (contents) bytes_ = ahead;
    return contents;
}

std::optional<bytes_view> reader::take_whole() noexcept {
    byte_reader ahead = bytes_;
    const auto found = take_header(ahead);
    if (!found or !ahead.skip(found->length)) return std::nullopt;
    return bytes_.take_bytes(ahead.position() - bytes_.position());
}

std::optional<bytes_view> only(bytes_view bytes, tag expected) noexcept {
    reader values(bytes);
    const auto contents = values.take(expected);
    if (!contents or !values.at_end()) return std::nullopt;
    return contents;
}

std::vector<std::byte> make(tag kind, std::initializer_list<bytes_view> parts) {
    std::size_t length = 0;
    for (const bytes_view part : parts)
        length += part.size();
    ENSURE(length <= UINT32_MAX);

    std::vector<std::byte> value = {static_cast<std::byte>(kind)};
    if (length < long_form) {
        value.push_back(static_cast<std::byte>(length));
    } else {
        unsigned count = 1;
        while (length >> (8 * count) != 0)
            ++count;
        value.push_back(static_cast<std::byte>(long_form | count));
        while (count-- != 0)
            value.push_back(static_cast<std::byte>(length >> (8 * count) & 0xff));
    }
    for (const bytes_view part : parts)
        value.insert(value.end(), part.begin(), part.end());
    return value;
}

}  // namespace sluice::smb::auth::der
