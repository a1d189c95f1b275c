#include "sluice/smb/auth/cipher/gcm.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/hex_testing.hpp"

// wide_gcm and OpenSSL are two implementations of one function, so each tests the other.

namespace sluice::smb::auth::detail {
namespace {

using bytes = std::vector<std::byte>;

constexpr const gcm_batches* no_batches = nullptr;

[[nodiscard]] bytes some(seeded_random& random, std::size_t count) {
    bytes made(count);
    random.fill(made);
    return made;
}

// Splits `all` into parts of random lengths and calls `take` with each part and its offset.
template <class Take>
void in_parts(seeded_random& random, bytes_view all, std::size_t part_max, Take take) {
    for (std::size_t at = 0; at != all.size();) {
        const std::size_t length = std::min<std::size_t>(all.size() - at, 1 + random.below(part_max));
        take(*all.slice({.offset = at, .length = length}), at);
        at += length;
    }
}

// The implementation of complete batches (null: OpenSSL does everything), and the length of the
// key.
struct make_of_gcm {
    const gcm_batches* by;
    const char* name;
    std::size_t key_bytes;
};

class both_gcms : public testing::TestWithParam<make_of_gcm> {
protected:
    void SetUp() override {
        if (GetParam().by == nullptr) GTEST_SKIP() << "this CPU lacks the instructions";
    }
};

TEST_P(both_gcms, agree_on_messages_of_all_lengths_in_parts_of_all_lengths) {
    seeded_random random(7);
    for (int round = 0; round != 1500; ++round) {
        const bytes key = some(random, GetParam().key_bytes);
        const bytes nonce = some(random, 12);
        const bytes associated = some(random, random.below(700));
        const bytes plain = some(random, random.below(round % 8 == 0 ? 5000 : 600));
        const std::size_t part_max = round % 3 == 0 ? 20 : 1000;

        gcm reference = gcm::create(key, cipher_direction::encrypt, no_batches).value();
        reference.start(nonce);
        reference.authenticate(associated);
        bytes expected(plain.size());
        reference.pass(plain, expected.data());
        const auto expected_tag = reference.tag();

        gcm ours = gcm::create(key, cipher_direction::encrypt, GetParam().by).value();
        ours.start(nonce);
        in_parts(random, associated, part_max,
                 [&](bytes_view part, std::size_t) { ours.authenticate(part); });
        bytes made(plain.size());
        in_parts(random, plain, part_max,
                 [&](bytes_view part, std::size_t at) { ours.pass(part, made.data() + at); });
        ASSERT_EQ(ours.tag(), expected_tag) << "round " << round;
        ASSERT_EQ(made, expected) << "round " << round;

        // Decrypts in place with each; each rejects another tag.
        for (const auto by : {GetParam().by, no_batches}) {
            gcm back = gcm::create(key, cipher_direction::decrypt, by).value();
            auto wrong_tag = expected_tag;
            wrong_tag[random.below(16)] ^= std::byte{1};
            for (const bool is_right : {false, true}) {
                bytes text = made;
                back.start(nonce);
                back.authenticate(associated);
                back.pass(text, text.data());
                ASSERT_EQ(back.has_tag(is_right ? expected_tag : wrong_tag), is_right);
                ASSERT_EQ(text, plain) << "round " << round;
            }
        }
    }
}

// The last example in the GCM specification with both kinds of data and a nonce of 12 bytes.
TEST_P(both_gcms, give_the_results_of_the_specification) {
    const bool is_128 = GetParam().key_bytes == 16;
    bytes key = from_hex("feffe9928665731c6d6a8f9467308308");
    if (not is_128) key.insert(key.end(), key.begin(), key.begin() + 16);
    const bytes nonce = from_hex("cafebabefacedbaddecaf888");
    const bytes associated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    const bytes plain = from_hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
        "b16aedf5aa0de657ba637b39");
    const bytes tag =
        from_hex(is_128 ? "5bc94fbc3221a5db94fae95ae7121a47" : "76fc6ece0f4e1768cddf8853bb2d551b");
    for (const auto by : {GetParam().by, no_batches}) {
        gcm cipher = gcm::create(key, cipher_direction::encrypt, by).value();
        cipher.start(nonce);
        cipher.authenticate(associated);
        bytes made(plain.size());
        cipher.pass(plain, made.data());
        EXPECT_EQ(bytes_view(cipher.tag()), bytes_view(tag));
        const bytes first =
            from_hex(is_128 ? "42831ec2217774244b7221b784d0d49c" : "522dc1f099567d07f47f37a32a84427d");
        EXPECT_EQ(*bytes_view(made).first(16), bytes_view(first));
    }
}

// A message has fewer than 2^32 blocks, but the counter may begin anywhere within a part.
TEST_P(both_gcms, continue_their_block_counter_over_a_long_message) {
    const bytes key(GetParam().key_bytes, std::byte{7});
    const bytes nonce(12, std::byte{9});
    const bytes plain(3'000'017, std::byte{0x3c});
    std::vector<bytes> made;
    std::vector<gcm::tag_type> tags;
    for (const auto by : {GetParam().by, no_batches}) {
        gcm cipher = gcm::create(key, cipher_direction::encrypt, by).value();
        cipher.start(nonce);
        cipher.authenticate(plain);
        made.emplace_back(plain.size());
        cipher.pass(plain, made.back().data());
        tags.push_back(cipher.tag());
    }
    EXPECT_TRUE(made[0] == made[1]);
    EXPECT_EQ(tags[0], tags[1]);
}

INSTANTIATE_TEST_SUITE_P(keys, both_gcms,
                         testing::Values(make_of_gcm{gcm_batches::by_two(), "by_two", 16},
                                         make_of_gcm{gcm_batches::by_two(), "by_two", 32},
                                         make_of_gcm{gcm_batches::by_four(), "by_four", 16},
                                         make_of_gcm{gcm_batches::by_four(), "by_four", 32}),
                         [](const auto& which) {
                             return std::string(which.param.name) + "_with_" +
                                    std::to_string(which.param.key_bytes * 8) + "_bits";
                         });

}  // namespace
}  // namespace sluice::smb::auth::detail
