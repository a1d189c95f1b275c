#include "sluice/cli/serve/shared_locks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <list>

#include "sluice/base/random.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/smb/server/file/peer_claims.hpp"
#include "sluice/smb/server/open/open.hpp"

// Several objects represent several servers here: each has its own open file descriptions, and the
// kernel distinguishes processes only by these.

namespace sluice::cli {
namespace {

using namespace smb::server;  // NOLINT: what these tests are about
using smb::wire::access_mask;
using smb::wire::share_access;
using smb::wire::operator|;

constexpr vfs::file_key some_file{.volume = 1, .file = 0xabc};

class servers_of_one_directory : public testing::Test {
protected:
    servers_of_one_directory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-peers-XXXXXX").string();
        directory = mkdtemp(pattern.data());
    }
    ~servers_of_one_directory() override { std::filesystem::remove_all(directory); }

    [[nodiscard]] std::unique_ptr<shared_locks> server() const {
        auto opened = shared_locks::open((directory / "locks").string());
        EXPECT_TRUE(opened) << opened.error().message();
        return *std::move(opened);
    }
    [[nodiscard]] bool has_lock_byte_files() const {
        return not std::filesystem::is_empty(directory / "locks.d");
    }

    std::filesystem::path directory;
};

[[nodiscard]] sharing sharing_of(unsigned bits) {
    sharing one;
    if ((bits & 1) != 0) one.access |= access_mask::read_data;
    if ((bits & 2) != 0) one.access |= access_mask::append_data;
    if ((bits & 4) != 0) one.access |= access_mask::delete_object;
    one.share = static_cast<share_access>(bits >> 3 & 7);
    return one;
}

// Returns whether the claim succeeded.
[[nodiscard]] bool claims(share_mode_lock_bytes& at, const sharing& open, peer_claim& into) {
    const auto conflicting = at.claim(terms_of(open), into);
    EXPECT_TRUE(conflicting) << conflicting.error().message();
    EXPECT_EQ(*conflicting == share_mode_lock_byte::none, static_cast<bool>(into));
    return static_cast<bool>(into);
}

TEST_F(servers_of_one_directory, share_a_file_exactly_as_the_opens_of_one_server_do) {
    const auto first = server();
    const auto second = server();
    share_mode_lock_bytes at_first(first->file(some_file));
    share_mode_lock_bytes at_second(second->file(some_file));
    for (unsigned a = 0; a != 64; ++a) {
        peer_claim held;
        ASSERT_TRUE(claims(at_first, sharing_of(a), held));
        for (unsigned b = 0; b != 64; ++b) {
            peer_claim fresh;
            EXPECT_EQ(claims(at_second, sharing_of(b), fresh), can_coexist(sharing_of(a), sharing_of(b)))
                << "held: access and sharing " << a << ", fresh: " << b;
        }
    }
    EXPECT_FALSE(has_lock_byte_files()) << "no lock-byte file remains of a file that is not open";
}

TEST_F(servers_of_one_directory, share_a_file_among_many_opens_as_one_server_would) {
    struct held_open {
        std::size_t server;
        sharing how;
        peer_claim claim;
    };
    const std::array servers{server(), server(), server()};
    std::array<std::unique_ptr<share_mode_lock_bytes>, 3> files;
    for (std::size_t i = 0; i != files.size(); ++i)
        files[i] = std::make_unique<share_mode_lock_bytes>(servers[i]->file(some_file));
    seeded_random random(7);
    std::list<held_open> opens;
    unsigned granted = 0;
    for (int turn = 0; turn != 4000; ++turn) {
        if (not opens.empty() and random.below(2) == 0) {
            opens.erase(std::next(opens.begin(), static_cast<std::ptrdiff_t>(random.below(opens.size()))));
            continue;
        }
        // Opens that share much, so that there are many at a time.
        const sharing how = sharing_of(static_cast<unsigned>(random.below(8) | (random.below(8) | 4) << 3));
        const auto may_join = [&](const held_open& one) { return can_coexist(one.how, how); };
        held_open fresh{.server = random.below(3), .how = how, .claim = {}};
        const auto is_local = [&](const held_open& one) { return one.server == fresh.server; };
        // A server checks its own opens first.
        if (not std::ranges::all_of(opens,
                                    [&](const auto& one) { return not is_local(one) or may_join(one); }))
            continue;
        const bool is_granted = claims(*files[fresh.server], how, fresh.claim);
        ASSERT_EQ(is_granted, std::ranges::all_of(opens, may_join)) << "turn " << turn;
        if (is_granted) opens.push_back(std::move(fresh));
        granted += is_granted ? 1U : 0U;
    }
    EXPECT_GT(granted, 500U);
    opens.clear();
    EXPECT_FALSE(has_lock_byte_files());
}

TEST_F(servers_of_one_directory,
       refuse_opens_of_files_pending_removal_and_removals_of_files_with_open_streams) {
    const auto first = server();
    const auto second = server();
    share_mode_lock_bytes at_first(first->file(some_file));
    share_mode_lock_bytes at_second(second->file(some_file));
    const sharing reads{.access = access_mask::read_data, .share = share_access::read};
    const sharing removes{.access = access_mask::delete_object,
                          .share = share_access::read | share_access::write | share_access::remove};
    peer_claim of_stream;
    ASSERT_EQ(at_first.claim(terms_of_stream_at_file(reads), of_stream), share_mode_lock_byte::none);
    peer_claim fresh;
    EXPECT_EQ(at_second.claim(terms_of_file(removes), fresh), share_mode_lock_byte::stream_stays);
    of_stream.cancel();
    ASSERT_EQ(at_second.claim(terms_of_file(removes), fresh), share_mode_lock_byte::none);
    EXPECT_EQ(at_first.claim(terms_of_stream_at_file(reads), of_stream), share_mode_lock_byte::removes);
    fresh.cancel();
    EXPECT_EQ(at_second.claim(terms_of_file(reads), fresh), share_mode_lock_byte::none);
    peer_claim goes;
    ASSERT_EQ(at_second.claim({.up = share_mode_lock_byte::goes, .unless = share_mode_lock_byte::none}, goes),
              share_mode_lock_byte::none);
    peer_claim late;
    EXPECT_EQ(at_first.claim(terms_of_file(reads), late), share_mode_lock_byte::goes);
    goes.cancel();
    EXPECT_EQ(at_first.claim(terms_of_file(reads), late), share_mode_lock_byte::none);
}

TEST_F(servers_of_one_directory, have_exclusive_use_of_a_file_only_while_no_other_server_has_it_open) {
    const auto first = server();
    const auto second = server();
    const auto at_first = first->file(some_file);
    const auto at_second = second->file(some_file);
    ASSERT_EQ(at_second->raise(share_mode_lock_byte::has_open, share_mode_lock_byte::none),
              share_mode_lock_byte::none);
    EXPECT_EQ(at_first->claim_exclusively().error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(at_second->raise(share_mode_lock_byte::reads, share_mode_lock_byte::none),
              share_mode_lock_byte::none)
        << "refused: not claimed";
    at_second->lower(share_mode_lock_byte::has_open | share_mode_lock_byte::reads);
    ASSERT_TRUE(at_first->claim_exclusively());
    EXPECT_EQ(at_second->raise(share_mode_lock_byte::has_open, share_mode_lock_byte::none).error(),
              std::errc::resource_unavailable_try_again);
    const auto other = second->file({.volume = 1, .file = 0xabd});
    EXPECT_EQ(other->raise(share_mode_lock_byte::has_open, share_mode_lock_byte::none),
              share_mode_lock_byte::none)
        << "another file";
    at_first->end_exclusive_claim();
    EXPECT_EQ(at_second->raise(share_mode_lock_byte::has_open, share_mode_lock_byte::none),
              share_mode_lock_byte::none);
}

TEST_F(servers_of_one_directory, leave_no_file_of_lock_bytes_that_were_lowered_in_an_exclusive_claim) {
    const auto mine = server();
    const auto file = mine->file(some_file);
    ASSERT_EQ(file->raise(share_mode_lock_byte::goes, share_mode_lock_byte::none),
              share_mode_lock_byte::none);
    ASSERT_TRUE(file->claim_exclusively());
    EXPECT_TRUE(has_lock_byte_files());
    file->lower(share_mode_lock_byte::goes);
    file->end_exclusive_claim();
    EXPECT_FALSE(has_lock_byte_files());
}

TEST_F(servers_of_one_directory, lose_the_opens_and_locks_of_a_killed_server) {
    const auto mine = server();
    share_mode_lock_bytes at_mine(mine->file(some_file));
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const auto theirs = server();
        const auto file = theirs->file(some_file);
        const bool is_shown =
            file->raise(share_mode_lock_byte::has_open | share_mode_lock_byte::denies_reading,
                        share_mode_lock_byte::none) == share_mode_lock_byte::none;
        const bool is_locked = file->lock(sync::byte_range::between({3, 5}), peer_lock::exclusive);
        (void)!write(ready[1], is_shown and is_locked ? "y" : "n", 1);
        for (;;)
            pause();
    }
    char said = 0;
    ASSERT_EQ(read(ready[0], &said, 1), 1);
    ASSERT_EQ(said, 'y');
    const sharing reads = sharing_of(1 | 7 << 3);
    peer_claim looks;
    ASSERT_TRUE(claims(at_mine, sharing_of(7 << 3), looks))
        << "an open without data access conflicts with no other";
    peer_claim held;
    EXPECT_FALSE(claims(at_mine, reads, held));
    EXPECT_FALSE(at_mine.file().is_lockable(sync::byte_range::between({5, 9}), peer_lock::shared));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(claims(at_mine, reads, held));
    EXPECT_TRUE(at_mine.file().is_lockable(sync::byte_range::between({5, 9}), peer_lock::shared));
    EXPECT_TRUE(at_mine.file().claim_exclusively());
    at_mine.file().end_exclusive_claim();
}

// Two servers with two opens each, against one table of all four.
class locks_of_two_servers : public servers_of_one_directory {
protected:
    locks_of_two_servers() {
        for (std::size_t i = 0; i != 2; ++i) {
            servers_[i] = server();
            lock_bytes_[i] = std::make_unique<share_mode_lock_bytes>(servers_[i]->file(some_file));
            EXPECT_TRUE(claims(*lock_bytes_[i], sharing_of(3 | 7 << 3), claims_[i]));
            tables_[i].coordinate_with(lock_bytes_[i]->file());
        }
    }
    ~locks_of_two_servers() override {
        for (std::size_t i = 0; i != opens_.size(); ++i)
            tables_[i / 2].release_all(opens_[i]);
    }

