#include <array>

#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The identity of a session before and after a reauthentication, in each state of the session:
// every cell of the tables in docs/formats/smb2_reauthentication.md. Also, the end of all resources
// of a removed user.

namespace sluice::smb_simulation {
namespace {

using smb::server::server_configuration;
using smb::server::session_status;
using smb::wire::command;
using smb::wire::nt_status;

enum class identity : std::uint8_t { account, unproved, removed, anonymous, guest };
constexpr std::array identities{"an account", "an account that authenticated anonymously",
                                "a removed account", "anonymous", "a guest"};

enum class renewal : std::uint8_t {
    same,
    other_case,
    other_domain,
    other_account,
    other_kind,  // the account of the same name was a user, and is now a guest, or vice versa
    anonymous,
    wrong_password
};
constexpr std::size_t renewals = 7;
constexpr std::array renewal_names{"the same account", "in another case",         "in another domain",
                                   "another account",  "the same, user or guest", "anonymous",
                                   "a wrong password"};

enum class phase : std::uint8_t { valid, expired, binding, binding_expired, gone };

/// The state of the session afterwards.
enum class fate : std::uint8_t {
    renewed,    // valid
    untouched,  // unchanged
    over
};

struct outcome {
    nt_status status;
    fate becomes;
};
constexpr outcome ok{nt_status::success, fate::renewed};
constexpr outcome taken{nt_status::success, fate::untouched};
constexpr outcome bad{nt_status::logon_failure, fate::over};
constexpr outcome denied{nt_status::access_denied, fate::over};
constexpr outcome gone{nt_status::user_session_deleted, fate::over};
constexpr outcome unbound{nt_status::access_denied, fate::untouched};
constexpr outcome wrong{nt_status::logon_failure, fate::untouched};
constexpr outcome keyless{nt_status::not_supported, fate::untouched};
constexpr outcome late{nt_status::network_session_expired, fate::untouched};

using row = std::array<outcome, renewals>;  // by renewal
struct table {
    phase state;
    std::array<row, identities.size()> rows;  // by identity
};

constexpr row all(const outcome& one) {
    return {one, one, one, one, one, one, one};
}

// clang-format off
constexpr table valid_session{phase::valid, {{
    //           same  case  domain other kind anonymous wrong
    /*account*/  {ok,  ok,   ok,    bad,  bad, taken,    bad},
    /*unproved*/ {ok,  ok,   ok,    bad,  bad, taken,    bad},
    /*removed*/  all(gone),
    /*anonym.*/  {bad, bad,  bad,   bad,  bad, ok,       bad},
    /*guest*/    {ok,  ok,   ok,    bad,  bad, taken,    bad}}}};
constexpr table expired_session{phase::expired, {{
    /*account*/  {ok,  ok,   ok,    bad,  bad, denied,   bad},
    /*unproved*/ {ok,  ok,   ok,    bad,  bad, denied,   bad},
    /*removed*/  all(gone),
    /*anonym.*/  {bad, bad,  bad,   bad,  bad, ok,       bad},
    /*guest*/    {ok,  ok,   ok,    bad,  bad, denied,   bad}}}};
constexpr table bound_session{phase::binding, {{
    /*account*/  {taken, taken, taken, unbound, unbound, unbound, wrong},
    /*unproved*/ {taken, taken, taken, unbound, unbound, unbound, wrong},
    /*removed*/  all(gone),
    /*anonym.*/  all(keyless),
    /*guest*/    all(keyless)}}};
constexpr table bound_expired_session{phase::binding_expired,
    {{all(late), all(late), all(gone), all(late), all(late)}}};
constexpr table ended_session{phase::gone, {{all(gone), all(gone), all(gone), all(gone), all(gone)}}};
// clang-format on

class reauthentication : public testing::Test {
protected:
    static void expire_after_an_hour(server_configuration& rules) {
        rules.session_lifetime = std::chrono::hours(1);
    }
    static void allow_guests(server_configuration& rules) {
        rules.session_lifetime = std::chrono::hours(1);
        rules.allows_guests = true;
    }

