#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <variant>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The recycle bin as clients see it.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
namespace fs = std::filesystem;
using wire::command;
using wire::create_disposition;
using wire::file_information_class;
using wire::lease_state;
using wire::nt_status;

// Another server of the same directory.
class other_server final : public server::peer_servers {
public:
    std::unique_ptr<server::peer_file> file(const vfs::file_key&) override {
        return std::make_unique<seen_file>(*this);
    }
    std::function<void()> before_raise;  // called once
    unsigned open_for_claims = 0;        // how often it still has a file open when it is claimed

private:
    class seen_file final : public server::peer_file {
    public:
        explicit seen_file(other_server& by) noexcept : by_(by) {}
        result<server::share_mode_lock_byte> raise(server::share_mode_lock_byte,
                                                   server::share_mode_lock_byte) noexcept override {
            if (const auto act = std::exchange(by_.before_raise, nullptr)) act();
            return server::share_mode_lock_byte::none;
        }
        void lower(server::share_mode_lock_byte) noexcept override {}
        result<void> claim_exclusively() noexcept override {
            if (by_.open_for_claims == 0) return {};
            --by_.open_for_claims;
            return failure({EBUSY, "claim"});
        }
        void end_exclusive_claim() noexcept override {}
        bool lock(const sync::byte_range&, server::peer_lock) noexcept override { return true; }
        bool is_lockable(const sync::byte_range&, server::peer_lock) noexcept override { return true; }

    private:
        other_server& by_;
    };
};

