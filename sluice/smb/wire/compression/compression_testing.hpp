#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "sluice/smb/wire/wire_testing.hpp"

// Shared by the tests of all algorithms: data of different kinds, and the properties of every
// compressor and decompressor.

namespace sluice::smb::wire {

enum class data_kind : std::uint8_t { random, zeros, text, repetitive, sparse, skewed };
inline constexpr data_kind data_kinds[] = {data_kind::random,     data_kind::zeros,  data_kind::text,
                                           data_kind::repetitive, data_kind::sparse, data_kind::skewed};
/// Around the boundaries of chunks (LZNT1) and blocks (LZ77+Huffman).
inline constexpr std::size_t data_sizes[] = {0,      1,      2,      3,      4,       5,       31,
                                             33,     100,    300,    4095,   4096,    4097,    8193,
                                             12'288, 65'535, 65'536, 65'537, 131'072, 200'000, 1'048'576};

/// Returns the same bytes for the same arguments.
inline message_bytes data_of(data_kind kind, std::size_t size) {
    std::mt19937 random(static_cast<unsigned>(size) * 7 + static_cast<unsigned>(kind));
    message_bytes made(size);
    constexpr std::string_view words[] = {"the ", "server ", "reads ", "a ", "file, ", "and ", "then "};
    std::string text;
    for (std::size_t i = 0; i != size; ++i) {
        if (kind == data_kind::random) made[i] = std::byte(random() & 0xff);
        if (kind == data_kind::repetitive) made[i] = std::byte("abcdefg"[i % 7]);
        if (kind == data_kind::sparse) made[i] = std::byte(random() % 50 == 0 ? random() & 0xff : 0);
        // Powers of two: codes of very different lengths.
        if (kind == data_kind::skewed) made[i] = std::byte(std::countr_zero(random() | 0x8000'0000U));
        if (kind == data_kind::text) {
            if (text.empty()) text = words[random() % std::size(words)];
            made[i] = std::byte(text.front());
            text.erase(0, 1);
        }
    }
    return made;
}

/// A compressor with its memory and its decompressor.
template <class WorkArea, auto Compress, auto Decompress>
struct codec {
    std::optional<message_bytes> shrink(bytes_view in, std::size_t room_bytes) {
        message_bytes out(room_bytes);
        const auto size = Compress(in, out, *work);
        if (not size) return std::nullopt;
        EXPECT_LE(*size, room_bytes);
        out.resize(*size);
        return out;
    }
    static decoded<message_bytes> expand(bytes_view in, std::size_t size) {
        // In a block of its own size, so that a sanitizer detects any access outside.
        const auto copy = std::make_unique<std::byte[]>(in.size());
        std::copy(in.begin(), in.end(), copy.get());
        message_bytes out(size, std::byte{0xee});
        const auto done = Decompress(bytes_view(copy.get(), in.size()), mutable_bytes(out));
        if (not done) return std::unexpected(done.error());
        return out;
    }
    std::unique_ptr<WorkArea> work = std::make_unique<WorkArea>();
};

/// Checks that all data come back, if they fit into twice their size.
template <class Codec>
void expect_round_trips() {
    Codec subject;
    for (const data_kind kind : data_kinds) {
        for (const std::size_t size : data_sizes) {
            const message_bytes data = data_of(kind, size);
            const auto small = subject.shrink(data, 2 * size + 1024);
            if (size == 0) continue;
            ASSERT_TRUE(small) << static_cast<int>(kind) << " " << size;
            const auto again = subject.expand(*small, size);
            ASSERT_TRUE(again) << static_cast<int>(kind) << " " << size << name_of(again.error());
            EXPECT_TRUE(*again == data) << static_cast<int>(kind) << " " << size;
            EXPECT_FALSE(subject.expand(*small, size + 1)) << "a byte more than there is";
            EXPECT_FALSE(subject.expand(*small, size - 1)) << "a byte less than there is";
        }
    }
}

/// Checks that a compressor ends as soon as there is no room, for each possible room.
template <class Codec>
void expect_no_result_without_room() {
    Codec subject;
    for (const data_kind kind : data_kinds) {
        const message_bytes data = data_of(kind, 5000);
        const std::size_t needed = subject.shrink(data, 20'000)->size();
        for (std::size_t room = 0; room < needed; room += 1 + needed / 300)
            EXPECT_FALSE(subject.shrink(data, room));
        EXPECT_FALSE(subject.shrink(data, needed - 1));
        EXPECT_TRUE(subject.shrink(data, needed));
    }
}

/// Checks that a decompressor ends with a result or an error for damaged data: any access outside
/// its buffers is an error of the sanitizers.
template <class Codec>
void expect_damage_is_harmless() {
    Codec subject;
    std::mt19937 random(1);
    for (const data_kind kind : data_kinds) {
        const message_bytes data = data_of(kind, 5000);
        const message_bytes good = *subject.shrink(data, 20'000);
        for (std::size_t length = 0; length < good.size(); length += 1 + good.size() / 200)
            EXPECT_FALSE(subject.expand(*bytes_view(good).first(length), data.size()));
        for (int i = 0; i != 500; ++i) {
            message_bytes bad = good;
            for (unsigned changes = 1 + random() % 4; changes != 0; --changes)
                bad[random() % bad.size()] = std::byte(random() & 0xff);
            (void)subject.expand(bad, random() % 2 == 0 ? data.size() : random() % 10'000);
        }
    }
}

}  // namespace sluice::smb::wire
