#include "sluice/smb/server/operation/app_takeover.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

// [MS-SMB2] 3.3.5.9.13: all of held and fresh version, none, lower, same and higher.
class versions_of_instances : public testing::Test {
protected:
    using version = std::optional<wire::app_instance_version>;
    static bool takes_over(const version& fresh, const version& held) {
        return is_newer({.id = {}, .version = fresh}, {.id = {}, .version = held});
    }
    static constexpr wire::app_instance_version of(std::uint64_t high, std::uint64_t low) {
        return {.high = high, .low = low};
    }
};

TEST_F(versions_of_instances, higher_version_takes_over) {
    EXPECT_TRUE(takes_over(of(2, 1), of(1, 0)));
    EXPECT_TRUE(takes_over(of(2, 0), of(1, 9)));
    EXPECT_TRUE(takes_over(of(1, 2), of(1, 1)));
}

TEST_F(versions_of_instances, same_version_does_not_take_over) {
    EXPECT_FALSE(takes_over(of(2, 0), of(2, 0)));
    EXPECT_FALSE(takes_over(of(0, 0), of(0, 0)));
}

TEST_F(versions_of_instances, lower_version_does_not_take_over) {
    EXPECT_FALSE(takes_over(of(1, 9), of(2, 0)));
    EXPECT_FALSE(takes_over(of(1, 1), of(1, 2)));
}

TEST_F(versions_of_instances, no_version_does_not_take_over_from_any) {
    EXPECT_FALSE(takes_over(std::nullopt, of(0, 0)));
}

TEST_F(versions_of_instances, any_version_takes_over_from_none) {
    EXPECT_TRUE(takes_over(of(0, 0), std::nullopt));
    EXPECT_TRUE(takes_over(std::nullopt, std::nullopt));
}

TEST_F(versions_of_instances, a_version_makes_an_id_of_zeros_the_name_of_an_instance) {
    wire::create_request_contexts asked;
    asked.app_instance_id.emplace();
    EXPECT_FALSE(app_instance_in(wire::dialect::smb_3_1_1, asked));
    asked.app_instance_version.emplace(of(1, 2));
    const auto named = app_instance_in(wire::dialect::smb_3_1_1, asked);
    ASSERT_TRUE(named);
    EXPECT_EQ(named->id, wire::guid{});
    EXPECT_EQ(named->version, of(1, 2));
    EXPECT_FALSE(app_instance_in(wire::dialect::smb_3_0_2, asked)) << "it has no versions";
}

}  // namespace
}  // namespace sluice::smb::server
