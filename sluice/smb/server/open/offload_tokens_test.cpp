#include "sluice/smb/server/open/offload_tokens.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using steady_time = clock_source::steady_time;
using std::chrono::nanoseconds;

class offload_tokens_test : public testing::Test {
protected:
    // The source of a token, if it is read at that time.
    [[nodiscard]] std::optional<offload_source> read(const wire::offload_token& token,
                                                     std::uint64_t at = 0) const {
        return tokens_.read(token, steady_time(nanoseconds(at)));
    }

    predictable_secrets_for_simulation random_{1};
    offload_tokens tokens_{random_};
    const offload_source source_{.file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                                 .offset = 3,
                                 .length = 4,
                                 .changes = 5,
                                 .modified = 6,
                                 .ends_at = steady_time(nanoseconds(7))};
};

TEST_F(offload_tokens_test, stand_for_their_source_until_it_ends) {
    const wire::offload_token token = tokens_.make(source_);
    EXPECT_EQ(read(token, 6), source_);
    EXPECT_EQ(read(token, 7), std::nullopt);
}

TEST_F(offload_tokens_test, with_any_other_bit_stand_for_nothing) {
    const wire::offload_token token = tokens_.make(source_);
    for (std::size_t bit = 0; bit != 8 * token.id.size(); ++bit) {
        wire::offload_token forged = token;
        forged.id[bit / 8] ^= std::byte(1U << bit % 8);
        ASSERT_EQ(read(forged), std::nullopt) << bit;
    }
    EXPECT_EQ(read({}), std::nullopt);
    EXPECT_EQ(read({.type = wire::offload_token::type_zero_data, .id = token.id}), std::nullopt);
}

TEST_F(offload_tokens_test, of_another_server_stand_for_nothing) {
    EXPECT_EQ(read(offload_tokens(random_).make(source_)), std::nullopt);
}

}  // namespace
}  // namespace sluice::smb::server
