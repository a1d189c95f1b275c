#include "sluice/cli/doctor/running_servers.hpp"

#include <gtest/gtest.h>

#include "sluice/cli/serve/server_name.hpp"

namespace sluice::cli::doctor {
namespace {

using io::socket_address;

TEST(doctor_servers, server_without_a_configured_name_has_that_of_the_host) {
    serve_options options;
    EXPECT_EQ(this_server(options, {}).name, default_server_name());
    options.name = "NAS";
    EXPECT_EQ(this_server(options, {}).name, "NAS");
}

TEST(doctor_servers, address_belongs_to_the_server_that_listens_there) {
    const running_server specific{.name = {}, .addresses = {"192.0.2.1:445", "not an address"}, .paths = {}};
    EXPECT_TRUE(listens_at(specific, socket_address::ip("192.0.2.1", 445).value()));
    EXPECT_FALSE(listens_at(specific, socket_address::ip("192.0.2.2", 445).value()));
    EXPECT_FALSE(listens_at(specific, socket_address::ip("192.0.2.1", 1445).value()));
    const running_server general{.name = {}, .addresses = {"[::]:445"}, .paths = {}};
    EXPECT_TRUE(listens_at(general, socket_address::ip("192.0.2.1", 445).value()));
    EXPECT_FALSE(listens_at(general, socket_address::ip("192.0.2.1", 446).value()));
}

}  // namespace
}  // namespace sluice::cli::doctor
