#include "sluice/smb/auth/cipher/sealing.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::auth {
namespace {

constexpr cipher_algorithm all_ciphers[] = {cipher_algorithm::aes_128_ccm, cipher_algorithm::aes_128_gcm,
                                            cipher_algorithm::aes_256_ccm, cipher_algorithm::aes_256_gcm};

cipher_key numbered_key(cipher_algorithm algorithm) {
    cipher_key key(algorithm);
    for (std::size_t i = 0; i < key.mutable_view().size(); ++i)
        key.mutable_view()[i] = static_cast<std::byte>(i);
    return key;
}

std::vector<std::byte> random_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    seeded_random(size).fill(bytes);
    return bytes;
}

// An encrypted message that Microsoft published, and its content.
struct published {
    cipher_algorithm algorithm;
    std::string_view key;
    std::string_view sealed;
    std::string_view message;
};

// "Encryption in SMB 3.0: A protocol perspective" and "SMB 3.1.1 Encryption in Windows 10".
constexpr published examples[] = {
    {cipher_algorithm::aes_128_ccm, "261B72350558F2E9DCF613070383EDBF",
     "FD534D4281A286535415445DAE393921E44FA42E66E69A111892584FB5ED524A744DA3EE87000000000001001100001400E4080"
     "0"
     "25C8FEE16605A437832D1CD52DA9F4645333482A175FE5384563F45FCDAFAEF38BC62BA4D5C62897996625A44C29BE56"
     "58DE2E6117585779E7B59FFD971278D08580D7FA899E410E910EABF5AA1DB43050B33B49182637759AC15D84BFCDF5B6"
     "B238993C0F4CF4D6012023F6C627297075D84B7803912D0A9639634453595EF3E33FFE4E7AC2AB",
     "FE534D4240000100000000000900400008000000000000000400000000000000FFFE0000010000001100001400E40800"
     "000000000000000000000000000000003100700017000000000000000000000015010000390000020100000039020000"
     "00000000000000007000000000000000536D623320656E6372797074696F6E2074657374696E67"},
    {cipher_algorithm::aes_128_ccm, "8FE2B57EC34D2DB5B1A9727F526BBDB5",
     "FD534D42A6015530A18F6D9AFFE22AFAE8E6648486000000000000001100001400E4080050000000000001001100001400E4080"
     "0"
     "DBF46435C5F14169293CE079E344479BF670227E49873F458672C3098DAC467DD5809F369D674091665157871483E01F"
     "7BECD02064EAC3E235F913668BBC2F097980D4B378F1993EFF6E60D177309E5B",
     "FE534D4240000100000000000900210009000000000000000400000000000000FFFE0000010000001100001400E40800"
     "0000000000000000000000000000000011000000170000000000000000000000"},
    {cipher_algorithm::aes_128_gcm, "A2F5E80E5D59103034F32E52F698E5EC",
     "FD534D42BD73D97D2BC9001BCAFAC0FDFF5FEEBCC7D6822D269CAF48904C664C000000008700000000000100250000000010000"
     "0"
     "6ECDD2A7AFC7B47763057A041B8FD4DAFFE990B70C9E09D36C084E02D14EF247F8BDE38ACF6256F8B1D3B56F77FBDEB3"
     "12FEA5E92CBCC1ED8FB2EBBFAA75E49A4A394BB44576545567C24D4C014D47C9FBDFDAFD2C4F9B72F8D256452620A299"
     "F48E29E53D6B61D1C13A19E91AF013F00D17E3ABC2FC3D36C8C1B6B93973253852DBD442E46EE8",
     "FE534D4240000100000000000900010008000000000000000500000000000000FFFE0000010000002500000000100000"
     "000000000000000000000000000000003100700017000000000000000000000006000000040000000100000004000000"
     "00000000000000007000000000000000536D623320656E6372797074696F6E2074657374696E67"},
    {cipher_algorithm::aes_128_gcm, "748C50868C90F302962A5C35F5F9A8BF",
     "FD534D42ACBE1CB7ED343ADF1725EF144D90D4B0E06831DD2E8EB7B400000000000000005000000000000100250000000010000"
     "0"
     "26BBBF949983A6C1C796559D0F2C510CB651D1F7B6AC8DED32A2A0B8F2D793A815C6F6B848D69767A215841A42D400AE"
     "6DDB5F0B44173A014973321FDD7950DA6179159B82E03C9E18A050FF0EA1C967",
     "FE534D4240000100000000000900010001000000000000000500000000000000FFFE0000010000002500000000100000"
     "0000000000000000000000000000000011000000170000000000000000000000"},
};

