#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "sluice/smb/wire/nt_status.hpp"
#include "tests/smb_simulation/polite_client.hpp"

namespace sluice::smb_simulation {

/// A server, and a client that has logged on and is connected to the share "files".
class with_one_client : public testing::Test {
protected:
    /// `adjust` changes the server's configuration before it starts.
    explicit with_one_client(void (*adjust)(smb::server::server_configuration&) = nullptr)
        : where_(io::simulation_options{.seed = 1}, 1, adjust),
          first_(std::make_unique<polite_client>(where_)) {
        EXPECT_EQ(first_->log_on("u", "p"), smb::wire::nt_status::success);
        EXPECT_EQ(first_->connect_tree("files"), smb::wire::nt_status::success);
    }
    ~with_one_client() override {
        first_.reset();
        where_.stop();
    }

    world where_;
    std::unique_ptr<polite_client> first_;
};

}  // namespace sluice::smb_simulation
