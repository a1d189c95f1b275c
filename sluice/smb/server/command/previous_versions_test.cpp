#include <gmock/gmock.h>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/operation/rpc_server_host.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"

// Previous versions: files of a share as they were at the time of a snapshot.

namespace sluice::smb_simulation {
namespace {

using namespace std::chrono_literals;
using vfs::snapshot_time;
using wire::control_code;
using wire::create_disposition;
using wire::create_options;

constexpr snapshot_time monday = std::chrono::sys_days(2026y / 11 / 23) + 6h;
constexpr snapshot_time tuesday = std::chrono::sys_days(2026y / 11 / 24) + 6h;
constexpr const char* monday_token = "@GMT-2026.11.23-06.00.00";

// Volumes that a test has filled. They could be changed: the server must not rely on them.
class scripted_snapshots final : public vfs::snapshots {
public:
    vfs::fs_domain& domain() noexcept override { return *domain_; }
    result<std::vector<snapshot_time>> list() noexcept override {
        std::vector<snapshot_time> found;
        for (const auto& [when, volume] : volumes)
            found.insert(found.begin(), when);
        return found;
    }
    result<std::shared_ptr<vfs::volume>> open(snapshot_time when) noexcept override {
        ++opened;
        const auto found = volumes.find(when);
        if (found == volumes.end()) return failure({ENOENT, "open snapshot"});
        return found->second;
    }

    std::map<snapshot_time, std::shared_ptr<vfs::volume>> volumes;
    unsigned opened = 0;

private:
    std::shared_ptr<vfs::fs_domain> domain_ = std::make_shared<vfs::fs_domain>(vfs::fs_domain_options{});
};

std::shared_ptr<scripted_snapshots> snapshots_of_test;

class previous_versions : public command_test {
protected:
    previous_versions()
        : command_test([](smb::server::server_configuration& configuration) {
              snapshots_of_test = std::make_shared<scripted_snapshots>();
              configuration.shares.front().snapshots = snapshots_of_test;
          }) {
        put(monday, "d/f", "monday");
        put(tuesday, "d/f", "tuesday");
        put(monday, "gone", "was here");
        EXPECT_EQ(close(open_directory("d")), nt_status::success);
        const auto now = open_for(wire::file_all_access, "d\\f");
        EXPECT_EQ(write(now, "now"), nt_status::success);
        EXPECT_EQ(close(now), nt_status::success);
    }
    // The server destroys them, before the loop that they use.
    ~previous_versions() override { snapshots_of_test.reset(); }

