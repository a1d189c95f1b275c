#include "sluice/smb/server/file/share_modes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::smb::server {
namespace {

using wire::access_mask;
using wire::share_access;

// Every combination that matters for sharing: some rights need no share mode.
std::vector<sharing> all_kinds() {
    constexpr std::array rights{access_mask::read_data,     access_mask::write_data,
                                access_mask::append_data,   access_mask::execute,
                                access_mask::delete_object, access_mask::read_attributes};
    std::vector<sharing> kinds;
    for (unsigned chosen = 0; chosen != 1U << rights.size(); ++chosen) {
        access_mask access = access_mask::none;
        for (unsigned i = 0; i != rights.size(); ++i) {
            if ((chosen >> i & 1U) != 0) access |= rights[i];
        }
        for (unsigned share = 0; share != 8; ++share)
            kinds.push_back({.access = access, .share = static_cast<share_access>(share)});
    }
    return kinds;
}

bool can_coexist_with_all(const std::vector<sharing>& held, const sharing& fresh) {
    return std::ranges::all_of(held, [&](const sharing& each) { return can_coexist(each, fresh); });
}

TEST(share_mode_counts, let_any_first_open_join) {
    const share_mode_counts none;
    for (const sharing& each : all_kinds())
        EXPECT_TRUE(none.can_join(each));
}

TEST(share_mode_counts, decide_about_each_pair_as_can_coexist_does) {
    const std::vector<sharing> kinds = all_kinds();
    for (const sharing& held : kinds) {
        share_mode_counts counts;
        counts.add(held);
        for (const sharing& fresh : kinds)
            ASSERT_EQ(counts.can_join(fresh), can_coexist(held, fresh));
    }
}

TEST(share_mode_counts, decide_as_a_check_of_every_open_does_while_opens_come_and_go) {
    const std::vector<sharing> kinds = all_kinds();
    std::mt19937 random(20261125);
    std::uniform_int_distribution<std::size_t> any(0, kinds.size() - 1);
    share_mode_counts counts;
    std::vector<sharing> held;
    for (unsigned step = 0; step != 20'000; ++step) {
        const sharing fresh = kinds[any(random)];
        ASSERT_EQ(counts.can_join(fresh), can_coexist_with_all(held, fresh)) << "step " << step;
        // A few opens that conflict are added, too: overwriting has needs of its own.
        if (held.size() < 6 and (counts.can_join(fresh) or step % 7 == 0)) {
            counts.add(fresh);
            held.push_back(fresh);
        } else if (not held.empty()) {
            const std::size_t leaving = any(random) % held.size();
            counts.remove(held[leaving]);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(leaving));
        }
    }
}

TEST(share_mode_counts_death, an_open_is_not_removed_twice) {
    const sharing one{.access = access_mask::read_data, .share = share_access::read};
    share_mode_counts counts;
    counts.add(one);
    counts.remove(one);
    EXPECT_DEATH(counts.remove(one), "removed once");
}

}  // namespace
}  // namespace sluice::smb::server
