#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"
#include "sluice/smb/wire/fscc/fscc_quota.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

// Quotas of users ([MS-SMB2] 3.3.5.20.4, 3.3.5.21.4), and their effect on the size of the volume.

namespace sluice::smb_simulation {
namespace {

using wire::filesystem_information_class;
using wire::quota_information;
using quota_list = std::vector<quota_information>;

constexpr std::uint32_t own_number = 1000;  // that the server acts as
constexpr std::uint64_t mebibyte = 1 << 20;

class quotas_of_users : public command_test {
protected:
    explicit quotas_of_users(void (*adjust)(server::server_configuration&) = nullptr)
        : command_test(adjust), quotas_(volume().offer_quotas(own_number)) {
        own_ = server::sid_of({.name = "u", .domain = {}});
        quotas_.store(own_number, 3 * mebibyte);
        EXPECT_TRUE(quotas_.set({.user = own_number, .hard_limit_bytes = 10 * mebibyte}));
        quotas_.store(1001, mebibyte);
        quotas_.store(1002, 0);
        EXPECT_TRUE(
            quotas_.set({.user = 1002, .soft_limit_bytes = mebibyte, .hard_limit_bytes = 2 * mebibyte}));
        root_ = open_directory("", access_mask::list_directory | access_mask::read_attributes);
    }

    vfs::memory_volume& volume() {
        return dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
    }
    void become_administrator() { server_of_test().context().administrators.publish({"u"}); }

    compliant_client::answer query(const wire::quota_query& asked, std::uint32_t bytes_max = 4096) {
        std::array<std::byte, 8192> room{};
        byte_writer writer(room);
        encode(writer, asked);
        return client().call(command::query_info, wire::query_info_args{.type = wire::info_type::quota,
                                                                        .output_bytes_max = bytes_max,
                                                                        .file = root_,
                                                                        .input = *writer.finish()});
    }
    quota_list list(const wire::quota_query& asked, std::uint32_t bytes_max = 4096) {
        const auto said = query(asked, bytes_max);
        if (said.status() == nt_status::no_more_entries) return {};
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_quotas(output_of(said), 1000).value();
    }
    nt_status set(const quota_list& wanted) {
        std::array<std::byte, 8192> room{};
        std::size_t count = 0;
        const bytes_view input = wire::encode_quotas(room, wanted, count);
        EXPECT_EQ(count, wanted.size());
        return status_of(command::set_info,
                         wire::set_info_args{.type = wire::info_type::quota, .file = root_, .input = input});
    }
    compliant_client::answer ask_volume(filesystem_information_class what) {
        return client().call(command::query_info,
                             wire::query_info_args{.type = wire::info_type::file_system,
                                                   .information_class = static_cast<std::uint8_t>(what),
                                                   .output_bytes_max = 4096,
                                                   .file = root_});
    }
    [[nodiscard]] static quota_information of(const wire::sid& user, std::uint64_t used,
                                              std::uint64_t threshold, std::uint64_t limit) {
        return {.used_bytes = used, .threshold_bytes = threshold, .limit_bytes = limit, .user = user};
    }

