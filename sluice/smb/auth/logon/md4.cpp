#include "sluice/smb/auth/logon/md4.hpp"

#include <bit>
#include <cstdint>

#include "sluice/base/endian.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {
namespace {

constexpr std::size_t block_bytes = 64;
constexpr std::size_t length_bytes = 8;  // length of the message, at the end of the last block

using state = std::array<std::uint32_t, 4>;

// One of the three rounds: the word and the rotation of each step, the constant and the function.
struct round {
    std::array<std::uint8_t, 16> word;
    std::array<int, 4> rotation;
    std::uint32_t constant;
    std::uint32_t (*mix)(std::uint32_t, std::uint32_t, std::uint32_t);
};

constexpr std::array<round, 3> rounds = {{
    {.word = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
     .rotation = {3, 7, 11, 19},
     .constant = 0,
     .mix = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) { return (x & y) | (~x & z); }},
    {.word = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15},
     .rotation = {3, 5, 9, 13},
     .constant = 0x5a827999,
     .mix = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) { return (x & y) | (x & z) | (y & z); }},
    {.word = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15},
     .rotation = {3, 9, 11, 15},
     .constant = 0x6ed9eba1,
     .mix = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) { return x ^ y ^ z; }},
}};

void absorb(state& current, bytes_view block) noexcept {
    std::array<std::uint32_t, 16> words;
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = block.take_at<le32>(i * sizeof(le32))->value();

    state mixed = current;
    for (const round& each : rounds) {
        for (std::size_t step = 0; step < each.word.size(); ++step) {
            // The four words rotate: `a` of one step is `b` of the next.
            auto& [a, b, c, d] = mixed;
            const std::uint32_t sum = a + each.mix(b, c, d) + words[each.word[step]] + each.constant;
            mixed = {d, std::rotl(sum, each.rotation[step % 4]), b, c};
        }
    }
    for (std::size_t i = 0; i < current.size(); ++i)
        current[i] += mixed[i];
    wipe({reinterpret_cast<std::byte*>(words.data()), sizeof(words)});  // they contain a password
}

}  // namespace

std::array<std::byte, 16> md4(bytes_view message) noexcept {
    state current = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    bytes_view rest = message;
    for (; rest.size() >= block_bytes; rest = *rest.from(block_bytes))
        absorb(current, *rest.first(block_bytes));

    // The padding: a one bit, zeros, and the length in bits. It needs one block, or two if the
    // length does not fit.
    std::array<std::byte, 2 * block_bytes> padded{};
    std::copy(rest.begin(), rest.end(), padded.begin());
    padded[rest.size()] = std::byte{0x80};
    const std::size_t padded_bytes =
        rest.size() + 1 + length_bytes <= block_bytes ? block_bytes : 2 * block_bytes;
    const le64 bits(std::uint64_t{message.size()} * 8);
    std::memcpy(padded.data() + padded_bytes - length_bytes, &bits, length_bytes);
    for (std::size_t at = 0; at < padded_bytes; at += block_bytes)
        absorb(current, {padded.data() + at, block_bytes});
    wipe(padded);

    std::array<std::byte, 16> digest;
    for (std::size_t i = 0; i < current.size(); ++i) {
        const le32 word(current[i]);
        std::memcpy(digest.data() + i * sizeof(word), &word, sizeof(word));
    }
    return digest;
}

}  // namespace sluice::smb::auth
