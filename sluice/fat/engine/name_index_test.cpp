#include "sluice/fat/engine/name_index.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/random.hpp"

namespace sluice::fat {
namespace {

name_entry entry_at(std::uint32_t slot, std::string name, std::string alias) {
    return {.first_slot = slot, .slot = slot, .name = std::move(name), .alias = std::move(alias)};
}

TEST(name_index, finds_a_name_before_a_short_name_and_neither_once_it_leaves) {
    name_index index;
    index.add(entry_at(3, "Long Name", "LONGNA~1"));
    index.add(entry_at(5, "longna~1", ""));
    EXPECT_EQ(index.find("LONG name")->slot, 3U);
    EXPECT_EQ(index.find("LONGNA~1")->slot, 5U);
    index.leave(5);
    EXPECT_EQ(index.find("LONGNA~1")->slot, 3U);
    EXPECT_TRUE(index.is_leaving("LONGNA~1"));
    EXPECT_EQ(index.next(4), nullptr);
    index.leave(3);
    EXPECT_EQ(index.count(), 0U);
    index.erase(5);
    EXPECT_EQ(index.find("LONGNA~1"), nullptr);
    EXPECT_TRUE(index.has("longna~1")) << "it is still on the disk";
    index.erase(3);
    EXPECT_FALSE(index.is_leaving("LONGNA~1"));
    EXPECT_FALSE(index.has("longna~1"));
    EXPECT_FALSE(index.has("Long Name"));
}

// Damaged volumes may have several entries with one name.
TEST(name_index, finds_the_first_of_several_entries_with_the_same_name) {
    name_index index;
    for (std::uint32_t slot = 0; slot != 100; ++slot)
        index.add(entry_at(slot, "same", "ALIAS"));
    EXPECT_EQ(index.find("SAME")->slot, 0U);
    for (std::uint32_t slot = 0; slot != 99; ++slot) {
        index.erase(slot);
        ASSERT_NE(index.find("SAME"), nullptr);
        ASSERT_NE(index.find("alias"), nullptr);
    }
    index.erase(99);
    EXPECT_EQ(index.find("SAME"), nullptr);
}

TEST(name_index, random_calls_agree_with_maps) {
    seeded_random random(5);
    name_index index;
    std::map<std::uint32_t, std::pair<std::string, bool>> model;  // by slot: name, leaving
    for (int i = 0; i < 20'000; ++i) {
        const auto slot = static_cast<std::uint32_t>(random.below(2000));
        const std::string name = "Name " + std::to_string(random.below(3000));
        const auto there = model.find(slot);
        const bool is_taken = std::ranges::any_of(
            model, [&](const auto& each) { return each.second == std::pair(name, false); });
        if (there == model.end()) {
            if (is_taken) continue;
            index.add(entry_at(slot, name, {}));
            model[slot] = {name, false};
        } else if (there->second.second or random.below(4) == 0) {
            index.erase(slot);
            model.erase(there);
        } else {
            index.leave(slot);
            there->second.second = true;
        }
        const auto living =
            std::ranges::find(model, std::pair(name, false), [](auto& each) { return each.second; });
        const auto leaving =
            std::ranges::find(model, std::pair(name, true), [](auto& each) { return each.second; });
        const name_entry* const found = index.find(random.below(2) == 0 ? name : fold(name));
        ASSERT_EQ(found == nullptr, living == model.end());
        if (found != nullptr) ASSERT_EQ(found->slot, living->first);
        ASSERT_EQ(index.is_leaving(name), leaving != model.end());
        auto next = model.lower_bound(slot);
        while (next != model.end() and next->second.second)
            ++next;
        ASSERT_EQ(index.next(slot) == nullptr, next == model.end());
        if (next != model.end()) ASSERT_EQ(index.next(slot)->slot, next->first);
    }
}

}  // namespace
}  // namespace sluice::fat