    static constexpr std::uint64_t none = quota_information::unlimited;
    vfs::memory_quotas& quotas_;
    wire::sid own_;
    wire::file_id root_;
};

TEST_F(quotas_of_users, are_listed_for_administrators_in_order) {
    become_administrator();
    const quota_list all = list({.restarts = true});
    EXPECT_EQ(all, (quota_list{of(wire::sid_of_unix_user(own_number), 3 * mebibyte, none, 10 * mebibyte),
                               of(wire::sid_of_unix_user(1001), mebibyte, none, none),
                               of(wire::sid_of_unix_user(1002), 0, mebibyte, 2 * mebibyte)}));
    EXPECT_EQ(query({}).status(), nt_status::no_more_entries);
    EXPECT_EQ(list({.restarts = true}).size(), 3U);
}

TEST_F(quotas_of_users, are_listed_one_at_a_time_or_as_many_as_fit) {
    become_administrator();
    for (const std::uint32_t number : {own_number, 1001U, 1002U})
        EXPECT_EQ(list({.wants_one = true}).at(0).user, wire::sid_of_unix_user(number));
    EXPECT_TRUE(list({}).empty());
    EXPECT_EQ(list({.restarts = true}, 120).size(), 2U);
    EXPECT_EQ(list({}, 120).size(), 1U);
    EXPECT_EQ(query({.restarts = true}, 40).status(), nt_status::buffer_too_small);
}

TEST_F(quotas_of_users, are_listed_after_a_user) {
    become_administrator();
    EXPECT_EQ(list({.after = wire::sid_of_unix_user(own_number)}).size(), 2U);
    EXPECT_EQ(query({.after = wire::sid_everyone}).status(), nt_status::invalid_sid);
}

TEST_F(quotas_of_users, have_bounded_lists) {
    become_administrator();
    for (std::uint32_t i = 0; i != server::limits::quota_list_entries_max; ++i)
        quotas_.store(5000 + i, i);
    const auto all = list({}, 65536);
    EXPECT_EQ(all.size(), server::limits::quota_list_entries_max);
    EXPECT_EQ(list({}, 65536).size(), 3U);
    const std::vector<wire::sid> many(server::limits::quota_users_max + 1, own_);
    EXPECT_EQ(query({.users = many}).status(), nt_status::invalid_parameter);
}

TEST_F(quotas_of_users, are_only_their_own_for_other_users) {
    const quota_information own = of(own_, 3 * mebibyte, none, 10 * mebibyte);
    EXPECT_EQ(list({.restarts = true}), quota_list{own});
    EXPECT_EQ(query({}).status(), nt_status::no_more_entries);
    EXPECT_EQ(list({.users = {own_}}), quota_list{own});
    EXPECT_EQ(list({.users = {wire::sid_of_unix_user(own_number)}}).at(0).used_bytes, 3 * mebibyte);
    EXPECT_EQ(query({.users = {wire::sid_of_unix_user(1001)}}).status(), nt_status::access_denied);
    EXPECT_EQ(set({of(own_, 0, none, none)}), nt_status::access_denied);
}

TEST_F(quotas_of_users, are_zero_for_unknown_users) {
    become_administrator();
    EXPECT_EQ(list({.users = {wire::sid_everyone, wire::sid_of_unix_user(1001)}}),
              (quota_list{of(wire::sid_everyone, 0, 0, 0),
                          of(wire::sid_of_unix_user(1001), mebibyte, none, none)}));
}

TEST_F(quotas_of_users, are_set_by_administrators) {
    become_administrator();
    EXPECT_EQ(set({of(wire::sid_of_unix_user(1001), 0, mebibyte, 4 * mebibyte), of(own_, 0, none, none)}),
              nt_status::success);
    EXPECT_EQ(quotas_.of(1001).value(), (vfs::user_quota{.user = 1001,
                                                         .used_bytes = mebibyte,
                                                         .soft_limit_bytes = mebibyte,
                                                         .hard_limit_bytes = 4 * mebibyte}));
    EXPECT_EQ(quotas_.of(own_number)->hard_limit_bytes, std::nullopt);
    EXPECT_EQ(set({of(wire::sid_of_unix_user(1001), 0, 0, quota_information::deleted)}), nt_status::success);
    EXPECT_EQ(quotas_.of(1001).value(), (vfs::user_quota{.user = 1001, .used_bytes = mebibyte}));
}

TEST_F(quotas_of_users, are_not_set_for_unknown_users_and_administrators) {
    become_administrator();
    EXPECT_EQ(set({of(wire::sid_everyone, 0, none, mebibyte)}), nt_status::none_mapped);
    EXPECT_EQ(set({of(wire::sid_administrators, 0, none, mebibyte)}), nt_status::access_denied);
    EXPECT_EQ(set({of(wire::sid_administrators, 0, none, none)}), nt_status::success);
    EXPECT_EQ(set({of(own_, 0, none, ~std::uint64_t{0} - 2)}), nt_status::invalid_parameter);
    EXPECT_EQ(set({}), nt_status::invalid_parameter);
    EXPECT_EQ(set({of(wire::sid_of_unix_user(0), 0, none, mebibyte)}), nt_status::access_denied)
        << "XFS would limit all users";
}

TEST_F(quotas_of_users, have_no_threshold_above_the_limit) {
    become_administrator();
    EXPECT_EQ(set({of(wire::sid_of_unix_user(1001), 0, 4 * mebibyte, mebibyte)}), nt_status::success);
    EXPECT_EQ(quotas_.of(1001)->soft_limit_bytes, mebibyte);
}

TEST_F(quotas_of_users, are_not_set_by_others) {
    EXPECT_EQ(set({of(wire::sid_of_unix_user(1001), 0, none, mebibyte)}), nt_status::access_denied);
    EXPECT_EQ(quotas_.of(1001)->hard_limit_bytes, std::nullopt);
}

TEST_F(quotas_of_users, give_the_volume_at_least_one_unit) {
    EXPECT_TRUE(quotas_.set({.user = own_number, .hard_limit_bytes = 1024}));
    const auto said = ask_volume(filesystem_information_class::size);
    EXPECT_EQ(wire::decode_fs_size_information(output_of(said))->total_units, 1U);
}

TEST_F(quotas_of_users, limit_the_size_of_the_volume) {
    const auto said = ask_volume(filesystem_information_class::full_size);
    const auto space = wire::decode_fs_full_size_information(output_of(said)).value();
    const std::uint64_t unit = std::uint64_t{space.sectors_per_unit} * space.bytes_per_sector;
    EXPECT_EQ(space.total_units * unit, 10 * mebibyte);
    EXPECT_EQ(space.available_to_caller_units * unit, 7 * mebibyte);
    EXPECT_GT(space.available_units * unit, 10 * mebibyte) << "the room that the volume has";
    quotas_.store(own_number, 11 * mebibyte);
    const auto full = ask_volume(filesystem_information_class::size);
    EXPECT_EQ(wire::decode_fs_size_information(output_of(full))->available_units, 0U);
    quotas_.become({.is_counted = true, .is_enforced = false});
    const auto free = ask_volume(filesystem_information_class::size);
    EXPECT_GT(wire::decode_fs_size_information(output_of(free))->available_units * unit, 10 * mebibyte);
}

TEST_F(quotas_of_users, are_announced_while_they_are_counted) {
    const auto has_quotas = [&] {
        const auto said = ask_volume(filesystem_information_class::attribute);
        return wire::has(wire::decode_fs_attribute_information(output_of(said))->attributes,
                         wire::filesystem_attributes::volume_quotas);
    };
    const auto flags = [&] {
        const auto said = ask_volume(filesystem_information_class::control);
        return wire::decode_fs_control_information(output_of(said))->flags;
    };
    EXPECT_TRUE(has_quotas());
    EXPECT_EQ(flags(), wire::fs_control_information::quota_enforced);
    quotas_.become({.is_counted = true, .is_enforced = false});
    EXPECT_EQ(flags(), wire::fs_control_information::quota_tracked);
    quotas_.become({});
    EXPECT_FALSE(has_quotas());
    EXPECT_EQ(flags(), 0U);
    EXPECT_EQ(query({}).status(), nt_status::not_supported);
}

TEST_F(quotas_of_users, are_used_through_the_file_that_NTFS_has_for_them) {
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    how.desired_access = access_mask::read_data;
    root_ = client().create("$Extend\\$Quota:$Q:$INDEX_ALLOCATION", how).file;
    EXPECT_EQ(list({}).size(), 1U);
}

class quotas_on_a_read_only_share : public quotas_of_users {
protected:
    quotas_on_a_read_only_share()
        : quotas_of_users(
              [](server::server_configuration& rules) { rules.shares.back().read_only_users = {"u"}; }) {}
};

TEST_F(quotas_on_a_read_only_share, are_not_set_by_administrators_either) {
    become_administrator();
    EXPECT_EQ(set({of(wire::sid_of_unix_user(1001), 0, none, mebibyte)}), nt_status::access_denied);
    EXPECT_EQ(quotas_.of(1001)->hard_limit_bytes, std::nullopt);
}

class size_limits : public command_test {
protected:
    size_limits()
        : command_test([](server::server_configuration& rules) {
              rules.shares.back().size_limit_bytes = 5 * mebibyte;
          }) {}
};

TEST_F(size_limits, are_the_size_of_the_volume_for_clients) {
    const auto said = client().call(command::query_info,
                                    wire::query_info_args{.type = wire::info_type::file_system,
                                                          .information_class = static_cast<std::uint8_t>(
                                                              filesystem_information_class::full_size),
                                                          .output_bytes_max = 4096,
                                                          .file = open_directory("")});
    const auto space = wire::decode_fs_full_size_information(output_of(said)).value();
    const std::uint64_t unit = std::uint64_t{space.sectors_per_unit} * space.bytes_per_sector;
    EXPECT_EQ(space.total_units * unit, 5 * mebibyte);
    EXPECT_EQ(space.available_units * unit, 5 * mebibyte);
    EXPECT_EQ(space.available_to_caller_units * unit, 5 * mebibyte);
}

}  // namespace
}  // namespace sluice::smb_simulation
