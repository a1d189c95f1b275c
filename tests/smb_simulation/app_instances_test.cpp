#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// An application that continues, or runs again, on another client takes over its files ([MS-SMB2]
// 3.3.5.9.13).

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

void share_files_twice(server::server_configuration& of) {
    server::share_configuration other;
    other.name = "other";
    other.volume = of.shares.front().volume;
    of.shares.push_back(std::move(other));
}

class app_instances : public served {
protected:
    app_instances() : served(share_files_twice), second_(where_, 2) {
        EXPECT_EQ(second_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(second_.connect_tree("files"), nt_status::success);
    }

    static wire::create_args alone(std::optional<std::byte> application = {}) {
        auto how = compliant_client::for_everything();
        how.share_access = wire::share_access::none;
        if (application) how.contexts.app_instance_id.emplace().bytes[0] = *application;
        return how;
    }
    std::uint64_t send_write(const wire::create_reply& to) {
        static constexpr std::array<std::byte, 4> some{};
        return client().send(command::write, wire::write_args{.file = to.file, .data = some});
    }
    nt_status write(const wire::create_reply& to) { return client().answer_to(send_write(to)).status(); }

    static constexpr std::byte some_id{7};
    static constexpr std::byte zero_id{0};
    compliant_client second_;
};

TEST_F(app_instances, with_the_same_id_on_another_client_close_the_earlier_open) {
    const auto before = client().create("f", alone(some_id));
    EXPECT_EQ(second_.try_create("f", alone(some_id)), nt_status::success);
    EXPECT_EQ(write(before), nt_status::file_closed);
}

TEST_F(app_instances, find_the_file_by_its_name_in_any_case) {
    const auto before = client().create("file", alone(some_id));
    EXPECT_EQ(second_.try_create("FILE", alone(some_id)), nt_status::success);
    EXPECT_EQ(write(before), nt_status::file_closed);
}

TEST_F(app_instances, wait_for_the_writes_of_the_opens_that_they_close) {
    auto how = compliant_client::for_everything();
    how.contexts.app_instance_id.emplace().bytes[0] = some_id;
    const auto before = client().create("f", how);
    dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume())
        .set_faults({.seed = 3, .delay_max = std::chrono::seconds(1000)});
    const std::uint64_t writing = send_write(before);
    const std::uint64_t opening = second_.send_create("f", how);
    EXPECT_FALSE(second_.is_answered(opening)) << "a late write would spoil what the new instance writes";
    EXPECT_EQ(second_.answer_to(opening).status(), nt_status::success);
    EXPECT_TRUE(client().is_answered(writing));
}

TEST_F(app_instances, with_an_id_of_zeros_close_no_open_without_an_id) {
    const auto before = client().create("f", alone());
    EXPECT_EQ(second_.try_create("f", alone(zero_id)), nt_status::sharing_violation);
    EXPECT_EQ(second_.try_create("another", alone(zero_id)), nt_status::success);
    EXPECT_EQ(second_.try_create("no\\such", alone(zero_id)), nt_status::object_path_not_found);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, without_an_id_close_no_open_with_an_id_of_zeros) {
    const auto before = client().create("f", alone(zero_id));
    EXPECT_EQ(second_.try_create("f", alone()), nt_status::sharing_violation);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, with_an_id_of_zeros_close_no_open_with_an_id_of_zeros) {
    const auto before = client().create("f", alone(zero_id));
    EXPECT_EQ(second_.try_create("f", alone(zero_id)), nt_status::sharing_violation);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, with_another_id_close_nothing) {
    const auto before = client().create("f", alone(some_id));
    EXPECT_EQ(second_.try_create("f", alone(std::byte{8})), nt_status::sharing_violation);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, close_no_open_of_another_path) {
    const auto before = client().create("f", alone(some_id));
    EXPECT_EQ(second_.try_create("another", alone(some_id)), nt_status::success);
    EXPECT_EQ(second_.try_create("no\\such\\directory", alone(some_id)), nt_status::object_path_not_found);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, close_no_open_of_the_same_file_in_another_share) {
    const auto before = client().create("f", alone(some_id));
    EXPECT_EQ(second_.connect_tree("other"), nt_status::success);
    EXPECT_EQ(second_.try_create("f", alone(some_id)), nt_status::sharing_violation);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, close_no_open_of_the_same_client) {
    const auto before = client().create("f", alone(some_id));
    EXPECT_EQ(client().try_create("f", alone(some_id)), nt_status::sharing_violation);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, close_nothing_if_the_create_is_refused) {
    const auto before = client().create("f", alone(some_id));
    auto how = alone(some_id);
    how.disposition = wire::create_disposition::create;
    EXPECT_EQ(second_.try_create("f", how), nt_status::object_name_collision);
    how = alone(some_id);
    how.options = wire::create_options::directory_file;
    EXPECT_EQ(second_.try_create("f", how), nt_status::not_a_directory);
    EXPECT_EQ(write(before), nt_status::success);
}

TEST_F(app_instances, create_a_new_file_if_the_earlier_open_removes_its_own) {
    auto how = alone(some_id);
    how.options = wire::create_options::delete_on_close;
    (void)client().create("f", how);
    EXPECT_EQ(second_.create("f", alone(some_id)).action, wire::create_action::created);
}

}  // namespace
}  // namespace sluice::smb_simulation
