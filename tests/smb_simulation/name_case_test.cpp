#include <filesystem>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Requests that would create a name that exists in another case. The server first searches for the
// exact name.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::create_disposition;
using wire::nt_status;

// A directory of the host with the file "Name", as "files" and, read-only, as "readonly".
class name_in_another_case : public testing::Test {
protected:
    name_in_another_case() : world_(io::simulation_options{.seed = 1}, 1) {
        std::string name = (std::filesystem::temp_directory_path() / "sluice-case-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
        std::vector<server::share_configuration> shares;
        for (const bool read_only : {false, true}) {
            server::share_configuration one;
            one.name = read_only ? "readonly" : "files";
            one.source = root_.string();
            one.is_read_only = read_only;
            one.volume =
                vfs::host_volume::open(*world_.loop, root_.c_str(), {.read_only = read_only}).value();
            shares.push_back(std::move(one));
        }
        world_.server->replace_shares(std::move(shares));
        client_ = connect("files");
        close(client_->create("Name").file);
    }
    ~name_in_another_case() override {
        client_.reset();
        world_.stop();
        std::filesystem::remove_all(root_);
    }

    std::unique_ptr<compliant_client> connect(std::string_view share) {
        auto fresh = std::make_unique<compliant_client>(world_, next_seed_++);
        EXPECT_EQ(fresh->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(fresh->connect_tree(share), nt_status::success);
        return fresh;
    }
    static wire::create_args with(create_disposition disposition) {
        auto how = compliant_client::for_everything();
        how.disposition = disposition;
        return how;
    }
    void close(const wire::file_id& file) {
        EXPECT_EQ(client_->call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
    }

    world world_;
    std::filesystem::path root_;
    std::uint64_t next_seed_ = 1;
    std::unique_ptr<compliant_client> client_;
};

TEST_F(name_in_another_case, is_opened_by_requests_that_would_create_it) {
    for (const auto disposition :
         {create_disposition::open_if, create_disposition::overwrite_if, create_disposition::supersede}) {
        const auto opened = client_->create("nAME", with(disposition));
        EXPECT_NE(opened.action, wire::create_action::created) << static_cast<unsigned>(disposition);
        close(opened.file);
    }
    EXPECT_EQ(files(), 1U);
}

TEST_F(name_in_another_case, collides_with_a_request_to_create_it) {
    EXPECT_EQ(client_->try_create("nAME", with(create_disposition::create)),
              nt_status::object_name_collision);
    EXPECT_EQ(files(), 1U);
}

TEST_F(name_in_another_case, is_reported_as_being_deleted) {
    auto how = with(create_disposition::open);
    how.options = wire::create_options::delete_on_close;
    const auto first = client_->create("Name", how);
    const auto second = client_->create("Name", with(create_disposition::open));
    close(first.file);
    EXPECT_EQ(client_->try_create("nAME", with(create_disposition::create)), nt_status::delete_pending);
    EXPECT_EQ(client_->try_create("nAME", with(create_disposition::open_if)), nt_status::delete_pending);
    close(second.file);
    EXPECT_EQ(files(), 0U);
}

TEST_F(name_in_another_case, is_opened_in_a_read_only_share) {
    const auto reader = connect("readonly");
    auto how = with(create_disposition::open_if);
    how.desired_access = wire::file_generic_read;
    EXPECT_EQ(reader->try_create("nAME", how), nt_status::success);
    EXPECT_NE(reader->try_create("missing", how), nt_status::success);
}

TEST_F(name_in_another_case, is_opened_with_the_lease_of_its_other_opens) {
    auto how = with(create_disposition::open_if);
    how.oplock_level = wire::oplock_level::lease;
    how.contexts.lease = wire::lease{.key = {}, .state = wire::lease_state::read};
    how.contexts.lease->key.bytes[0] = std::byte{7};
    EXPECT_EQ(client_->try_create("Name", how), nt_status::success);
    EXPECT_EQ(client_->try_create("nAME", how), nt_status::success);
    EXPECT_EQ(client_->try_create("other", how), nt_status::invalid_parameter)
        << "the key belongs to another file";
    EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace sluice::smb_simulation
