#include "sluice/smb/server/report/domain_names.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

TEST(domain_names, keep_the_number_of_each_name) {
    domain_names names;
    const std::uint32_t first = names.number_of("files");
    EXPECT_NE(first, 0U);
    EXPECT_NE(names.number_of("other"), first);
    EXPECT_EQ(names.number_of("files"), first);
    EXPECT_EQ(names.name_of(first), "files");
    EXPECT_EQ(names.name_of(0), "");
    EXPECT_EQ(names.name_of(3), "");
}

}  // namespace
}  // namespace sluice::smb::server
