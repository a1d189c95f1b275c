#include "sluice/smb/server/session/configuration.hpp"

#include <gtest/gtest.h>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

namespace sluice::smb::server {
namespace {

class share_configuration_test : public testing::Test {
protected:
    [[nodiscard]] share_configuration share() {
        share_configuration made;
        made.name = "files";
        made.source = "/srv";
        made.volume = volume_;
        return made;
    }
    [[nodiscard]] std::shared_ptr<vfs::volume> new_volume() {
        return std::make_shared<vfs::memory_volume>(*loop_, clock_);
    }

private:
    const std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    const system_clock_source clock_;
    const std::shared_ptr<vfs::volume> volume_ = new_volume();
};

TEST_F(share_configuration_test, is_the_same_with_the_same_volume_and_settings) {
    EXPECT_TRUE(share().is_same_as(share()));
}

// A directory that has replaced the one that was shared has another volume.
TEST_F(share_configuration_test, differs_if_its_path_names_another_volume) {
    share_configuration other = share();
    other.volume = new_volume();
    EXPECT_FALSE(share().is_same_as(other));
}

TEST_F(share_configuration_test, differs_in_each_setting) {
    const std::vector<void (*)(share_configuration&)> changes{
        [](share_configuration& of) { of.comment = "c"; },
        [](share_configuration& of) { of.is_read_only = true; },
        [](share_configuration& of) { of.is_hidden = true; },
        [](share_configuration& of) { of.hides_unreadable = true; },
        [](share_configuration& of) { of.encryption = protection::required; },
        [](share_configuration& of) { of.users = {"u"}; },
        [](share_configuration& of) { of.read_only_users = {"u"}; },
        [](share_configuration& of) { of.auditors = {"u"}; }};
    for (const auto change : changes) {
        share_configuration other = share();
        change(other);
        EXPECT_FALSE(share().is_same_as(other));
    }
}

}  // namespace
}  // namespace sluice::smb::server