    void put(snapshot_time when, const std::string& path, std::string_view content) {
        auto& volume = snapshots_of_test->volumes[when];
        if (volume == nullptr)
            volume = std::make_shared<vfs::memory_volume>(
                *where_.loop, where_.clock,
                vfs::memory_volume_options{.serial =
                                               static_cast<std::uint64_t>(when.time_since_epoch().count())});
        if (const std::size_t slash = path.find('/'); slash != path.npos)
            (void)volume->create(path.substr(0, slash), {.kind = vfs::node_kind::directory});
        const auto made = volume->create(path, {}).value();
        ASSERT_TRUE(vfs::open_data(*made, {.read = false, .write = true}));
        where_.clients.spawn(fill(*made, content));
        where_.run();
    }
    static io::task<void> fill(vfs::node& node, std::string_view content) noexcept {
        io::task<result<void>> writing = node.data()->co_write(std::as_bytes(std::span(content)), 0);
        const result<void> written = co_await std::move(writing);
        EXPECT_TRUE(written);
    }
    static wire::create_args how(access_mask access = wire::file_generic_read) {
        auto asked = compliant_client::for_everything();
        asked.desired_access = access;
        asked.disposition = create_disposition::open;
        return asked;
    }
    static wire::create_args how_at(snapshot_time when, access_mask access = wire::file_generic_read) {
        auto asked = how(access);
        asked.contexts.timewarp = wire::filetime_of(wire::tick_time(when));
        return asked;
    }
    nt_status status_of_open(std::string_view name, const wire::create_args& asked) {
        return client().try_create(name, asked);
    }
    wire::file_id past(access_mask access = wire::file_generic_read) {
        return client().create("d\\f", how_at(monday, access)).file;
    }
    std::vector<std::string> names_in(const wire::file_id& directory) {
        const std::string all = wire::utf16_of("*").value();
        const auto said =
            client().call(command::query_directory,
                          wire::query_directory_args{.information_class = wire::directory_class::names,
                                                     .file = directory,
                                                     .pattern = std::as_bytes(std::span(all)),
                                                     .output_bytes_max = 4096});
        wire::directory_entry_reader entries(wire::decode_query_directory_reply(said.message())->entries,
                                             wire::file_information_class::names);
        std::vector<std::string> names;
        for (auto entry = entries.next(); entry and *entry; entry = entries.next())
            names.push_back(wire::utf8_of((*entry)->name_utf16).value());
        return names;
    }
    std::shared_ptr<smb::server::session> session_of(const wire::file_id& file) {
        const auto number = static_cast<std::uint32_t>(file.persistent_part.value());
        return server_of_test().context().opens.find_by_end(number)->session();
    }
    std::size_t snapshots_in_use() {
        return server_of_test().context().quotas.in_use(smb::server::limit::snapshots);
    }
    // The reply to FSCTL_SRV_ENUMERATE_SNAPSHOTS: two counts, the length, and the names.
    struct enumeration {
        nt_status status;
        std::uint32_t count = 0;
        std::uint32_t returned = 0;
        std::uint32_t list_bytes = 0;
        std::string names{};
        std::size_t bytes = 0;
    };
    enumeration enumerate(const wire::file_id& file, std::uint32_t bytes_max = 4096) {
        const auto said = control(control_code::srv_enumerate_snapshots, file, {}, bytes_max);
        enumeration found{.status = said.status()};
        if (found.status != nt_status::success) return found;
        byte_reader output(output_of_control(said));
        found.bytes = output.remaining();
        found.count = output.take<le32>()->value();
        found.returned = output.take<le32>()->value();
        found.list_bytes = output.take<le32>()->value();
        found.names = wire::utf8_of(output.rest()).value();
        return found;
    }
};

TEST_F(previous_versions, a_token_opens_the_file_as_it_was) {
    EXPECT_EQ(content_of(past()), "monday");
    EXPECT_EQ(content_of(client().create("d\\f", how_at(tuesday)).file), "tuesday");
    EXPECT_EQ(content_of(client().create("D\\F", how()).file), "now");
    EXPECT_EQ(content_of(client().create("gone", how_at(monday)).file), "was here");
}

TEST_F(previous_versions, a_component_of_the_name_is_a_token_anywhere_in_the_path) {
    for (const std::string& name :
         {std::string(monday_token) + "\\d\\f", std::string("d\\") + monday_token + "\\f",
          std::string("d\\f\\") + monday_token}) {
        const auto made = client().create(name, how());
        EXPECT_EQ(content_of(made.file), "monday") << name;
    }
    EXPECT_EQ(status_of_open(monday_token, how()), nt_status::success) << "the root as it was";
}

TEST_F(previous_versions, a_time_or_a_path_that_no_snapshot_has_is_not_found) {
    EXPECT_EQ(status_of_open("d\\f", how_at(monday + 1s)), nt_status::object_name_not_found);
    EXPECT_EQ(status_of_open("gone", how_at(tuesday)), nt_status::object_name_not_found);
    EXPECT_EQ(status_of_open("no\\f", how_at(tuesday)), nt_status::object_path_not_found);
    auto asked = how_at(monday);
    asked.contexts.timewarp->ticks += 1;
    EXPECT_EQ(status_of_open("d\\f", asked), nt_status::object_name_not_found);
    for (const std::uint64_t ticks : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
        asked.contexts.timewarp->ticks = ticks;
        EXPECT_EQ(status_of_open("d\\f", asked), nt_status::object_name_not_found) << ticks;
    }
    const std::string twice = std::string(monday_token) + "\\@GMT-2026.11.24-06.00.00\\d\\f";
    EXPECT_EQ(status_of_open(twice, how()), nt_status::object_name_not_found);
    EXPECT_EQ(status_of_open(std::string(monday_token) + "\\d\\f", how_at(tuesday)),
              nt_status::object_name_not_found);
    EXPECT_EQ(status_of_open("@GMT-2026.02.30-06.00.00\\d\\f", how()), nt_status::object_path_not_found)
        << "no date, and so a name";
}

TEST_F(previous_versions, an_open_for_writing_is_granted_and_writes_nothing) {
    const auto file = past(wire::file_all_access);
    EXPECT_EQ(write(file, "changed"), nt_status::media_write_protected);
    EXPECT_EQ(
        set_information(file, wire::file_information_class::end_of_file, wire::end_of_file_information{}),
        nt_status::media_write_protected);
    EXPECT_EQ(set_information(file, wire::file_information_class::disposition,
                              wire::disposition_information{.delete_on_close = true}),
              nt_status::media_write_protected);
    for (const control_code code :
         {control_code::set_sparse, control_code::set_zero_data, control_code::set_compression,
          control_code::srv_copychunk_write, control_code::offload_write, control_code::file_level_trim,
          control_code::duplicate_extents_to_file, control_code::set_reparse_point,
          control_code::delete_reparse_point})
        EXPECT_EQ(control(code, file).status(), nt_status::media_write_protected);
    EXPECT_EQ(content_of(file), "monday");
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_EQ(content_of(past()), "monday");
}

TEST_F(previous_versions, an_open_is_granted_no_caching_of_writes) {
    using enum wire::lease_state;
    auto asked = how_at(monday, wire::file_all_access);
    for (const auto level : {wire::oplock_level::exclusive, wire::oplock_level::batch}) {
        asked.oplock_level = level;
        const auto made = client().create("d\\f", asked);
        EXPECT_EQ(made.oplock_level, wire::oplock_level::level_2);
        EXPECT_EQ(close(made.file), nt_status::success);
    }
    asked.oplock_level = wire::oplock_level::lease;
    asked.contexts.lease = wire::lease{.key = {{std::byte{1}}}, .state = read | handle | write};
    const auto leased = client().create("d\\f", asked);
    ASSERT_TRUE(leased.contexts.lease);
    EXPECT_EQ(leased.contexts.lease->state, read | handle);
    asked.contexts.timewarp.reset();
    asked.contexts.lease->key = {{std::byte{2}}};
    EXPECT_EQ(client().create("d\\f", asked).contexts.lease->state, read | handle | write)
        << "the present file";
}

TEST_F(previous_versions, a_create_that_would_change_something_is_refused) {
    for (const auto disposition : {create_disposition::create, create_disposition::supersede,
                                   create_disposition::overwrite, create_disposition::overwrite_if}) {
        auto asked = how_at(monday, wire::file_all_access);
        asked.disposition = disposition;
        EXPECT_EQ(status_of_open("d\\f", asked), nt_status::media_write_protected);
    }
    auto deletes = how_at(monday, wire::file_all_access);
    deletes.options = create_options::delete_on_close;
    EXPECT_EQ(status_of_open("d\\f", deletes), nt_status::media_write_protected);
    auto opens = how_at(monday, wire::file_all_access);
    opens.disposition = create_disposition::open_if;
    EXPECT_EQ(status_of_open("d\\f", opens), nt_status::success);
    EXPECT_EQ(status_of_open("d\\new", opens), nt_status::media_write_protected);
    EXPECT_EQ(status_of_open("d\\f:stream", opens), nt_status::media_write_protected);
    EXPECT_EQ(status_of_open("missing\\new", opens), nt_status::object_path_not_found);
    EXPECT_FALSE(snapshots_of_test->volumes[monday]->find("d/new", vfs::follow_links::yes));
}

TEST_F(previous_versions, a_rename_into_or_out_of_a_snapshot_is_one_to_another_device) {
    const auto file = open_for(wire::file_all_access, "d\\f");
    const auto rename = [&](const wire::file_id& of, const std::string& target) {
        return set_information(of, wire::file_information_class::rename,
                               wire::rename_information{.target = target});
    };
    const std::string there = std::string(monday_token) + "\\g";
    EXPECT_EQ(rename(file, there), nt_status::not_same_device);
    EXPECT_EQ(rename(past(wire::file_all_access), "g"), nt_status::not_same_device);
    EXPECT_EQ(rename(past(wire::file_all_access), there), nt_status::not_same_device);
}

TEST_F(previous_versions, share_modes_of_the_past_and_of_now_are_apart) {
    auto alone = how_at(monday, wire::file_all_access);
    alone.share_access = wire::share_access::none;
    const auto held = client().create("d\\f", alone);
    EXPECT_NE(held.file, wire::file_id{});
    EXPECT_EQ(status_of_open("d\\f", how(wire::file_all_access)), nt_status::success);
    EXPECT_EQ(status_of_open("d\\f", how_at(tuesday)), nt_status::success);
    EXPECT_EQ(status_of_open("d\\f", how_at(monday)), nt_status::sharing_violation);
}

TEST_F(previous_versions, a_directory_lists_the_names_that_it_had) {
    auto asked = how_at(monday);
    asked.options = create_options::directory_file;
    const auto directory = client().create("", asked);
    EXPECT_THAT(names_in(directory.file), testing::UnorderedElementsAre(".", "..", "d", "gone"));
    EXPECT_EQ(status_of(command::change_notify,
                        wire::change_notify_args{.output_bytes_max = 100,
                                                 .file = directory.file,
                                                 .filter = wire::completion_filter::file_name}),
              nt_status::not_supported);
}

TEST_F(previous_versions, a_snapshot_is_opened_once_while_it_is_in_use) {
    const auto first = past();
    const auto second = past();
    EXPECT_EQ(snapshots_of_test->opened, 1U);
    EXPECT_EQ(snapshots_in_use(), 1U);
    EXPECT_EQ(close(first), nt_status::success);
    EXPECT_EQ(content_of(second), "monday");
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(snapshots_in_use(), 0U);
    EXPECT_EQ(content_of(past()), "monday");
    EXPECT_EQ(snapshots_of_test->opened, 2U);
}

TEST_F(previous_versions, are_listed_for_all_snapshots_of_the_share) {
    const auto both = enumerate(open_for(wire::file_generic_read, "d\\f"));
    EXPECT_EQ(both.count, 2U);
    EXPECT_EQ(both.returned, 2U);
    EXPECT_EQ(both.list_bytes, 102U);
    EXPECT_EQ(both.names, std::string("@GMT-2026.11.24-06.00.00\0@GMT-2026.11.23-06.00.00\0\0", 51));
    const auto of_old = enumerate(client().create("gone", how_at(monday)).file);
    EXPECT_EQ(of_old.count, 2U) << "also through an open in a snapshot";
    const auto of_new = enumerate(open_for(wire::file_all_access, "new"));
    EXPECT_EQ(of_new.count, 2U) << "a client asks for the file at each time";
    snapshots_of_test->volumes.clear();
    const auto none = enumerate(open_for(wire::file_all_access, "new"));
    EXPECT_EQ(none.count, 0U);
    EXPECT_EQ(none.bytes, 16U);
}

TEST_F(previous_versions, are_counted_where_the_list_does_not_fit) {
    const auto file = open_for(wire::file_generic_read, "d\\f");
    for (const std::uint32_t bytes_max : {16U, 100U, 113U}) {
        const auto counted = enumerate(file, bytes_max);
        EXPECT_EQ(counted.count, 2U);
        EXPECT_EQ(counted.returned, 0U);
        EXPECT_EQ(counted.list_bytes, 102U);
        EXPECT_EQ(counted.bytes, 16U);
    }
    EXPECT_EQ(enumerate(file, 114).returned, 2U);
    EXPECT_EQ(enumerate(file, 15).status, nt_status::invalid_parameter);
}

TEST_F(previous_versions, are_listed_once_at_a_time_in_a_tree_connection) {
    const auto file = open_for(wire::file_generic_read, "d\\f");
    const auto tree = session_of(file)->find_tree(client().current_ids().tree);
    smb::server::one_shot_event<nt_status> granted(*where_.loop);
    smb::server::fifo_lock::lock_request other(granted);
    ASSERT_TRUE(tree->snapshot_lists.lock(other)) << "another request lists";
    const auto asked =
        client().send(command::ioctl, wire::ioctl_args{.code = control_code::srv_enumerate_snapshots,
                                                       .file = file,
                                                       .output_bytes_max = 16});
    EXPECT_FALSE(client().is_answered(asked));
    tree->snapshot_lists.unlock(other);
    EXPECT_EQ(client().answer_to(asked).status(), nt_status::success);
}

TEST_F(previous_versions, administrators_see_the_time_of_an_open) {
    const auto file = past();
    smb::server::rpc_server_host shown(server_of_test().context(), *session_of(file));
    EXPECT_EQ(shown.path_of_file(static_cast<std::uint32_t>(file.persistent_part.value())),
              std::string("C:\\files\\") + monday_token + "\\d\\f");
}

TEST_F(previous_versions, status_shows_the_time_of_an_open) {
    const std::array numbers{past().persistent_part.value()};
    const auto shown = server_of_test().snapshot({.has_names = true, .opens = numbers});
    ASSERT_EQ(shown.opens.size(), 1U);
    EXPECT_EQ(shown.opens.front().share, "files");
    EXPECT_EQ(shown.opens.front().path, std::string(monday_token) + "/d/f");
}

class no_previous_versions : public command_test {};

TEST_F(no_previous_versions, a_share_without_snapshots_has_tokens_as_names) {
    EXPECT_EQ(close(open_for(wire::file_all_access, monday_token)), nt_status::success);
    auto asked = compliant_client::for_everything();
    asked.disposition = create_disposition::open;
    EXPECT_EQ(client().try_create(monday_token, asked), nt_status::success);
    asked.contexts.timewarp = wire::filetime_of(wire::tick_time(monday));
    EXPECT_EQ(client().try_create(monday_token, asked), nt_status::object_name_not_found);
    const auto said = control(control_code::srv_enumerate_snapshots, open_for(wire::file_all_access), {}, 16);
    EXPECT_EQ(output_of_control(said).size(), 16U);
}

}  // namespace
}  // namespace sluice::smb_simulation
