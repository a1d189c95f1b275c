#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/interleave/open_protocol_model.hpp"

namespace sluice::interleave::names {
namespace {

using wire_access = smb::wire::access_mask;
using wire_share = smb::wire::share_access;

constexpr sharing alone{.access = wire_access::read_data | wire_access::write_data,
                        .share = wire_share::none};
constexpr sharing shares_all{
    .access = wire_access::read_data | wire_access::delete_object,
    .share = wire_share::read | wire_share::write | wire_share::remove,
};

// Up to three concurrent requests. `expected` receives their statuses, in order.
class requests final : public scenario {
public:
    static constexpr std::size_t most = 4;
    struct state {
        world in;
        std::array<open, most> opens;
        std::array<nt_status, most> statuses{};

        explicit state(omissions without) : in(without) {}
    };
    using request = std::function<nt_status(state&)>;
    using check = std::function<bool(const state&)>;

    requests(omissions without, const std::vector<request>& before, std::vector<request> all, check expected)
        : state_(without), requests_(std::move(all)), expected_(std::move(expected)) {
        for (const request& each : before)
            (void)each(state_);
    }

    std::vector<std::function<void()>> threads() override {
        std::vector<std::function<void()>> all;
        for (std::size_t i = 0; i != requests_.size(); ++i)
            all.emplace_back([this, i] { state_.statuses.at(i) = requests_[i](state_); });
        return all;
    }
    std::string verdict() override {
        const bool is_expected = expected_(state_);
        std::vector<open*> left;
        for (open& each : state_.opens)
            left.push_back(&each);
        std::string problem = state_.in.verdict(left);
        if (problem.empty() and not is_expected)
            problem = "no sequential order of the requests has these statuses";
        return problem;
    }

private:
    state state_;
    std::vector<request> requests_;
    check expected_;
};

using state = requests::state;

[[nodiscard]] requests::request creating(std::size_t open, create_request wanted,
                                         std::string directory = "d") {
    return [=](state& s) { return s.in.create(wanted, s.opens.at(open), directory); };
}
[[nodiscard]] requests::request end_of(std::size_t open) {
    return [=](state& s) { return s.in.close(s.opens.at(open)); };
}
[[nodiscard]] requests::request creating_and_ending(std::size_t open, create_request wanted) {
    return [=](state& s) {
        const nt_status status = s.in.create(wanted, s.opens.at(open));
        if (status == nt_status::success) (void)s.in.close(s.opens.at(open));
        return status;
    };
}
[[nodiscard]] requests::request renaming(std::size_t open, std::string from, std::string to) {
    return [=](state& s) { return s.in.rename(s.opens.at(open), from, to); };
}

const create_request open_a{.name = "a", .mode = shares_all};
const create_request make_a{.name = "a", .mode = shares_all, .missing = when_missing::create};
const create_request new_a{
    .name = "a", .mode = shares_all, .missing = when_missing::create, .found = when_found::fail};
const create_request make_a_alone{.name = "a", .mode = alone, .missing = when_missing::create};
const create_request make_a_until_close{
    .name = "a", .mode = shares_all, .missing = when_missing::create, .deletes_on_close = true};
const create_request make_b{.name = "b", .mode = shares_all, .missing = when_missing::create};

[[nodiscard]] report try_all(const std::vector<requests::request>& before,
                             const std::vector<requests::request>& all, const requests::check& expected,
                             omissions without = {}) {
    return explore([&] { return std::make_unique<requests>(without, before, all, expected); });
}

void expect_right(const report& found) {
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 5U);
    testing::Test::RecordProperty("schedules", std::to_string(found.schedules));
}

[[nodiscard]] bool has(const state& s, std::size_t request, nt_status status) {
    return s.statuses.at(request) == status;
}
[[nodiscard]] bool any_order(const state&) {
    return true;
}

TEST(open_protocol_interleavings, one_of_two_creates_of_a_new_name_succeeds) {
    const auto one_is_first = [](const state& s) {
        return (has(s, 0, nt_status::success) and has(s, 1, nt_status::object_name_collision)) or
               (has(s, 1, nt_status::success) and has(s, 0, nt_status::object_name_collision));
    };
    expect_right(try_all({}, {creating(0, new_a), creating(1, new_a)}, one_is_first));
}

TEST(open_protocol_interleavings, creator_of_a_file_does_not_fail_because_of_an_open_that_finds_it) {
    const auto one_has_it = [](const state& s) {
        return (has(s, 0, nt_status::success) and has(s, 1, nt_status::sharing_violation)) or
               (has(s, 1, nt_status::success) and has(s, 0, nt_status::sharing_violation));
    };
    const std::vector<requests::request> all{creating(0, make_a_alone), creating(1, make_a_alone)};
    expect_right(try_all({}, all, one_has_it));
    EXPECT_EQ(try_all({}, all, one_has_it, {.pending_creates = true}).problem,
              "the creator of a file is refused");
}

TEST(open_protocol_interleavings, create_that_fails_late_leaves_no_trace_for_others) {
    create_request failing = make_a_alone;
    failing.fails_late = true;
    const auto other_succeeds = [](const state& s) {
        const bool is_second = has(s, 0, nt_status::sharing_violation);
        return (is_second or has(s, 0, nt_status::insufficient_resources)) and has(s, 1, nt_status::success);
    };
    expect_right(try_all({}, {creating(0, failing), creating(1, make_a_alone)}, other_succeeds));
}

TEST(open_protocol_interleavings, opened_file_has_not_been_removed) {
    // The last CLOSE removes the file; the CREATE finds it, or creates another with the same inode
    // number.
    const auto makes_or_waits = [](const state& s) {
        return has(s, 1, nt_status::success) or has(s, 1, nt_status::delete_pending);
    };
    const std::vector<requests::request> before{creating(0, make_a_until_close)};
    const std::vector<requests::request> all{end_of(0), creating(1, make_a)};
    expect_right(try_all(before, all, makes_or_waits));
    EXPECT_EQ(try_all(before, all, makes_or_waits, {.removal_count = true}).problem,
              "a removed file is opened");
}

TEST(open_protocol_interleavings, last_of_two_closes_removes_the_file) {
    const std::vector<requests::request> before{creating(0, make_a_until_close), creating(1, open_a)};
    const auto is_removed = [](const state& s) { return not s.in.has("a"); };
    expect_right(try_all(before, {end_of(0), end_of(1)}, is_removed));
}

TEST(open_protocol_interleavings, create_that_fails_after_the_last_close_removes_the_file) {
    create_request failing = open_a;
    failing.fails_late = true;
    const auto is_removed = [](const state& s) { return not s.in.has("a"); };
    expect_right(try_all({creating(0, make_a_until_close)}, {end_of(0), creating(1, failing)}, is_removed));
}

TEST(open_protocol_interleavings, three_creates_and_removals_of_one_name_end) {
    const requests::request brief = creating_and_ending(0, make_a_until_close);
    expect_right(try_all({}, {brief, creating_and_ending(1, make_a_alone), creating_and_ending(2, open_a)},
                         any_order));
}

TEST(open_protocol_interleavings, create_by_the_old_name_is_atomic_with_a_rename) {
    const auto is_atomic = [](const state& s) {
        return has(s, 0, nt_status::success) and
               (has(s, 1, nt_status::success) or has(s, 1, nt_status::object_name_not_found));
    };
    expect_right(try_all({creating(0, make_a)}, {renaming(0, "a", "b"), creating(1, open_a)}, is_atomic));
}

TEST(open_protocol_interleavings, replaced_file_is_not_opened) {
    const std::vector<requests::request> before{creating(0, make_a), creating_and_ending(1, make_b)};
    const create_request open_b{.name = "b", .mode = shares_all};
    const auto one_is_first = [](const state& s) {
        return has(s, 1, nt_status::success) and
               (has(s, 0, nt_status::success) or has(s, 0, nt_status::access_denied));
    };
    const std::vector<requests::request> all{renaming(0, "a", "b"), creating(1, open_b)};
    expect_right(try_all(before, all, one_is_first));
    EXPECT_NE(try_all(before, all, one_is_first, {.marks = true}).problem, "");
}

TEST(open_protocol_interleavings, removal_does_not_delete_the_file_that_is_renamed_onto_its_name) {
    const create_request make_b_until_close{
        .name = "b", .mode = shares_all, .missing = when_missing::create, .deletes_on_close = true};
    const std::vector<requests::request> before{creating(0, make_a), creating(1, make_b_until_close)};
    const auto is_there = [](const state& s) {
        return has(s, 0, nt_status::success) ? s.in.has("b") and not s.in.has("a") : s.in.has("a");
    };
    expect_right(try_all(before, {renaming(0, "a", "b"), end_of(1)}, is_there));
}

TEST(open_protocol_interleavings, rename_removal_and_create_of_one_name_end) {
    const create_request make_b_until_close{
        .name = "b", .mode = shares_all, .missing = when_missing::create, .deletes_on_close = true};
    const std::vector<requests::request> before{creating(0, make_a), creating(1, make_b_until_close)};
    const requests::request third = creating(2, make_b);
    expect_right(try_all(before, {renaming(0, "a", "b"), end_of(1), third}, any_order));
}

TEST(open_protocol_interleavings, create_that_fails_does_not_disturb_a_rename_onto_its_name) {
    create_request failing = make_b;
    failing.fails_late = true;
    const auto is_there = [](const state& s) { return s.in.has(has(s, 0, nt_status::success) ? "b" : "a"); };
    const std::vector<requests::request> before{creating(0, make_a)};
    const std::vector<requests::request> all{renaming(0, "a", "b"), creating(1, failing)};
    expect_right(try_all(before, all, is_there));
    EXPECT_EQ(try_all(before, all, is_there, {.pending_renames = true}).problem,
              "the creator of a file is refused");
}

TEST(open_protocol_interleavings, two_renames_onto_each_others_names_end) {
    const std::vector<requests::request> before{creating(0, make_a), creating(1, make_b)};
    const auto both_are_refused = [](const state& s) {
        return has(s, 0, nt_status::access_denied) and has(s, 1, nt_status::access_denied);
    };
    expect_right(try_all(before, {renaming(0, "a", "b"), renaming(1, "b", "a")}, both_are_refused));
}

TEST(open_protocol_interleavings, directory_is_not_renamed_above_an_open_file) {
    const auto one_is_first = [](const state& s) {
        return (has(s, 0, nt_status::success) and has(s, 1, nt_status::object_path_not_found)) or
               (has(s, 0, nt_status::access_denied) and has(s, 1, nt_status::success));
    };
    const auto directory = [](state& s) { return s.in.rename_directory("e"); };
    const std::vector<requests::request> all{directory, creating(0, make_a)};
    expect_right(try_all({}, all, one_is_first));
    EXPECT_EQ(try_all({}, all, one_is_first, {.barrier = true}).problem,
              "the path of an open file changes with its directory");
}

TEST(open_protocol_interleavings, directory_is_not_renamed_above_one_of_two_opens) {
    const auto directory = [](state& s) { return s.in.rename_directory("e"); };
    expect_right(try_all({}, {directory, creating(0, make_a), creating_and_ending(1, make_b)}, any_order));
}

TEST(open_protocol_interleavings, deleted_directory_has_no_file) {
    const auto one_is_first = [](const state& s) {
        return (has(s, 0, nt_status::success) and not has(s, 1, nt_status::success)) or
               (has(s, 0, nt_status::directory_not_empty) and has(s, 1, nt_status::success));
    };
    const auto removing = [](state& s) { return s.in.delete_directory(); };
    const std::vector<requests::request> all{removing, creating(0, make_a)};
    expect_right(try_all({}, all, one_is_first));
    EXPECT_NE(try_all({}, all, one_is_first, {.directory_changes = true}).problem, "");
}

}  // namespace
}  // namespace sluice::interleave::names