class recycle_bin : public testing::Test {
protected:
    explicit recycle_bin(server::peer_servers* peers = nullptr)
        : world_(io::simulation_options{.seed = 1}, 1, nullptr, peers) {
        std::string name = (fs::temp_directory_path() / "sluice-recycle-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
        serve(vfs::recycle_rules{});
        client_ = connect();
        other_ = connect();
    }
    ~recycle_bin() override {
        client_.reset();
        other_.reset();
        world_.stop();
        fs::remove_all(root_);
    }

    void serve(std::optional<vfs::recycle_rules> rules) {
        std::vector<server::share_configuration> shares(1);
        shares.front().name = "files";
        shares.front().source = root_.string();
        shares.front().volume =
            vfs::host_volume::open(*world_.loop, root_.c_str(), {.recycle = std::move(rules)}).value();
        world_.server->replace_shares(std::move(shares));
    }
    [[nodiscard]] std::unique_ptr<compliant_client> connect() {
        auto fresh = std::make_unique<compliant_client>(world_, next_seed_++);
        EXPECT_EQ(fresh->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(fresh->connect_tree("files"), nt_status::success);
        return fresh;
    }
    [[nodiscard]] static wire::create_args that_opens(create_disposition how, bool deletes = false) {
        auto args = compliant_client::for_everything();
        args.disposition = how;
        if (deletes) args.options = wire::create_options::delete_on_close;
        return args;
    }
    void close(compliant_client& by, const wire::file_id& file) {
        EXPECT_EQ(by.call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    }
    // Not by a client: the simulated loop does not wait for the thread that may write to the disk.
    void put(const std::string& name, std::string_view content) const {
        std::ofstream(root_ / name) << content;
    }
    nt_status set(compliant_client& by, const wire::file_id& file, file_information_class what,
                  std::span<const std::byte> input) {
        return by
            .call(command::set_info,
                  wire::set_info_args{
                      .information_class = static_cast<std::uint8_t>(what), .file = file, .input = input})
            .status();
    }
    nt_status rename_over(std::string_view from, std::string_view to) {
        const auto opened = client_->create(from, that_opens(create_disposition::open));
        std::vector<std::byte> room(256);
        byte_writer writer{mutable_bytes(room)};
        EXPECT_TRUE(
            encode(writer, wire::rename_information{.replace_if_exists = true, .target = std::string(to)}));
        const nt_status done = set(*client_, opened.file, file_information_class::rename, *writer.finish());
        close(*client_, opened.file);
        return done;
    }
    void delete_file(compliant_client& by, std::string_view name) {
        close(by, by.create(name, that_opens(create_disposition::open, true)).file);
    }
    [[nodiscard]] fs::path in_bin(const std::string& name) const {
        return root_ / ".recycle" / std::to_string(::geteuid()) / name;
    }
    [[nodiscard]] static std::string content(const fs::path& of) {
        std::ifstream file(of);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    world world_;
    fs::path root_;
    std::uint64_t next_seed_ = 1;
    std::unique_ptr<compliant_client> client_;
    std::unique_ptr<compliant_client> other_;
};

TEST_F(recycle_bin, receives_a_file_whose_last_open_deletes_it) {
    put("f", "data");
    const auto first = client_->create("f", that_opens(create_disposition::open, true));
    const auto second = other_->create("f", that_opens(create_disposition::open));
    close(*client_, first.file);
    EXPECT_TRUE(fs::exists(root_ / "f")) << "another open keeps it";
    close(*other_, second.file);
    EXPECT_FALSE(fs::exists(root_ / "f"));
    EXPECT_EQ(content(in_bin("f")), "data");
}

TEST_F(recycle_bin, receives_a_file_by_a_disposition) {
    put("f", "data");
    const auto opened = client_->create("f", that_opens(create_disposition::open));
    const std::array<std::byte, 1> yes{std::byte{1}};
    EXPECT_EQ(set(*client_, opened.file, file_information_class::disposition, yes), nt_status::success);
    close(*client_, opened.file);
    EXPECT_FALSE(fs::exists(root_ / "f"));
    EXPECT_EQ(content(in_bin("f")), "data");
}

TEST_F(recycle_bin, receives_a_file_that_a_rename_replaces) {
    put("f", "old");
    put("g", "new");
    EXPECT_EQ(rename_over("g", "f"), nt_status::success);
    EXPECT_EQ(content(root_ / "f"), "new");
    EXPECT_EQ(content(in_bin("f")), "old");
    // Both names can be opened.
    close(*client_, client_->create("f", that_opens(create_disposition::open)).file);
    delete_file(*client_, ".recycle\\" + std::to_string(::geteuid()) + "\\f");
    EXPECT_FALSE(fs::exists(in_bin("f")));
    EXPECT_EQ(content(root_ / "f"), "new");
}

TEST_F(recycle_bin, does_not_receive_a_stream_that_is_deleted) {
    put("f", "data");
    const auto stream = client_->create("f:stream", that_opens(create_disposition::create, true));
    close(*client_, stream.file);
    EXPECT_TRUE(fs::is_empty(root_ / ".recycle"));
    EXPECT_EQ(content(root_ / "f"), "data");
}

TEST_F(recycle_bin, keeps_the_lease_of_a_file_until_it_is_deleted) {
    put("f", "data");
    auto leased = that_opens(create_disposition::open);
    leased.oplock_level = wire::oplock_level::lease;
    leased.contexts.lease = wire::lease{.key = {}, .state = lease_state::read | lease_state::handle};
    leased.contexts.lease->key.bytes[0] = std::byte{1};
    const auto held = other_->create("f", leased);
    ASSERT_EQ(held.contexts.lease->state, lease_state::read | lease_state::handle);
    const auto deleting = client_->create("f", that_opens(create_disposition::open));
    const std::array<std::byte, 1> yes{std::byte{1}};
    (void)client_->send(command::set_info, wire::set_info_args{.information_class = static_cast<std::uint8_t>(
                                                                   file_information_class::disposition),
                                                               .file = deleting.file,
                                                               .input = yes});
    EXPECT_TRUE(other_->is_answered(wire::notification_message_id)) << "the handle lease is broken";
    close(*other_, held.file);
    close(*client_, deleting.file);
    EXPECT_FALSE(fs::exists(root_ / "f"));
    EXPECT_EQ(content(in_bin("f")), "data");
}

TEST_F(recycle_bin, is_shown_to_a_watch_of_the_directory_as_a_removal) {
    put("f", "data");
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    how.desired_access = wire::access_mask::list_directory | wire::access_mask::read_attributes;
    const auto watched = other_->create("", how);
    const auto id = other_->send(
        command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1000, .file = watched.file, .filter = wire::completion_filter::file_name});
    delete_file(*client_, "f");
    const auto answer = other_->answer_to(id);
    EXPECT_EQ(answer.status(), nt_status::success);
}

TEST_F(recycle_bin, gives_every_deleted_file_a_name_of_its_own_whatever_clients_do) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto one_of = [&](unsigned count) {
            return std::uniform_int_distribution<unsigned>(0, count - 1)(random);
        };
        fs::remove_all(root_ / ".recycle");
        std::multiset<std::string> expected;
        for (unsigned i = 0; i < 30; ++i) {
            const std::string name = "f" + std::to_string(one_of(2));
            const std::string other = name == "f0" ? "f1" : "f0";
            const bool exists = fs::exists(root_ / name);
            if (one_of(3) != 0) {
                if (not exists) put(name, std::to_string(seed) + "/" + std::to_string(i));
            } else if (exists and one_of(2) == 0) {
                expected.insert(content(root_ / name));
                delete_file(one_of(2) == 0 ? *client_ : *other_, name);
            } else if (exists) {
                if (fs::exists(root_ / other)) expected.insert(content(root_ / other));
                EXPECT_EQ(rename_over(name, other), nt_status::success);
            }
        }
        std::multiset<std::string> found;
        if (fs::exists(in_bin("")))
            for (const auto& each : fs::directory_iterator(in_bin("")))
                found.insert(content(each.path()));
        EXPECT_EQ(found, expected);
    }
}

class recycle_bin_of_two_servers : public recycle_bin {
protected:
    recycle_bin_of_two_servers() : recycle_bin(&peer_) {}
    void delete_at_other_server(const std::string& name) const {
        fs::create_directories(in_bin(""));
        fs::rename(root_ / name, in_bin(name));
    }
    static other_server peer_;
};
other_server recycle_bin_of_two_servers::peer_;

TEST_F(recycle_bin_of_two_servers, receives_a_file_when_the_other_has_closed_it) {
    put("f", "data");
    const auto opened = client_->create("f", that_opens(create_disposition::open, true));
    peer_.open_for_claims = 10;
    close(*client_, opened.file);
    EXPECT_TRUE(fs::exists(root_ / "f"));
    world_.run();
    EXPECT_FALSE(fs::exists(root_ / "f"));
    EXPECT_EQ(content(in_bin("f")), "data");
}

TEST_F(recycle_bin_of_two_servers, has_no_file_that_a_client_opens_by_its_former_name) {
    put("f", "data");
    peer_.before_raise = [this] { delete_at_other_server("f"); };
    EXPECT_EQ(client_->try_create("f", that_opens(create_disposition::open)),
              nt_status::object_name_not_found);
    EXPECT_EQ(content(in_bin("f")), "data");
    put("f", "new");
    peer_.before_raise = [this] { delete_at_other_server("f"); };
    const auto made = client_->create("f", that_opens(create_disposition::open_if));
    EXPECT_EQ(made.action, wire::create_action::created);
    EXPECT_EQ(content(root_ / "f"), "");
}

TEST_F(recycle_bin_of_two_servers, has_no_stream_that_a_client_opens_by_the_former_name_of_its_file) {
    put("f", "data");
    close(*client_, client_->create("f:s", that_opens(create_disposition::create)).file);
    peer_.before_raise = [this] { delete_at_other_server("f"); };
    EXPECT_EQ(client_->try_create("f:s", that_opens(create_disposition::open)),
              nt_status::object_name_not_found);
}

TEST_F(recycle_bin_of_two_servers, has_no_file_that_is_opened_through_a_share_without_a_bin) {
    serve(std::nullopt);
    client_ = connect();
    put("f", "data");
    peer_.before_raise = [this] { delete_at_other_server("f"); };
    EXPECT_EQ(client_->try_create("f", that_opens(create_disposition::open)),
              nt_status::object_name_not_found);
    EXPECT_EQ(content(in_bin("f")), "data");
}

}  // namespace
}  // namespace sluice::smb_simulation
