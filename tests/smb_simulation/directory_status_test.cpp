#include <functional>
#include <utility>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Changes of a directory's names between the lookup of a CREATE and its reply.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using namespace std::chrono_literals;
using wire::command;
using wire::nt_status;

// A volume that calls a function after the next lookup of "d".
class interrupted_volume final : public vfs::volume {
public:
    interrupted_volume(io::io_multiplexer& loop, const clock_source& clock) : inner_(loop, clock) {}

    [[nodiscard]] vfs::memory_volume& inner() noexcept { return inner_; }
    std::function<void()> after_lookup;

    [[nodiscard]] const vfs::volume_features& features() const noexcept override { return inner_.features(); }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override { return inner_.identity(); }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override { return inner_.space(); }
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override {
        return inner_.find(path, links);
    }
    [[nodiscard]] result<vfs::found_node> find_with_status(std::string_view path, vfs::follow_links links,
                                                           vfs::data_access soon,
                                                           vfs::name_match match) noexcept override {
        auto found = inner_.find_with_status(path, links, soon, match);
        if (path == "d" and after_lookup) std::exchange(after_lookup, {})();
        return found;
    }
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override {
        return inner_.create(path, wanted);
    }
    [[nodiscard]] vfs::fs_domain& domain() noexcept override { return inner_.domain(); }
    void serve_on(std::span<io::io_multiplexer* const> loops) override { inner_.serve_on(loops); }

private:
    vfs::memory_volume inner_;
};

class directory_status : public testing::Test {
protected:
    directory_status() : world_(io::simulation_options{.seed = 1}, 1) {
        auto volume = std::make_unique<interrupted_volume>(*world_.loop, world_.clock);
        volume_ = volume.get();
        std::vector<server::share_configuration> shares(1);
        shares.back().name = "files";
        shares.back().volume = std::move(volume);
        world_.server->replace_shares(std::move(shares));
        client_ = std::make_unique<compliant_client>(world_);
        EXPECT_EQ(client_->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(client_->connect_tree("files"), nt_status::success);
    }
    ~directory_status() override {
        client_.reset();
        world_.stop();
    }
    [[nodiscard]] wire::create_reply open_directory() {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::directory_file;
        const wire::create_reply opened = client_->create("d", how);
        EXPECT_EQ(client_->call(command::close, wire::close_args{.file = opened.file}).status(),
                  nt_status::success);
        return opened;
    }

    world world_;
    interrupted_volume* volume_ = nullptr;
    std::unique_ptr<compliant_client> client_;
};

TEST_F(directory_status, is_asked_for_again_after_a_change_of_names_during_a_create) {
    (void)open_directory();
    volume_->after_lookup = [this] {
        world_.clock.advance(1s);
        ASSERT_TRUE(volume_->inner().create("d/x", {}));
        world_.server->context().names_of(*volume_, false).record_change();
    };
    const wire::filetime begun = wire::filetime_of(world_.clock.utc_now());
    EXPECT_GT(open_directory().information.last_write_time, begun);
}

}  // namespace
}  // namespace sluice::smb_simulation
