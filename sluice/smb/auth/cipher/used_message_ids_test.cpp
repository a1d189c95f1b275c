#include "sluice/smb/auth/cipher/used_message_ids.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth {
namespace {

using claim_result = used_message_ids::claim_result;

TEST(used_message_ids, grant_each_id_once_in_any_order) {
    seeded_random random(1);
    for (int round = 0; round != 50; ++round) {
        used_message_ids ids;
        std::set<std::uint64_t> used;
        for (int i = 0; i != 2000; ++i) {
            const std::uint64_t first = random.below(500);
            const std::uint64_t count = 1 + random.below(4);
            bool is_free = true;
            for (std::uint64_t id = first; id != first + count; ++id)
                is_free = is_free and not used.contains(id);
            ASSERT_EQ(ids.claim(first, count), is_free ? claim_result::fresh : claim_result::used)
                << first << " " << count;
            if (not is_free) continue;
            for (std::uint64_t id = first; id != first + count; ++id)
                used.insert(id);
        }
    }
}

TEST(used_message_ids, keep_no_list_of_ids_claimed_in_order) {
    used_message_ids ids;
    for (std::uint64_t id = 0; id != 100'000; id += 16)
        ASSERT_EQ(ids.claim(id, 16), claim_result::fresh);
    EXPECT_EQ(ids.gaps(), 0U);
    EXPECT_EQ(ids.claim(99'990, 1), claim_result::used);
}

TEST(used_message_ids, remember_the_id_of_a_request_that_waits_for_long) {
    used_message_ids ids;
    ASSERT_EQ(ids.claim(4, 1), claim_result::fresh);
    for (std::uint64_t id = 6; id != 1'000'000; ++id)
        ASSERT_EQ(ids.claim(id, 1), claim_result::fresh);
    EXPECT_EQ(ids.claim(5, 1), claim_result::fresh);
    EXPECT_EQ(ids.claim(5, 1), claim_result::used);
}

TEST(used_message_ids, reject_ids_in_dropped_gaps) {
    used_message_ids ids;
    for (std::uint64_t id = 1; id < 10 * limits::unsigned_gaps_max; id += 2)
        ASSERT_EQ(ids.claim(id, 1), claim_result::fresh);
    EXPECT_EQ(ids.gaps(), limits::unsigned_gaps_max);
    EXPECT_EQ(ids.claim(0, 1), claim_result::unknown);
    EXPECT_EQ(ids.claim(1, 1), claim_result::unknown) << "used, but its gap was dropped";
    EXPECT_EQ(ids.claim(10 * limits::unsigned_gaps_max - 2, 1), claim_result::fresh);
}

TEST(used_message_ids, reject_ids_outside_of_their_range) {
    used_message_ids ids({.first = 5, .end = 8});
    EXPECT_EQ(ids.claim(4, 1), claim_result::unknown);
    EXPECT_EQ(ids.claim(7, 2), claim_result::unknown);
    EXPECT_EQ(ids.claim(8, 1), claim_result::unknown);
    EXPECT_EQ(ids.claim(~std::uint64_t{0}, 1), claim_result::unknown);
    EXPECT_EQ(ids.claim(5, 3), claim_result::fresh);
    EXPECT_EQ(ids.claim(6, 1), claim_result::used);
}

TEST(used_message_ids, make_a_signer_reject_ids_of_other_signers_of_the_key) {
    auto with = signer::create(signing_algorithm::aes_gmac, secret_bytes<16>(),
                               used_message_ids({.first = 5, .end = 6}))
                    .value();
    const bytes_view message;
    EXPECT_FALSE(with.sign(std::span(&message, 1), {.message_id = 4}));
    EXPECT_TRUE(with.sign(std::span(&message, 1), {.message_id = 5}));
}

TEST(signer_death, a_gmac_nonce_requested_twice_aborts) {
    auto with = signer::create(signing_algorithm::aes_gmac, secret_bytes<16>()).value();
    const bytes_view message;
    ASSERT_TRUE(with.sign(std::span(&message, 1), {.message_id = 7}));
    ASSERT_TRUE(with.sign(std::span(&message, 1), {.message_id = 7, .is_cancel = true}));
    EXPECT_DEATH((void)with.sign(std::span(&message, 1), {.message_id = 7}), "nonce");
    EXPECT_DEATH((void)with.sign(std::span(&message, 1), {.message_id = 7, .is_cancel = true}), "nonce");
}

}  // namespace
}  // namespace sluice::smb::auth