    // Guests are allowed only if the session begins as a guest, so that nothing else admits them.
    void begin(identity old) {
        const bool has_guests = old == identity::guest or old == identity::anonymous;
        where_ = std::make_unique<world>(io::simulation_options{.seed = 1}, 1,
                                         has_guests ? allow_guests : expire_after_an_hour);
        where_->admit(std::vector<std::string>{"u", "v"});
        if (old == identity::guest) where_->accounts.guest = "u";
        create_file();
        client_ = std::make_unique<compliant_client>(*where_);
        ASSERT_EQ(client_->log_on(old == identity::anonymous ? "" : "u", "p"), nt_status::success);
        ASSERT_EQ(client_->connect_tree("files"), nt_status::success);
        id_ = client_->current_ids().session;
        auto reading = compliant_client::for_everything();
        reading.desired_access = smb::wire::file_generic_read;
        file_ = client_->create("a", reading).file;
        if (old == identity::unproved) ASSERT_EQ(client_->log_on("", ""), nt_status::success);
        if (old == identity::removed) remove_user();
    }
    // Done as a user, because guests and anonymous clients may only read.
    void create_file() {
        compliant_client owner(*where_);
        ASSERT_EQ(owner.log_on("v", "p"), nt_status::success);
        ASSERT_EQ(owner.connect_tree("files"), nt_status::success);
        (void)owner.create("a");
    }
    void end() {
        client_.reset();
        where_->stop();
        where_.reset();
    }

    void remove_user() {
        where_->admit("v");
        EXPECT_EQ(where_->server->end_sessions_of_removed_users(), 1U);
    }

    [[nodiscard]] nt_status renew(compliant_client& by, renewal how, bool is_binding) {
        if (how == renewal::other_domain) by.domain = "ELSEWHERE";
        if (how == renewal::other_kind) {
            std::string& guest = where_->accounts.guest;
            guest = guest.empty() ? "u" : "";
        }
        std::string_view user = "u";
        if (how == renewal::other_case) user = "U";
        if (how == renewal::other_account) user = "v";
        if (how == renewal::anonymous) user = "";
        const std::string_view password = how == renewal::wrong_password ? "wrong" : "p";
        return is_binding ? by.bind_to(*client_, user, password) : by.log_on(user, password);
    }

    /// Returns the status of the session, or std::nullopt if it has ended.
    [[nodiscard]] std::optional<session_status> session() const {
        auto found = where_->server->snapshot({.sessions = std::span(&id_, 1)}).sessions;
        if (found.empty()) return std::nullopt;
        return found.front();
    }
    [[nodiscard]] nt_status read(compliant_client& by) const {
        return by.call(command::read, smb::wire::read_args{.file = file_, .length_bytes = 1}).status();
    }

    void expect(fate becomes, const std::optional<session_status>& before) {
        const std::optional<session_status> now = session();
        EXPECT_EQ(now.has_value(), becomes != fate::over);
        if (not now) {
            EXPECT_EQ(read(*client_), nt_status::user_session_deleted);
            EXPECT_EQ(where_->server->gauges().opens, 0U) << "no open outlives the session";
            return;
        }
        ASSERT_TRUE(before.has_value());
        EXPECT_EQ(now->user, before->user) << "the account of a session never changes";
        EXPECT_EQ(now->is_guest, before->is_guest);
        EXPECT_EQ(now->is_anonymous, before->is_anonymous);
        EXPECT_EQ(now->state, becomes == fate::untouched ? before->state : "valid");
        const bool is_expired = now->state == "expired";
        EXPECT_EQ(read(*client_), is_expired ? nt_status::network_session_expired : nt_status::end_of_file);
    }

    void check(identity old, renewal how, phase state, const outcome& expected) {
        ASSERT_NO_FATAL_FAILURE(begin(old));
        if (state == phase::expired or state == phase::binding_expired) where_->run();
        if (state == phase::gone) (void)client_->call(command::logoff, smb::wire::logoff_args{});
        const std::optional<session_status> before = session();
        const bool is_binding = state == phase::binding or state == phase::binding_expired;
        std::optional<compliant_client> second;
        if (is_binding) second.emplace(*where_);
        EXPECT_EQ(renew(is_binding ? *second : *client_, how, is_binding), expected.status);
        expect(expected.becomes, before);
        second.reset();
        end();
    }

