// The tables of this directory, used by several threads at once.

#include <gtest/gtest.h>

#include "sluice/smb/server/core/threads_testing.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/file/lease_table.hpp"
#include "sluice/smb/server/file/naming_state.hpp"

namespace sluice::smb::server {
namespace {

constexpr std::size_t threads = 4;
constexpr std::uint64_t rounds = 2000;

constexpr vfs::file_key key_of(std::uint64_t file, std::uint64_t stream = 0) noexcept {
    return {.volume = 1, .file = file, .stream = stream};
}

TEST(file_table, has_one_state_of_a_file_while_others_release_theirs) {
    file_table files;
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const auto one = files.of(key_of(i % 2));
            const auto again = files.of(key_of(i % 2));
            EXPECT_EQ(one, again) << "while it is held, there is no other";
            EXPECT_EQ(files.find(key_of(i % 2)), one);
        }
    });
    EXPECT_EQ(files.size(), 0U);
}

TEST(file_table, streams_hold_their_file_until_the_last_is_released) {
    file_table files;
    run_at_once(threads, [&](std::size_t number) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const auto stream = files.of(key_of(i % 3, 1 + number % 2));
            EXPECT_EQ(stream->base, files.of(key_of(i % 3)));
            bool is_listed = false;
            for (const auto& each : files.streams_of(key_of(i % 3)))
                is_listed = is_listed or each == stream;
            EXPECT_TRUE(is_listed);
        }
    });
    EXPECT_EQ(files.size(), 0U);
}

TEST(file_table, finds_a_renamed_stream_while_others_look_for_it) {
    file_table files;
    const auto renamed = files.of(key_of(1, 10));
    run_at_once(threads, [&](std::size_t number) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            if (number == 0) {
                files.change_key(file_section(*renamed), *renamed, key_of(1, i % 2 == 0 ? 11 : 10));
            } else {
                (void)files.find(key_of(1, 10 + i % 2));
                EXPECT_EQ(files.streams_of(key_of(1)).size(), 1U);
            }
        }
    });
    EXPECT_EQ(files.find(key_of(1, 10)), renamed);
    EXPECT_EQ(files.size(), 2U) << "the stream and its file";
}

TEST(file_table, forgets_a_removed_file_while_others_open_the_next_with_its_key) {
    file_table files;
    run_at_once(threads, [&](std::size_t number) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const auto one = files.of(key_of(7));
            if (number == 0) files.forget(file_section(*one), *one);
            files.change_times.set(key_of(7), {});
        }
    });
    EXPECT_EQ(files.size(), 0U);
    EXPECT_EQ(files.find(key_of(7)), nullptr);
}

TEST(lease_table, keeps_the_leases_of_several_loops) {
    lease_table leases;
    run_at_once(threads, [&](std::size_t number) {
        lease::identity who;
        who.client.bytes[0] = static_cast<std::byte>(number);
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const auto fresh =
                leases.make(nullptr, lease::kind::lease_v2, who, wire::lease_state::read, std::uint16_t{0});
            EXPECT_TRUE(leases.add(fresh));
            EXPECT_FALSE(leases.add(fresh)) << "a key has one lease";
            EXPECT_EQ(leases.find(who), fresh);
            leases.remove(*fresh);
            leases.remove(*fresh);
        }
    });
    EXPECT_EQ(leases.size(), 0U);
}

TEST(naming_states, give_several_loops_the_same_state_of_a_domain) {
    naming_states all;
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i)
            all.of(static_cast<std::uint32_t>(i % 5)).count_removal();
    });
    EXPECT_EQ(all.size(), 5U);
    EXPECT_EQ(all.of(0).removals(), threads * rounds / 5);
}

}  // namespace
}  // namespace sluice::smb::server