// Opens the result of seal(), header and ciphertext in one buffer.
std::optional<std::vector<std::byte>> opened(opener& with, bytes_view sealed) {
    const bytes_view ciphertext = *sealed.from(wire::transform_header_bytes);
    std::vector<std::byte> message(ciphertext.size());
    if (!with.open(*sealed.first(wire::transform_header_bytes), std::span(&ciphertext, 1), message))
        return std::nullopt;
    return message;
}

TEST(opener, opens_the_messages_microsoft_published) {
    for (const published& each : examples) {
        auto with = opener::create(cipher_key(each.algorithm, from_hex(each.key))).value();
        EXPECT_EQ(opened(with, from_hex(each.sealed)), from_hex(each.message));
    }
}

TEST(sealer, round_trips_through_the_opener_for_every_cipher_and_length) {
    system_random secrets;
    for (const cipher_algorithm algorithm : all_ciphers) {
        sealing_key key(numbered_key(algorithm));
        auto seals = key.make_sealer(secrets).value();
        auto opens = opener::create(numbered_key(algorithm)).value();
        for (const std::size_t size : {1, 15, 16, 17, 64, 4096, 100'001}) {
            const auto message = random_bytes(size);
            const bytes_view part = message;
            std::vector<std::byte> sealed(wire::transform_header_bytes + size);
            ASSERT_TRUE(seals.seal(0x1122334455667788, std::span(&part, 1), sealed));
            EXPECT_EQ(bytes_view(sealed).take_at<le64>(44)->value(), 0x1122334455667788);
            EXPECT_EQ(bytes_view(sealed).take_at<le32>(36)->value(), size);
            EXPECT_EQ(opened(opens, sealed), message) << size;
        }
    }
}

TEST(sealer, accepts_a_message_in_parts_and_in_place) {
    system_random secrets;
    for (const cipher_algorithm algorithm : all_ciphers) {
        sealing_key key(numbered_key(algorithm));
        auto seals = key.make_sealer(secrets).value();
        auto opens = opener::create(numbered_key(algorithm)).value();
        const auto message = random_bytes(5000);
        const bytes_view all = message;
        std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());

        const std::array<bytes_view, 4> parts = {*all.first(64), *all.slice({64, 0}), *all.slice({64, 1000}),
                                                 *all.from(1064)};
        ASSERT_TRUE(seals.seal(1, parts, sealed));
        EXPECT_EQ(opened(opens, sealed), message);

        std::copy(message.begin(), message.end(), sealed.begin() + wire::transform_header_bytes);
        const bytes_view in_place = *bytes_view(sealed).from(wire::transform_header_bytes);
        ASSERT_TRUE(seals.seal(1, std::span(&in_place, 1), sealed));
        EXPECT_EQ(opened(opens, sealed), message);

        // A header assembled in place, with data from elsewhere.
        std::copy_n(message.begin(), 64, sealed.begin() + wire::transform_header_bytes);
        const std::array<bytes_view, 2> mixed = {*in_place.first(64), *all.from(64)};
        ASSERT_TRUE(seals.seal(1, mixed, sealed));
        EXPECT_EQ(opened(opens, sealed), message);
    }
}

TEST(opener, opens_in_place_and_from_parts) {
    system_random secrets;
    for (const cipher_algorithm algorithm : all_ciphers) {
        sealing_key key(numbered_key(algorithm));
        auto seals = key.make_sealer(secrets).value();
        auto opens = opener::create(numbered_key(algorithm)).value();
        const auto message = random_bytes(5000);
        const bytes_view all = message;
        std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
        ASSERT_TRUE(seals.seal(1, std::span(&all, 1), sealed));

        const bytes_view ciphertext = *bytes_view(sealed).from(wire::transform_header_bytes);
        const bytes_view header = *bytes_view(sealed).first(wire::transform_header_bytes);
        const std::array<bytes_view, 3> parts = {*ciphertext.first(17), *ciphertext.slice({17, 2000}),
                                                 *ciphertext.from(2017)};
        std::vector<std::byte> plain(message.size());
        EXPECT_TRUE(opens.open(header, parts, plain));
        EXPECT_EQ(plain, message);

        EXPECT_TRUE(opens.open(header, std::span(&ciphertext, 1),
                               *mutable_bytes(sealed).from(wire::transform_header_bytes)));
        EXPECT_TRUE(std::equal(ciphertext.begin(), ciphertext.end(), message.begin()));
    }
}