    void check(const table& cells) {
        for (std::size_t old = 0; old != identities.size(); ++old)
            for (std::size_t how = 0; how != renewals; ++how) {
                SCOPED_TRACE(std::string(identities[old]) + ", then " + renewal_names[how]);
                check(identity(old), renewal(how), cells.state, cells.rows[old][how]);
            }
    }

    std::unique_ptr<world> where_;
    std::unique_ptr<compliant_client> client_;
    std::uint64_t id_ = 0;
    smb::wire::file_id file_{};
};

TEST_F(reauthentication, keeps_the_account_of_a_valid_session_or_ends_it) {
    check(valid_session);
}

TEST_F(reauthentication, revives_an_expired_session_for_the_same_account_only) {
    check(expired_session);
}

TEST_F(reauthentication, on_another_channel_requires_the_same_account_and_does_not_change_the_session) {
    check(bound_session);
}

TEST_F(reauthentication, on_another_channel_does_not_revive_an_expired_session) {
    check(bound_expired_session);
}

TEST_F(reauthentication, finds_no_session_after_it_ended) {
    check(ended_session);
}

// There is no identity yet, so each authentication is the first.
TEST_F(reauthentication, is_a_first_authentication_while_the_session_is_in_progress) {
    struct {
        identity as;
        nt_status status;
    } constexpr cells[] = {{identity::account, nt_status::success},
                           {identity::removed, nt_status::logon_failure},
                           {identity::anonymous, nt_status::access_denied},
                           {identity::guest, nt_status::logon_failure}};
    for (const auto& [as, status] : cells) {
        SCOPED_TRACE(identities[std::size_t(as)]);
        begin(identity::account);
        if (as == identity::guest) where_->accounts.guest = "v";
        if (as == identity::removed) where_->admit("u");
        std::optional<compliant_client> other(std::in_place, *where_);
        EXPECT_EQ(other->log_on(as == identity::anonymous ? "" : "v", "p"), status);
        EXPECT_EQ(where_->server->gauges().sessions, status == nt_status::success ? 2U : 1U);
        other.reset();
        end();
    }
}

TEST_F(reauthentication, that_begins_twice_ends_the_session) {
    begin(identity::account);
    EXPECT_EQ(client_->begin_logon(), nt_status::more_processing_required);
    EXPECT_EQ(read(*client_), nt_status::end_of_file)
        << "a valid session is served during its reauthentication";
    EXPECT_EQ(client_->begin_logon(), nt_status::invalid_parameter);
    EXPECT_FALSE(session().has_value());
    end();
}

TEST_F(reauthentication, by_an_anonymous_client_does_not_prolong_the_lifetime) {
    begin(identity::account);
    where_->clock.advance(std::chrono::minutes(50));
    EXPECT_EQ(client_->log_on("", ""), nt_status::success);
    where_->clock.advance(std::chrono::minutes(20));
    EXPECT_EQ(read(*client_), nt_status::network_session_expired);
    end();
}

TEST_F(reauthentication, as_anonymous_does_not_protect_a_session_from_the_removal_of_its_user) {
    begin(identity::unproved);
    EXPECT_EQ(read(*client_), nt_status::end_of_file);
    remove_user();
    EXPECT_EQ(read(*client_), nt_status::user_session_deleted);
    EXPECT_EQ(client_->log_on("", ""), nt_status::user_session_deleted);
    end();
}

class removed_user : public served {
protected:
    removed_user() : served() {}

