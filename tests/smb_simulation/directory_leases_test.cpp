#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/node_names.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Leases of directories, and the changes that break them.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::lease_state;
using wire::nt_status;

constexpr wire::file_information_class renames = wire::file_information_class::rename;
constexpr wire::file_information_class links = wire::file_information_class::link;
constexpr lease_state rh = lease_state::read | lease_state::handle;

[[nodiscard]] wire::lease_key key_of(unsigned char number) {
    wire::lease_key key{};
    key.bytes[0] = std::byte{number};
    return key;
}

[[nodiscard]] wire::create_args with_lease(unsigned char key, std::optional<unsigned char> parent = {}) {
    wire::create_args how = compliant_client::for_everything();
    how.oplock_level = wire::oplock_level::lease;
    wire::lease asked{.key = key_of(key), .state = rh | lease_state::write};
    asked.v2.emplace(wire::lease_v2_part{});
    if (parent) {
        asked.flags = wire::lease_flags::parent_key_set;
        asked.v2->parent_key = key_of(*parent);
    }
    how.contexts.lease = asked;
    return how;
}

[[nodiscard]] wire::create_args directory_with_lease(unsigned char key) {
    wire::create_args how = with_lease(key);
    how.options = wire::create_options::directory_file;
    // Without the right to delete, which would conflict with renames into the directory.
    how.desired_access = wire::access_mask::list_directory | wire::access_mask::read_attributes;
    return how;
}

