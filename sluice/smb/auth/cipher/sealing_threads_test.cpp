#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::auth {
namespace {

// Different threads bind channels to a session concurrently. Every sealer's counter starts at the
// same number here, so that only the lanes make the nonces different.
TEST(sealing_key, gives_sealers_to_many_threads_without_a_nonce_in_common) {
    constexpr int threads = 4;
    constexpr int sealers_per_thread = 100;
    sealing_key key{cipher_key(cipher_algorithm::aes_128_gcm)};
    std::vector<std::vector<std::string>> nonces(threads);
    {
        std::vector<std::jthread> channels;
        for (int i = 0; i < threads; ++i) {
            channels.emplace_back([&key, &own = nonces[i]] {
                const std::vector<std::byte> message(64);
                const bytes_view part = message;
                std::vector<std::byte> sealed(wire::transform_header_bytes + message.size());
                for (int made = 0; made < sealers_per_thread; ++made) {
                    predictable_secrets_for_simulation same(1);
                    auto seals = key.make_sealer(same).value();
                    ENSURE(seals.seal(1, std::span(&part, 1), sealed).has_value());
                    own.push_back(to_hex(*bytes_view(sealed).slice({.offset = 20, .length = 16})));
                }
            });
        }
    }
    std::set<std::string> distinct;
    for (const auto& own : nonces)
        distinct.insert(own.begin(), own.end());
    EXPECT_EQ(distinct.size(), std::size_t{threads} * sealers_per_thread);
}

}  // namespace
}  // namespace sluice::smb::auth