    void remove() {
        where_.admit("somebody_else");
        EXPECT_EQ(server_of_test().end_sessions_of_removed_users(), 1U);
    }
};

TEST_F(removed_user, includes_a_user_whose_password_was_changed) {
    EXPECT_EQ(server_of_test().end_sessions_of_removed_users(), 0U);
    const smb::server::user_database::admission changed{.name = "u", .password = "another"};
    ASSERT_TRUE(where_.users.admit(std::span(&changed, 1)));
    EXPECT_EQ(server_of_test().end_sessions_of_removed_users(), 1U);
    EXPECT_EQ(client().log_on("u", "p"), nt_status::user_session_deleted);
}

TEST_F(removed_user, is_no_longer_served_on_any_channel) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(client(), "u", "p"), nt_status::success);
    const auto file = client().create("a").file;
    remove();
    const smb::wire::read_args reading{.file = file, .length_bytes = 1};
    EXPECT_EQ(client().call(command::read, reading).status(), nt_status::user_session_deleted);
    EXPECT_EQ(second.call(command::read, reading).status(), nt_status::user_session_deleted);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
    EXPECT_EQ(server_of_test().gauges().files, 0U);
}

TEST_F(removed_user, does_not_affect_other_sessions) {
    where_.admit(std::vector<std::string>{"u", "v"});
    compliant_client other(where_);
    ASSERT_EQ(other.log_on("v", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    where_.admit("v");
    EXPECT_EQ(server_of_test().end_sessions_of_removed_users(), 1U);
    EXPECT_EQ(server_of_test().end_sessions_of_removed_users(), 0U);
    EXPECT_EQ(other.connect_tree("files"), nt_status::success);
}

TEST_F(removed_user, is_informed_of_the_end_of_its_watches_and_pending_locks) {
    auto how = compliant_client::for_everything();
    how.options = smb::wire::create_options::directory_file;
    const auto directory = client().create("d", how).file;
    const std::uint64_t watching = client().send(
        command::change_notify,
        smb::wire::change_notify_args{
            .output_bytes_max = 1000, .file = directory, .filter = smb::wire::completion_filter(0xfff)});
    const auto first = client().create("a").file;
    const auto second = client().create("a").file;
    const auto element = smb::wire::encode_lock_element(
        {.offset_bytes = 0, .length_bytes = 10, .flags = smb::wire::lock_flags::exclusive});
    const auto lock = [&](const smb::wire::file_id& file) {
        return smb::wire::lock_args{.file = file, .elements = smb::wire::lock_list(std::span(&element, 1))};
    };
    ASSERT_EQ(client().call(command::lock, lock(first)).status(), nt_status::success);
    const std::uint64_t locking = client().send(command::lock, lock(second));
    ASSERT_NE(client().async_id_of(watching), 0U);
    ASSERT_NE(client().async_id_of(locking), 0U);
    remove();
    EXPECT_EQ(client().answer_to(watching).status(), nt_status::notify_cleanup);
    EXPECT_NE(client().answer_to(locking).status(), nt_status::success);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
    EXPECT_EQ(server_of_test().gauges().files, 0U);
}

TEST_F(removed_user, loses_durable_opens_with_and_without_a_connection) {
    auto how = compliant_client::for_everything();
    how.oplock_level = smb::wire::oplock_level::batch;
    how.contexts.durable = true;
    const auto kept = client().create("a", how);
    ASSERT_TRUE(kept.contexts.durable);
    client().close_connection();
    where_.clock.advance(std::chrono::seconds(1));

    compliant_client back(where_);
    ASSERT_EQ(back.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(back.connect_tree("files"), nt_status::success);
    ASSERT_TRUE(back.create("b", how).contexts.durable);
    ASSERT_EQ(server_of_test().gauges().opens, 2U);
    remove();
    EXPECT_EQ(server_of_test().gauges().opens, 0U);

    where_.admit("u");
    compliant_client again(where_);
    ASSERT_EQ(again.log_on("u", "p"), nt_status::success) << "a user of that name is admitted again";
    ASSERT_EQ(again.connect_tree("files"), nt_status::success);
    auto claim = compliant_client::for_everything();
    claim.oplock_level = smb::wire::oplock_level::batch;
    claim.contexts.durable_reconnect = kept.file;
    EXPECT_EQ(again.answer_to(again.send_create("a", claim)).status(), nt_status::object_name_not_found);
}

TEST_F(removed_user, cannot_complete_the_binding_of_a_channel) {
    compliant_client second(where_);
    second.use_ids(client().current_ids());
    remove();
    EXPECT_EQ(second.bind_to(client(), "u", "p"), nt_status::user_session_deleted);
}

}  // namespace
}  // namespace sluice::smb_simulation
