#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/rpc/rpc_host_testing.hpp"
#include "sluice/smb/wire/rpc/rpc_sam.hpp"

namespace sluice::smb::wire {
namespace {

using namespace rpc_testing;

constexpr std::uint32_t maximum_allowed = 0x02000000;
constexpr std::uint32_t no_such_domain = 0xC00000DF;
constexpr sid own_domain{5, {21, 1, 2, 3}};
constexpr sid builtin{5, {32}};
constexpr sid alice{5, {21, 7, 8, 9, 10}};
constexpr std::uint32_t number_of_alice = 10;

std::uint32_t status_of(const std::vector<std::byte>& results) {
    return bytes_view(results).take_at<le32>(results.size() - 4)->value();
}

constexpr std::uint32_t number(nt_status status) noexcept {
    return static_cast<std::uint32_t>(status);
}

class samr : public testing::Test {
protected:
    samr() {
        bind(pipe_, rpc_samr_interface);
        host_.accounts_.push_back({.id = sid_users, .use = sid_use::alias, .name = "Users", .domain = {}});
    }

    // The results of a call that opens an object begin with its handle, unless `skips` bytes do.
    static ndr_writer with(const std::vector<std::byte>& opened, std::initializer_list<std::uint32_t> numbers,
                           std::size_t skips = 0) {
        ndr_writer arguments(20'000);
        arguments.raw(*bytes_view(opened).from(skips)->first(20));
        for (const std::uint32_t one : numbers)
            arguments.u32(one);
        return arguments;
    }
    std::vector<std::byte> connect() {
        ndr_writer arguments(200);
        arguments.pointer(true);
        arguments.text("\\\\SERVER");
        arguments.u32(maximum_allowed);
        return call(pipe_, 57, arguments);
    }
    std::vector<std::byte> domain(const sid& which = own_domain) {
        ndr_writer arguments = with(connect(), {maximum_allowed});
        arguments.sid_referent(which);
        return call(pipe_, 7, arguments);
    }
    std::vector<std::byte> user() {
        return call(pipe_, 34, with(domain(), {maximum_allowed, number_of_alice}));
    }
    // Expects a list of accounts.
    void expect_listed(std::uint16_t operation, const ndr_writer& arguments,
                       std::initializer_list<std::pair<std::uint32_t, std::string>> accounts) {
        const auto results = call(pipe_, operation, arguments);
        ndr_reader in(results);
        EXPECT_TRUE(in.u32().has_value());
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.u32(), accounts.size());
        EXPECT_EQ(in.pointer(), accounts.size() != 0);
        if (accounts.size() != 0) EXPECT_EQ(in.u32(), accounts.size());
        std::vector<ndr_counted_text> heads;
        for (const auto& [id, name] : accounts) {
            EXPECT_EQ(in.u32(), id);
            heads.push_back(in.counted_text_head().value());
        }
        auto head = heads.begin();
        for (const auto& [id, name] : accounts)
            EXPECT_EQ(in.counted_text(*head++), name);
        EXPECT_EQ(in.u32(), accounts.size());
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(in.remaining(), 0u);
    }
    static std::vector<std::uint32_t> numbers_of(ndr_reader& in) {
        const std::uint32_t count = in.u32().value_or(0);
        EXPECT_EQ(in.pointer(), count != 0);
        if (count != 0) EXPECT_EQ(in.u32(), count);
        std::vector<std::uint32_t> numbers;
        while (numbers.size() != count)
            numbers.push_back(in.u32().value_or(0));
        return numbers;
    }

