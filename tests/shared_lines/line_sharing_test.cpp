#include "tests/shared_lines/line_sharing.hpp"

#include <gtest/gtest.h>

namespace sluice::shared_lines {
namespace {

// Two executions on each of two cores; what an execution accesses is the argument.
class two_cores {
public:
    void run(unsigned core, const std::vector<access>& accesses) {
        const std::size_t begin = trace_.size();
        for (access each : accesses) {
            each.core = static_cast<std::uint8_t>(core);
            trace_.push_back(each);
        }
        executions_.push_back({.begin = begin, .end = trace_.size(), .core = core});
    }
    [[nodiscard]] std::vector<moving_line> found() const { return lines_that_move(trace_, executions_, 2); }

private:
    std::vector<access> trace_;
    std::vector<execution> executions_;
};

[[nodiscard]] access at(std::uintptr_t address, access_kind how) {
    return {.address = address, .bytes = 4, .kind = how};
}

TEST(lines_that_move, are_not_those_that_all_cores_only_read) {
    two_cores of;
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, {at(0x1000, access_kind::read)});
    EXPECT_TRUE(of.found().empty());
}

TEST(lines_that_move, are_not_those_of_one_core) {
    two_cores of;
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, {at(0x1000 + 0x40 * core, access_kind::write)});
    EXPECT_TRUE(of.found().empty());
}

TEST(lines_that_move, move_once_for_each_operation_that_changes_them) {
    two_cores of;
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, {at(0x1000, access_kind::change), at(0x1000, access_kind::change)});
    const auto found = of.found();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].address, 0x1000U);
    EXPECT_EQ(found[0].moves, 2U) << "in the second execution on each core";
    EXPECT_EQ(found[0].changes, 4U);
    EXPECT_EQ(found[0].shared_word, 0x1000U);
}

TEST(lines_that_move, include_lines_whose_words_belong_to_one_core_each) {
    two_cores of;
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, {at(0x1000 + 8 * core, access_kind::write)});
    const auto found = of.found();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].shared_word, 0U);
}

TEST(lines_that_move, move_to_a_reader_after_a_change_only) {
    two_cores of;
    of.run(0, {at(0x1000, access_kind::write)});
    of.run(1, {at(0x1000, access_kind::read)});
    of.run(0, {at(0x1000, access_kind::read)});
    of.run(1, {at(0x1000, access_kind::read)});
    EXPECT_TRUE(of.found().empty()) << "the only movement is that of the first execution";
    of.run(0, {at(0x1000, access_kind::write)});
    of.run(1, {at(0x1000, access_kind::read), at(0x1000, access_kind::read)});
    const auto found = of.found();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].moves, 2U) << "to the core that changes it, and to the reader";
}

TEST(lines_that_move, are_visited_in_sections_from_the_lock_to_the_unlock_of_a_mutex) {
    two_cores of;
    std::vector<access> steps{at(0x1000, access_kind::acquire)};
    for (std::uintptr_t i = 0; i != 98; ++i)
        steps.push_back(at(0x8000 + 0x40 * i, access_kind::read));
    steps.push_back(at(0x1000, access_kind::release));
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, steps);
    const auto found = of.found();
    ASSERT_EQ(found.size(), 1U);
    ASSERT_EQ(found[0].visits.size(), 2U);
    ASSERT_EQ(found[0].visits[0].size(), 1U);
    EXPECT_EQ(found[0].visits[0][0].how, visit::kind::section);
    EXPECT_DOUBLE_EQ(found[0].visits[0][0].from, 0.01);
    EXPECT_DOUBLE_EQ(found[0].visits[0][0].until, 1.0);
}

TEST(lines_that_move, are_visited_twice_if_much_else_is_accessed_in_between) {
    two_cores of;
    std::vector<access> steps{at(0x1000, access_kind::change)};
    for (std::uintptr_t i = 0; i != 98; ++i)
        steps.push_back(at(0x8000 + 0x40 * i, access_kind::read));
    steps.push_back(at(0x1000, access_kind::change));
    for (const unsigned core : {0U, 1U, 0U, 1U})
        of.run(core, steps);
    const auto found = of.found();
    ASSERT_EQ(found.size(), 1U);
    ASSERT_EQ(found[0].visits[1].size(), 2U);
    EXPECT_EQ(found[0].visits[1][0].how, visit::kind::write);
}

}  // namespace
}  // namespace sluice::shared_lines
