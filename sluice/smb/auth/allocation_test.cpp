#include <gtest/gtest.h>

#include <vector>

#include "bench/harness/allocation_counter.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::auth {
namespace {

constexpr int messages = 1000;

// A message in two parts, as the server sends a READ: header and data.
struct message {
    std::vector<std::byte> header = std::vector<std::byte>(80);
    std::vector<std::byte> data = std::vector<std::byte>(10'000);
    std::array<bytes_view, 2> parts = {bytes_view(header), bytes_view(data)};
};

TEST(signer, allocates_nothing_per_message_once_warm) {
    const message sent;
    for (const auto algorithm :
         {signing_algorithm::hmac_sha256, signing_algorithm::aes_cmac, signing_algorithm::aes_gmac}) {
        auto with = signer::create(algorithm, secret_bytes<16>()).value();
        std::uint64_t id = 0;
        const auto signature = with.sign(sent.parts, {.message_id = id}).value();
        const std::uint64_t before = bench::allocations();
        for (int i = 0; i < messages; ++i)
            ENSURE(with.verify(sent.parts, {.message_id = 0}, signature) and
                   with.sign(sent.parts, {.message_id = ++id}));
        EXPECT_EQ(bench::allocations() - before, 0u) << static_cast<int>(algorithm);
    }
}

TEST(sealer, and_opener_allocate_nothing_per_message_once_warm) {
    const message sent;
    system_random secrets;
    std::vector<std::byte> sealed(wire::transform_header_bytes + 10'080);
    std::vector<std::byte> plain(10'080);
    for (const auto algorithm : {cipher_algorithm::aes_128_ccm, cipher_algorithm::aes_128_gcm,
                                 cipher_algorithm::aes_256_ccm, cipher_algorithm::aes_256_gcm}) {
        sealing_key key{cipher_key(algorithm)};
        auto seals = key.make_sealer(secrets).value();
        auto opens = opener::create(cipher_key(algorithm)).value();
        const bytes_view header = *bytes_view(sealed).first(wire::transform_header_bytes);
        const bytes_view ciphertext = *bytes_view(sealed).from(wire::transform_header_bytes);
        const auto round_trip = [&] {
            ENSURE(seals.seal(1, sent.parts, sealed).has_value());
            ENSURE(opens.open(header, std::span(&ciphertext, 1), plain));
        };
        round_trip();
        const std::uint64_t before = bench::allocations();
        for (int i = 0; i < messages; ++i)
            round_trip();
        EXPECT_EQ(bench::allocations() - before, 0u) << static_cast<int>(algorithm);
    }
}

}  // namespace
}  // namespace sluice::smb::auth