TEST(opener, rejects_any_flipped_bit_and_exposes_nothing_of_the_message) {
    system_random secrets;
    for (const cipher_algorithm algorithm : all_ciphers) {
        sealing_key key(numbered_key(algorithm));
        auto seals = key.make_sealer(secrets).value();
        auto opens = opener::create(numbered_key(algorithm)).value();
        const auto message = random_bytes(70);
        const bytes_view part = message;
        std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
        ASSERT_TRUE(seals.seal(1, std::span(&part, 1), sealed));
        // The decoder checks the protocol id, which is neither secret nor authenticated.
        for (std::size_t bit = 8 * 4; bit < 8 * sealed.size(); ++bit) {
            auto forged = sealed;
            forged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
            const bytes_view ciphertext = *bytes_view(forged).from(wire::transform_header_bytes);
            std::vector<std::byte> plain(ciphertext.size(), std::byte{0xee});
            EXPECT_FALSE(opens.open(*bytes_view(forged).first(wire::transform_header_bytes),
                                    std::span(&ciphertext, 1), plain))
                << bit;
            EXPECT_EQ(plain, std::vector<std::byte>(plain.size())) << bit;
        }
        EXPECT_EQ(opened(opens, sealed), message);  // it still works afterwards
    }
}

TEST(opener, rejects_a_truncated_or_empty_message_and_an_incomplete_header) {
    system_random secrets;
    sealing_key key(numbered_key(cipher_algorithm::aes_128_gcm));
    auto seals = key.make_sealer(secrets).value();
    auto opens = opener::create(numbered_key(cipher_algorithm::aes_128_gcm)).value();
    const auto message = random_bytes(70);
    const bytes_view part = message;
    std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
    ASSERT_TRUE(seals.seal(1, std::span(&part, 1), sealed));
    for (std::size_t size = wire::transform_header_bytes; size < sealed.size(); ++size)
        EXPECT_EQ(opened(opens, *bytes_view(sealed).first(size)), std::nullopt) << size;
    std::vector<std::byte> plain(message.size());
    EXPECT_FALSE(opens.open(*bytes_view(sealed).first(51), std::span(&part, 1), plain));
}

TEST(sealing_key, never_gives_two_sealers_a_nonce_in_common) {
    // The same random numbers each time, so that only the lane distinguishes the sealers.
    sealing_key key(numbered_key(cipher_algorithm::aes_128_gcm));
    std::set<std::string> nonces;
    const auto message = random_bytes(16);
    const bytes_view part = message;
    std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
    for (int channel = 0; channel < 8; ++channel) {
        predictable_secrets_for_simulation same(1);
        auto seals = key.make_sealer(same).value();
        for (int i = 0; i < 100; ++i) {
            ASSERT_TRUE(seals.seal(1, std::span(&part, 1), sealed));
            EXPECT_TRUE(nonces.insert(to_hex(*bytes_view(sealed).slice({20, 11}))).second);
        }
    }
}

TEST(nonce_sequence, wraps_around_and_stops_before_it_repeats) {
    nonce_sequence nonces({.lane = 0x030201, .start = UINT64_MAX - 1, .count_max = 3});
    EXPECT_EQ(to_hex(bytes_of(static_cast<const transform_nonce&>(*nonces.next()))).substr(0, 22),
              "feffffffffffffff010203");
    EXPECT_EQ(nonces.next()->counter.value(), UINT64_MAX);
    EXPECT_EQ(nonces.next()->counter.value(), 0u);
    EXPECT_FALSE(nonces.next());
    EXPECT_FALSE(nonces.next());
}

TEST(sealer, rejects_a_message_longer_than_the_limit_of_the_transport) {
    system_random secrets;
    sealing_key key(numbered_key(cipher_algorithm::aes_128_gcm));
    auto seals = key.make_sealer(secrets).value();
    const std::vector<std::byte> message(limits::sealed_message_bytes_max + 1);
    const bytes_view part = message;
    std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
    const auto refused = seals.seal(1, std::span(&part, 1), sealed);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::message_size);
}

}  // namespace
}  // namespace sluice::smb::auth