    host_of_tests host_;
    whole_pipe pipe_{rpc_service::samr, host_};
};

TEST_F(samr, connects_by_each_call) {
    ndr_writer first(200);
    first.pointer(true);
    first.u16('\\');
    first.u32(maximum_allowed);
    EXPECT_EQ(status_of(call(pipe_, 0, first)), 0u);
    EXPECT_EQ(status_of(connect()), 0u);
    ndr_writer fourth(200);
    for (const std::uint32_t one : {0u, 2u, maximum_allowed})
        fourth.u32(one);
    EXPECT_EQ(status_of(call(pipe_, 62, fourth)), 0u);
    ndr_writer fifth(200);
    for (const std::uint32_t one : {0u, maximum_allowed, 1u, 1u, 3u, 0u})
        fifth.u32(one);
    const auto results = call(pipe_, 64, fifth);
    ndr_reader in(results);
    for (const std::uint32_t expected : {1u, 1u, 3u, 0u})
        EXPECT_EQ(in.u32(), expected);
    EXPECT_EQ(status_of(results), 0u);
    EXPECT_EQ(status_of(call(pipe_, 1, with(results, {}, 16))), 0u);
}

TEST_F(samr, refuses_guests_and_the_anonymous) {
    host_.caller_.is_guest = true;
    EXPECT_EQ(status_of(connect()), number(nt_status::access_denied));
    host_.caller_ = {.is_anonymous = true};
    EXPECT_EQ(status_of(connect()), number(nt_status::access_denied));
}

TEST_F(samr, lists_finds_and_opens_its_domains) {
    expect_listed(6, with(connect(), {0, 0xFFFF}), {{0, "SERVER"}, {0, "Builtin"}});
    for (const auto& [name, found] : {std::pair{"server", own_domain}, {"BUILTIN", builtin}}) {
        ndr_writer arguments = with(connect(), {});
        arguments.counted_text_head(name);
        arguments.counted_text(name);
        const auto results = call(pipe_, 5, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.pointer(), true);
        EXPECT_EQ(in.sid_referent(), found);
        EXPECT_EQ(in.u32(), 0u);
        EXPECT_EQ(status_of(domain(found)), 0u);
    }
    ndr_writer other = with(connect(), {});
    other.counted_text_head("other");
    other.counted_text("other");
    EXPECT_EQ(status_of(call(pipe_, 5, other)), no_such_domain);
    EXPECT_EQ(status_of(domain(alice)), no_such_domain);
}

TEST_F(samr, lists_users_groups_and_aliases) {
    expect_listed(13, with(domain(), {0, 0, 0xFFFF}), {{number_of_alice, "alice"}});
    expect_listed(13, with(domain(), {number_of_alice, 0, 0xFFFF}), {});
    expect_listed(11, with(domain(), {0, 0xFFFF}), {{513, "None"}});
    expect_listed(15, with(domain(), {0, 0xFFFF}), {});
    expect_listed(15, with(domain(builtin), {0, 0xFFFF}), {{545, "Users"}});
    expect_listed(13, with(domain(builtin), {0, 0, 0xFFFF}), {});
}

TEST_F(samr, lists_many_users_in_parts) {
    for (std::uint32_t i = 0; i != 1200; ++i)
        host_.accounts_.push_back({.id = {5, {21, 1, 1, 1, 2000 + i}}, .use = sid_use::user, .name = "u"});
    const auto opened = domain();
    ASSERT_TRUE(pipe_.write(request(13, with(opened, {0, 0, 0xFFFF}).bytes())));
    std::vector<std::byte> all;
    while (pipe_.readable_bytes() != 0) {
        const message part = next_message(pipe_);
        all.insert(all.end(), part.body.begin() + sizeof(rpc_call_head), part.body.end());
    }
    EXPECT_EQ(bytes_view(all).take_at<le32>(8)->value(), 1000u);
    EXPECT_EQ(status_of(all), number(nt_status::more_entries));
    const std::uint32_t last = bytes_view(all).take_at<le32>(0)->value();
    EXPECT_EQ(last, 2000u + 998);
}

TEST_F(samr, looks_names_and_numbers_up) {
    ndr_writer names = with(domain(), {2, 1000, 0, 2});
    for (const char* const one : {"ALICE", "nobody"})
        names.counted_text_head(one);
    for (const char* const one : {"ALICE", "nobody"})
        names.counted_text(one);
    const auto found = call(pipe_, 17, names);
    ndr_reader in(found);
    EXPECT_EQ(numbers_of(in), (std::vector<std::uint32_t>{number_of_alice, 0}));
    EXPECT_EQ(numbers_of(in), (std::vector<std::uint32_t>{1, 8}));
    EXPECT_EQ(in.u32(), number(nt_status::some_not_mapped));

    const auto named = call(pipe_, 18, with(domain(), {2, 1000, 0, 2, 7, number_of_alice}));
    ndr_reader texts(named);
    for (const std::uint32_t expected : {2u})
        EXPECT_EQ(texts.u32(), expected);
    EXPECT_EQ(texts.pointer(), true);
    EXPECT_EQ(texts.u32(), 2u);
    EXPECT_FALSE(texts.counted_text_head()->is_present);
    const auto head = texts.counted_text_head();
    EXPECT_EQ(texts.counted_text(*head), "alice");
    EXPECT_EQ(numbers_of(texts), (std::vector<std::uint32_t>{8, 1}));
    EXPECT_EQ(texts.u32(), number(nt_status::some_not_mapped));
    EXPECT_EQ(status_of(call(pipe_, 18, with(domain(), {1, 1000, 0, 1, 7}))), number(nt_status::none_mapped));
}

// The accounts of the server are not collected for a call about some of them.
TEST_F(samr, searches_the_server_once_for_each_account) {
    const auto opened = user();
    const auto own = domain();
    host_.searches_ = 0;
    (void)call(pipe_, 18, with(own, {2, 1000, 0, 2, 7, number_of_alice}));
    EXPECT_EQ(host_.searches_, 2u);
    ndr_writer information = with(opened, {});
    information.u16(7);
    (void)call(pipe_, 36, information);
    EXPECT_EQ(host_.searches_, 3u);
    (void)call(pipe_, 65, with(own, {number_of_alice}));
    EXPECT_EQ(host_.searches_, 4u);
    (void)call(pipe_, 34, with(own, {maximum_allowed, number_of_alice}));
    EXPECT_EQ(host_.searches_, 5u);
}

TEST_F(samr, finds_the_group_and_the_aliases_by_name) {
    for (const auto& [which, name, id, use] : {std::tuple{own_domain, "none", 513u, 2u},
                                               {builtin, "USERS", 545u, 4u},
                                               {builtin, "None", 0u, 8u}}) {
        ndr_writer names = with(domain(which), {1, 1000, 0, 1});
        names.counted_text_head(name);
        names.counted_text(name);
        const auto found = call(pipe_, 17, names);
        ndr_reader in(found);
        EXPECT_EQ(numbers_of(in), std::vector<std::uint32_t>{id}) << name;
        EXPECT_EQ(numbers_of(in), std::vector<std::uint32_t>{use}) << name;
    }
}

TEST_F(samr, describes_a_user_at_each_level) {
    const auto opened = user();
    EXPECT_EQ(status_of(opened), 0u);
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{1, 6, 7, 8, 9, 16, 21, 3}) {
        ndr_writer arguments = with(opened, {});
        arguments.u16(which);
        const auto results = call(pipe_, which == 21 ? 47 : 36, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.pointer(), which != 3);
        if (which == 3) {
            EXPECT_EQ(in.u32(), number(nt_status::invalid_info_class));
            continue;
        }
        EXPECT_EQ(in.u16(), which);
        EXPECT_TRUE(in.raw(2).has_value());
        if (which == 21) EXPECT_TRUE(in.raw(6 * 8).has_value());
        if (which == 9) EXPECT_EQ(in.u32(), 513u);
        if (which == 16) EXPECT_EQ(in.u32(), 0x210u);
        if (which != 9 and which != 16) {
            const auto head = in.counted_text_head();
            EXPECT_TRUE(head->is_present);
        }
        EXPECT_EQ(status_of(results), 0u) << which;
    }
    EXPECT_EQ(status_of(call(pipe_, 34, with(domain(), {maximum_allowed, 513}))),
              number(nt_status::no_such_user));
}

TEST_F(samr, returns_the_groups_and_aliases_of_a_user) {
    const auto groups = call(pipe_, 39, with(user(), {}));
    ndr_reader in(groups);
    EXPECT_EQ(in.pointer(), true);
    EXPECT_EQ(in.u32(), 1u);
    EXPECT_EQ(in.pointer(), true);
    for (const std::uint32_t expected : {1u, 513u, 7u, 0u})
        EXPECT_EQ(in.u32(), expected);
    for (const sid& which : {builtin, own_domain}) {
        ndr_writer arguments = with(domain(which), {1, 1, 1, 1});
        arguments.sid_referent(alice);
        const auto aliases = call(pipe_, 16, arguments);
        ndr_reader numbers(aliases);
        EXPECT_EQ(numbers_of(numbers).size(), which == builtin ? 1u : 0u);
        EXPECT_EQ(status_of(aliases), 0u);
    }
}

TEST_F(samr, returns_the_sid_that_descriptors_have_for_a_user) {
    const auto results = call(pipe_, 65, with(domain(), {number_of_alice}));
    ndr_reader in(results);
    EXPECT_EQ(in.pointer(), true);
    EXPECT_EQ(in.sid_referent(), alice);
    EXPECT_EQ(in.u32(), 0u);
    EXPECT_EQ(status_of(call(pipe_, 65, with(domain(), {7}))), number(nt_status::no_such_user));
}

TEST_F(samr, describes_its_domains) {
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{1, 2, 5, 9}) {
        ndr_writer arguments = with(domain(), {});
        arguments.u16(which);
        const auto results = call(pipe_, which == 5 ? 46 : 8, arguments);
        ndr_reader in(results);
        EXPECT_EQ(in.pointer(), which != 9);
        if (which == 9) {
            EXPECT_EQ(in.u32(), number(nt_status::invalid_info_class));
            continue;
        }
        EXPECT_EQ(in.u16(), which);
        EXPECT_TRUE(in.raw(2).has_value());
        if (which == 1) EXPECT_TRUE(in.raw(24).has_value());
        if (which == 2) EXPECT_TRUE(in.raw(8 + 8 + 8 + 8 + 8 + 3 * 4).has_value());
        if (which == 2)
            for (const std::uint32_t expected : {1u, 1u, 0u})
                EXPECT_EQ(in.u32(), expected);
        if (which == 5) {
            const auto head = in.counted_text_head();
            EXPECT_EQ(in.counted_text(*head), "SERVER");
        }
        EXPECT_EQ(status_of(results), 0u);
    }
}

TEST_F(samr, faults_a_handle_of_another_kind) {
    const auto server = connect();
    const auto opened = user();
    for (const std::uint16_t operation : std::initializer_list<std::uint16_t>{13, 11, 15, 34, 65}) {
        ASSERT_TRUE(pipe_.write(request(operation, with(server, {0, 0, 0}).bytes())));
        EXPECT_EQ(fault_of(next_message(pipe_)), 0x1C00001Au) << operation;
    }
    ASSERT_TRUE(pipe_.write(request(6, with(opened, {0, 0}).bytes())));
    EXPECT_EQ(fault_of(next_message(pipe_)), 0x1C00001Au);
}

TEST_F(samr, faults_arguments_that_end_early) {
    for (const std::uint16_t operation : std::initializer_list<std::uint16_t>{
             0, 1, 5, 6, 7, 8, 11, 13, 15, 16, 17, 18, 34, 36, 39, 46, 47, 57, 62, 64, 65}) {
        ASSERT_TRUE(pipe_.write(request(operation, {})));
        EXPECT_EQ(fault_of(next_message(pipe_)), 0x6F7u) << operation;
    }
}

}  // namespace
}  // namespace sluice::smb::wire
