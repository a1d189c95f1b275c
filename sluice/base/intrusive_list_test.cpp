#include "sluice/base/intrusive_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

using testing::ElementsAre;

struct item {
    explicit item(int n) : number(n) {}
    int number;
    list_hook<item> link;
    list_hook<item> other_link;
};
using item_list = intrusive_list<item, &item::link>;
using other_list = intrusive_list<item, &item::other_link>;

template <class List>
std::vector<int> numbers(const List& list) {
    std::vector<int> seen;
    for (const item& each : list)
        seen.push_back(each.number);
    return seen;
}

template <class List>
void clear(List& list) {
    while (list.pop_front() != nullptr) {}
}

TEST(intrusive_list, is_empty_when_made_and_pops_null) {
    item_list list;
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.front(), nullptr);
    EXPECT_EQ(list.back(), nullptr);
    EXPECT_EQ(list.pop_front(), nullptr);
}

TEST(intrusive_list, pops_in_the_order_of_push_back) {
    item a(1), b(2), c(3);
    item_list list;
    list.push_back(a);
    list.push_back(b);
    list.push_front(c);
    EXPECT_THAT(numbers(list), ElementsAre(3, 1, 2));
    EXPECT_EQ(list.front(), &c);
    EXPECT_EQ(list.back(), &b);
    EXPECT_EQ(list.pop_front(), &c);
    EXPECT_EQ(list.pop_front(), &a);
    EXPECT_EQ(list.pop_front(), &b);
    EXPECT_TRUE(list.empty());
}

TEST(intrusive_list, a_hook_knows_whether_it_is_linked_even_as_the_only_one) {
    item a(1);
    item_list list;
    EXPECT_FALSE(a.link.is_linked());
    list.push_back(a);
    EXPECT_TRUE(a.link.is_linked());
    list.erase(a);
    EXPECT_FALSE(a.link.is_linked());
}

TEST(intrusive_list, erases_first_last_and_middle) {
    item a(1), b(2), c(3), d(4);
    item_list list;
    for (item* each : {&a, &b, &c, &d})
        list.push_back(*each);
    list.erase(b);
    EXPECT_THAT(numbers(list), ElementsAre(1, 3, 4));
    list.erase(d);
    EXPECT_EQ(list.back(), &c);
    list.erase(a);
    EXPECT_THAT(numbers(list), ElementsAre(3));
    list.erase(c);
    EXPECT_TRUE(list.empty());
}

TEST(intrusive_list, an_element_with_two_hooks_is_in_two_lists) {
    item a(1), b(2);
    item_list one;
    other_list two;
    one.push_back(a);
    one.push_back(b);
    two.push_back(b);
    two.push_back(a);
    EXPECT_THAT(numbers(one), ElementsAre(1, 2));
    EXPECT_THAT(numbers(two), ElementsAre(2, 1));
    clear(one);
    clear(two);
}

TEST(intrusive_list, moving_takes_the_elements_along) {
    item a(1), b(2);
    item_list from;
    from.push_back(a);
    from.push_back(b);
    item_list to = std::move(from);
    EXPECT_TRUE(from.empty());
    from = std::move(to);
    EXPECT_THAT(numbers(from), ElementsAre(1, 2));
    clear(from);
}

TEST(intrusive_list, append_keeps_the_order_and_empties_the_source) {
    item a(1), b(2), c(3);
    item_list one, two;
    one.append(std::move(two));
    EXPECT_TRUE(one.empty());
    two.push_back(a);
    one.append(std::move(two));
    two.push_back(b);
    two.push_back(c);
    one.append(std::move(two));
    EXPECT_TRUE(two.empty());
    EXPECT_THAT(numbers(one), ElementsAre(1, 2, 3));
    EXPECT_EQ(one.back(), &c);
    clear(one);
}

TEST(intrusive_list, an_element_may_be_erased_once_the_iterator_has_left_it) {
    item a(1), b(2), c(3);
    item_list list;
    for (item* each : {&a, &b, &c})
        list.push_back(*each);
    for (auto at = list.begin(); at != list.end();) {
        item& here = *at++;
        if (here.number != 2) list.erase(here);
    }
    EXPECT_THAT(numbers(list), ElementsAre(2));
    clear(list);
}

TEST(intrusive_list, behaves_like_a_deque_under_random_operations) {
    seeded_random random(1);
    std::vector<std::unique_ptr<item>> items;
    for (int i = 0; i < 20; ++i)
        items.push_back(std::make_unique<item>(i));
    item_list list;
    std::deque<int> model;
    for (int step = 0; step < 20'000; ++step) {
        item& chosen = *items[random.below(items.size())];
        if (chosen.link.is_linked()) {
            if (random.below(2) == 0) {
                list.erase(chosen);
                std::erase(model, chosen.number);
            } else {
                ASSERT_EQ(list.pop_front()->number, model.front());
                model.pop_front();
            }
        } else if (random.below(2) == 0) {
            list.push_back(chosen);
            model.push_back(chosen.number);
        } else {
            list.push_front(chosen);
            model.push_front(chosen.number);
        }
        ASSERT_EQ(numbers(list), std::vector<int>(model.begin(), model.end())) << "step " << step;
    }
    clear(list);
}

TEST(intrusive_list_death, misuse_stops_the_program) {
    EXPECT_DEATH(
        {
            item_list list;
            item a(1);
            list.push_back(a);
        },
        "destroyed while linked");
    EXPECT_DEATH(
        {
            item a(1);
            item_list list;
            list.push_back(a);
            list.push_back(a);
        },
        "in a list already");
    EXPECT_DEATH(
        {
            item a(1);
            item_list list;
            list.push_back(a);
        },
        "destroyed while it has elements");
    EXPECT_DEATH(
        {
            item a(1);
            item b(2);
            item_list list;
            item_list other;
            list.push_back(a);
            other.push_back(b);
            other.erase(a);
        },
        "another list");
}

}  // namespace
}  // namespace sluice