class directory_leases : public served {
protected:
    explicit directory_leases(void (*adjust)(server::server_configuration&) = nullptr)
        : served(adjust), other_(std::make_unique<compliant_client>(where_, 2)) {
        EXPECT_EQ(other_->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(other_->connect_tree("files"), nt_status::success);
        held_ = client().create("d", directory_with_lease(1));
    }
    ~directory_leases() override { other_.reset(); }

    [[nodiscard]] vfs::volume& volume() { return server_of_test().context().find_share("files")->volume(); }
    [[nodiscard]] compliant_client& other() noexcept { return *other_; }
    void close(compliant_client& of, const wire::create_reply& opened) {
        EXPECT_EQ(of.call(command::close, wire::close_args{.file = opened.file}).status(),
                  nt_status::success);
    }
    /// Expects that the lease of the directory is broken to `to`; none: that it is not broken.
    void expect_break(std::optional<lease_state> to) {
        pass();
        (void)client().is_answered(0);  // lets the feed deliver, and the server examine
        const bool is_broken = client().is_answered(wire::notification_message_id);
        EXPECT_EQ(is_broken, to.has_value());
        if (not is_broken) return;
        const auto said = client().answer_to(wire::notification_message_id);
        const auto message = wire::decode_oplock_break_reply(said.message());
        ASSERT_TRUE(message);
        const auto* const broken = std::get_if<wire::lease_break_notification>(&message->sent);
        ASSERT_NE(broken, nullptr);
        EXPECT_EQ(broken->key, key_of(1));
        if (to) EXPECT_EQ(broken->new_state, *to);
    }
    /// Lets time pass, so that a change after it leaves another change time.
    void pass() { where_.clock.advance(std::chrono::seconds(1)); }
    /// Gives an open file another name, or one more.
    void set_name(compliant_client& by, const wire::file_id& file, std::string_view to,
                  wire::file_information_class how) {
        std::vector<std::byte> room(256);
        byte_writer writer{mutable_bytes(room)};
        ASSERT_TRUE(
            encode(writer, wire::rename_information{.replace_if_exists = true, .target = std::string(to)}));
        const wire::set_info_args args{
            .information_class = static_cast<std::uint8_t>(how), .file = file, .input = *writer.finish()};
        EXPECT_EQ(by.call(command::set_info, args).status(), nt_status::success);
    }
    /// The same for a file that is opened for that, by a client that has the directory in its cache
    /// with this key.
    void set_name(compliant_client& by, std::string_view from, std::string_view to,
                  wire::file_information_class how, std::optional<unsigned char> parent) {
        const auto file = by.create(from, with_lease(8, parent));
        set_name(by, file.file, to, how);
        close(by, file);
    }
    /// The client releases the lease, and opens the directory again.
    void renew() {
        const wire::oplock_break_args answer{wire::lease_break{.key = key_of(1), .state = lease_state::none}};
        EXPECT_EQ(client().call(command::oplock_break, answer).status(), nt_status::success);
        EXPECT_EQ(client().create("d", directory_with_lease(1)).contexts.lease->state, rh);
    }
    void write(compliant_client& by, const wire::create_reply& to) {
        const std::vector<std::byte> data(10);
        EXPECT_EQ(by.call(command::write, wire::write_args{.file = to.file, .data = data}).status(),
                  nt_status::success);
    }

    std::unique_ptr<compliant_client> other_;
    wire::create_reply held_;
};

TEST_F(directory_leases, are_granted_without_write_caching) {
    ASSERT_TRUE(held_.contexts.lease);
    EXPECT_EQ(held_.contexts.lease->state, rh);
    EXPECT_EQ(held_.contexts.lease->v2->epoch, 1U);
}

TEST_F(directory_leases, are_granted_to_requests_of_version_2_only) {
    wire::create_args how = directory_with_lease(9);
    how.contexts.lease->v2.reset();
    EXPECT_FALSE(other().create("d", how).contexts.lease);
    wire::create_args oplock = directory_with_lease(9);
    oplock.contexts.lease.reset();
    oplock.oplock_level = wire::oplock_level::batch;
    EXPECT_EQ(other().create("d", oplock).oplock_level, wire::oplock_level::none);
}

TEST_F(directory_leases, are_broken_when_another_client_creates_a_name) {
    (void)other().create("d\\f");
    expect_break(lease_state::none);
}

TEST_F(directory_leases, survive_the_changes_of_their_own_client_that_name_their_key) {
    const auto file = client().create("d\\f", with_lease(2, 1));
    pass();
    write(client(), file);
    expect_break(std::nullopt);
    close(client(), file);
    expect_break(std::nullopt);
    // A file that exists.
    const auto again = client().create("d\\f", with_lease(2, 1));
    write(client(), again);
    close(client(), again);
    expect_break(std::nullopt);
    set_name(client(), "d\\f", "d\\g", renames, 1);
    set_name(client(), "d\\g", "d\\h", links, 1);
    expect_break(std::nullopt);
}

TEST_F(directory_leases, survive_the_replacement_of_a_file_by_their_own_client) {
    close(client(), client().create("d\\f", with_lease(2, 1)));
    pass();
    close(client(), client().create("d\\t", with_lease(3, 1)));
    set_name(client(), "d\\t", "d\\f", renames, 1);
    close(client(), client().create("d\\t", with_lease(4, 1)));
    expect_break(std::nullopt);
}

TEST_F(directory_leases, are_broken_by_renames_of_others) {
    close(client(), client().create("d\\f", with_lease(2, 1)));
    set_name(other(), "d\\f", "d\\g", renames, {});
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_links_of_others) {
    close(client(), client().create("d\\f", with_lease(2, 1)));
    set_name(other(), "d\\f", "d\\g", links, {});
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_their_own_client_without_their_key) {
    (void)client().create("d\\f", with_lease(2));
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_the_close_of_a_written_file_and_not_by_the_write) {
    (void)other().create("d\\f", with_lease(2, 1));
    expect_break(std::nullopt);
    const auto same = client().create("d\\f");
    write(client(), same);
    expect_break(std::nullopt);
    close(client(), same);
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_the_end_of_a_connection_that_has_written) {
    const auto file = other().create("d\\f", with_lease(2, 1));
    close(other(), file);
    compliant_client third(where_, 3);
    ASSERT_EQ(third.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(third.connect_tree("files"), nt_status::success);
    write(third, third.create("d\\f"));
    expect_break(std::nullopt);
    third.close_connection();
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_the_removal_of_a_name) {
    wire::create_args removing = with_lease(2, 1);
    removing.options = wire::create_options::delete_on_close;
    const auto file = other().create("d\\f", removing);
    expect_break(std::nullopt);
    // The last to close it has another directory in its cache.
    const auto last = other().create("d\\f", with_lease(3, 7));
    close(other(), file);
    close(other(), last);
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_other_programs) {
    ASSERT_TRUE(volume().create("d/x", {}));
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_another_program_that_changes_what_a_client_has_made) {
    const auto file = client().create("d\\f", with_lease(2, 1));
    close(client(), file);
    expect_break(std::nullopt);
    where_.clock.advance(std::chrono::seconds(1));
    const auto node = volume().find("d/f", vfs::follow_links::no);
    ASSERT_TRUE(node);
    ASSERT_TRUE((*node)->change({.dos = vfs::dos_attributes::hidden}));
    expect_break(lease_state::none);
}

// The host creates two names at once, one of which the client has removed before; then removes it.
TEST_F(directory_leases, are_broken_again_by_the_removal_of_a_name_that_came_with_another) {
    wire::create_args removing = with_lease(2, 1);
    removing.options = wire::create_options::delete_on_close;
    close(client(), client().create("d\\b", removing));
    expect_break(std::nullopt);
    ASSERT_TRUE(volume().create("d/a", {}));
    const auto made = volume().create("d/b", {});
    ASSERT_TRUE(made);
    expect_break(lease_state::none);
    renew();
    ASSERT_TRUE((*made)->names()->remove());
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_broken_by_a_change_of_another_program_just_before_one_of_their_client) {
    const auto file = client().create("d\\f", with_lease(2, 1));
    expect_break(std::nullopt);
    pass();
    const auto node = volume().find("d/f", vfs::follow_links::no);
    ASSERT_TRUE(node);
    ASSERT_TRUE((*node)->change({.dos = vfs::dos_attributes::hidden}));
    pass();
    set_name(client(), file.file, "d\\g", renames);
    expect_break(lease_state::none);
}

TEST_F(directory_leases, are_not_broken_by_changes_in_other_directories) {
    auto directory = compliant_client::for_everything();
    directory.options = wire::create_options::directory_file;
    (void)other().create("e", directory);
    (void)other().create("e\\f");
    ASSERT_TRUE(volume().create("e/x", {}));
    expect_break(std::nullopt);
}

TEST_F(directory_leases, lose_only_the_handle_when_another_client_does_not_share_the_directory) {
    wire::create_args alone = directory_with_lease(2);
    alone.share_access = wire::share_access::none;
    const std::uint64_t create = other().send_create("d", alone);
    expect_break(lease_state::read);
    close(client(), held_);
    EXPECT_EQ(other().answer_to(create).status(), nt_status::success);
}

TEST_F(directory_leases, end_with_their_share) {
    server_of_test().replace_shares({});
    expect_break(lease_state::none);
}

TEST_F(directory_leases, leave_nothing_behind) {
    server::server_context& host = server_of_test().context();
    EXPECT_TRUE(host.directories.has_any());
    (void)other().create("d\\f");
    close(client(), held_);
    (void)client().is_answered(0);  // lets the watch go
    EXPECT_FALSE(host.directories.has_any());
}

class without_directory_leases : public directory_leases {
protected:
    without_directory_leases()
        : directory_leases([](server::server_configuration& how) { how.has_directory_leases = false; }) {}
};

TEST_F(without_directory_leases, directories_get_none) {
    EXPECT_FALSE(held_.contexts.lease);
    EXPECT_FALSE(server_of_test().context().directories.has_any());
    (void)other().create("d\\f");
    expect_break(std::nullopt);
}

}  // namespace
}  // namespace sluice::smb_simulation