    [[nodiscard]] bool try_lock(std::size_t who, byte_range_locks::range where, bool exclusive) {
        return tables_[who / 2].try_lock({.owner = &opens_[who], .where = where, .is_exclusive = exclusive});
    }
    [[nodiscard]] bool try_lock_alone(std::size_t who, byte_range_locks::range where, bool exclusive) {
        return alone_.try_lock({.owner = &opens_[who], .where = where, .is_exclusive = exclusive});
    }
    void one_turn(seeded_random& random);

    std::array<std::unique_ptr<shared_locks>, 2> servers_;
    std::array<std::unique_ptr<share_mode_lock_bytes>, 2> lock_bytes_;
    std::array<peer_claim, 2> claims_;
    std::array<open, 4> opens_;
    std::array<byte_range_locks, 2> tables_;
    byte_range_locks alone_;
    unsigned granted_ = 0;
    unsigned refused_ = 0;
};

void locks_of_two_servers::one_turn(seeded_random& random) {
    const std::size_t who = random.below(4);
    byte_range_locks& table = tables_[who / 2];
    const byte_range_locks::range where{.offset = random.below(12), .length = 1 + random.below(6)};
    const bool exclusive = random.below(3) == 0;
    switch (random.below(8)) {
        case 0:
        case 1:
        case 2: {
            const bool is_granted = try_lock(who, where, exclusive);
            ASSERT_EQ(is_granted, try_lock_alone(who, where, exclusive));
            ++(is_granted ? granted_ : refused_);
            break;
        }
        case 3: {
            const byte_range_locks::range beside{.offset = where.offset + 7, .length = 2};
            const std::array wanted{
                byte_range_locks::lock{.owner = &opens_[who], .where = where, .is_exclusive = exclusive},
                byte_range_locks::lock{.owner = &opens_[who], .where = beside, .is_exclusive = true}};
            ASSERT_EQ(table.try_lock_all(wanted), alone_.try_lock_all(wanted));
            break;
        }
        case 4:
            if (random.below(6) != 0) break;
            table.release_all(opens_[who]);
            alone_.release_all(opens_[who]);
            break;
        default:
            ASSERT_EQ(table.unlock(opens_[who], where), alone_.unlock(opens_[who], where));
    }
    for (std::size_t other = 0; other != opens_.size(); ++other) {
        const byte_range_locks::range asked{.offset = random.below(20), .length = 1 + random.below(3)};
        ASSERT_EQ(tables_[other / 2].allows_read(opens_[other], asked),
                  alone_.allows_read(opens_[other], asked));
        ASSERT_EQ(tables_[other / 2].allows_write(opens_[other], asked),
                  alone_.allows_write(opens_[other], asked));
    }
}

TEST_F(locks_of_two_servers, decide_like_the_locks_of_one_server) {
    seeded_random random(11);
    for (int turn = 0; turn != 20'000; ++turn) {
        one_turn(random);
        if (HasFatalFailure()) FAIL() << "turn " << turn;
    }
    EXPECT_GT(granted_, 500U);
    EXPECT_GT(refused_, 500U);
}

TEST_F(locks_of_two_servers, know_the_bytes_that_the_kernel_cannot_count_as_one) {
    const byte_range_locks::range far{.offset = std::uint64_t{1} << 63, .length = 1};
    const byte_range_locks::range farther{.offset = ~std::uint64_t{0}, .length = 1};
    ASSERT_TRUE(try_lock(0, far, true));
    ASSERT_TRUE(try_lock(0, farther, true));
    EXPECT_FALSE(try_lock(2, {.offset = far.offset + 5, .length = 1}, true)) << "safe, if not exact";
    EXPECT_TRUE(try_lock(2, {.offset = 0, .length = 1000}, true));
    ASSERT_TRUE(tables_[0].unlock(opens_[0], far));
    EXPECT_FALSE(try_lock(2, farther, false)) << "the other one is still there";
    ASSERT_TRUE(tables_[0].unlock(opens_[0], farther));
    EXPECT_TRUE(try_lock(2, farther, false));
}

TEST_F(locks_of_two_servers, that_wait_for_the_other_server_are_granted_when_tried_again) {
    const auto loop = io::best_available().value();
    ASSERT_TRUE(try_lock(0, {.offset = 0, .length = 10}, true));
    one_shot_event<smb::wire::nt_status> granted(*loop);
    byte_range_locks::waiter waiting{
        .wanted = {.owner = &opens_[2], .where = {.offset = 9, .length = 1}, .is_exclusive = false},
        .granted = &granted};
    tables_[1].enqueue(waiting);
    tables_[1].retry_waiters();
    EXPECT_FALSE(granted.is_set());
    ASSERT_TRUE(tables_[0].unlock(opens_[0], {.offset = 0, .length = 10}));
    tables_[1].retry_waiters();
    EXPECT_EQ(granted.value(), smb::wire::nt_status::success);
    EXPECT_FALSE(tables_[1].has_waiters());
    EXPECT_FALSE(tables_[0].allows_write(opens_[0], {.offset = 9, .length = 1}));
}

}  // namespace
}  // namespace sluice::cli
