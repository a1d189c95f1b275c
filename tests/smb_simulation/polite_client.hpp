#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "tests/smb_simulation/simulated_client.hpp"
#include "tests/smb_simulation/world.hpp"

namespace sluice::smb_simulation {

/// A client for tests that know what they want to hear: one request, its answer, as plain calls that run the
/// simulation meanwhile. It neither signs nor encrypts. SMB 3.0.2, or 3.1.1 without ciphers. Thread safety:
/// the loop's thread.
class polite_client final : private simulated_client {
public:
    /// What the server said last to a request: an interim answer is not the last.
    struct answer {
        std::vector<std::byte> bytes;

        [[nodiscard]] smb::wire::message_view message() const { return *smb::wire::message_view::of(bytes); }
        /// `network_name_deleted` with no bytes at all: the server has hung up.
        [[nodiscard]] smb::wire::nt_status status() const;
    };

    /// Connects and agrees on a dialect. The world outlives the client. Clients of one `seed` have one client
    /// GUID.
    explicit polite_client(world& where, std::uint64_t seed = 1);
    /// The same with SMB 3.1.1, offering these algorithms, of which there is one at least.
    polite_client(world& where, std::vector<smb::wire::signing_algorithm> offered);
    /// The same, from another address.
    polite_client(world& where, const io::socket_address& from, std::uint64_t seed = 1);
    polite_client(const polite_client&) = delete;
    polite_client& operator=(const polite_client&) = delete;
    /// Hangs up, and lets everything come to its end.
    ~polite_client();
    /// Is not there any more, while all others go on.
    void hang_up() { EXPECT_TRUE(socket_.close()); }
    /// Says nothing more, and goes on listening.
    void fall_silent() { EXPECT_TRUE(socket_.shutdown(io::direction::out)); }

    /// Makes a session, or authenticates again in the one there is. No user: as nobody.
    smb::wire::nt_status log_on(std::string_view user, std::string_view password);
    /// Sends the first token of an authentication only. The session's id is known afterwards.
    smb::wire::nt_status begin_log_on();
    /// Starts a session and leaves it unfinished. Returns the status of the reply.
    smb::wire::nt_status begin_session();
    /// Sends the proof of a password, and does not wait for the answer; gives the message id.
    std::uint64_t send_proof(std::string_view user, std::string_view password);
    /// Sends the length of a frame, and nothing of the frame.
    void announce_frame(std::size_t bytes);
    /// What the server said of the session.
    [[nodiscard]] smb::wire::session_flags session_flags() const { return session_flags_; }
    smb::wire::nt_status connect_tree(std::string_view share);
    /// Makes this connection a channel of the session of another, who stays logged on, and stands in that
    /// session's tree from then on.
    smb::wire::nt_status bind_to(const polite_client& first, std::string_view user,
                                 std::string_view password);

    /// Opens, and returns the status of that alone.
    smb::wire::nt_status try_create(std::string_view name, const smb::wire::create_args& how) {
        return answer_to(send_create(name, how)).status();
    }
    /// Opens for everything, shared with everybody, unless `how` says otherwise.
    smb::wire::create_reply create(std::string_view name,
                                   const smb::wire::create_args& how = for_everything());
    /// The same without waiting for the answer; gives the message id.
    std::uint64_t send_create(std::string_view name, smb::wire::create_args how = for_everything());
    [[nodiscard]] static smb::wire::create_args for_everything();

    /// The domain that the client names when it authenticates.
    std::string domain;
    /// What the headers of the requests to come have.
    smb::wire::header_flags flags = smb::wire::header_flags::none;
    std::uint16_t charge = 1;
    std::uint16_t credits_wanted = 16;
    std::uint16_t channel_sequence = 0;  // failures of channels that it knows of
    /// Bytes of what it sends that still arrive; then it hangs up.
    std::optional<std::size_t> sends_at_most;
    /// Message ids it may still use.
    [[nodiscard]] std::uint64_t credits() const noexcept { return credits_; }

    /// The algorithm that the server chose; std::nullopt if it left that to the default, AES-CMAC.
    [[nodiscard]] std::optional<smb::auth::signing_algorithm> chosen_signing() const {
        return signing_was_chosen_ ? std::optional(signing_) : std::nullopt;
    }
    /// Whether what it sends is signed with the key of its session or channel.
    void sign(bool does);
    /// The frames that went last, as they were.
    [[nodiscard]] const std::vector<std::byte>& last_sent() const noexcept { return last_sent_; }
    /// The first frame of the last authentication.
    [[nodiscard]] const std::vector<std::byte>& first_of_authentication() const noexcept {
        return first_of_authentication_;
    }
    /// The last result of answer_to().
    [[nodiscard]] const answer& last_answer() const noexcept { return last_answer_; }
    /// Sends a frame that another client sent, byte for byte; gives its message id.
    std::uint64_t send_copy(const std::vector<std::byte>& frame);
    [[nodiscard]] bool is_signed_by_key(const answer& said);
    /// The header of the interim answer to a request sent.
    [[nodiscard]] smb::wire::header interim_of(std::uint64_t message_id);

    /// The session and the tree that requests are sent in; none: those that are made next.
    struct standing {
        std::uint64_t session = 0;
        std::uint32_t tree = 0;
    };
    [[nodiscard]] standing stands() const noexcept { return {.session = session_id_, .tree = tree_id_}; }
    void stand(const standing& where) noexcept {
        session_id_ = where.session;
        tree_id_ = where.tree;
    }

    /// Sends a request, and gives its message id. Of a compound nothing goes before its end.
    template <class Args>
    std::uint64_t send(smb::wire::command code, const Args& args) {
        const std::uint64_t id = next_message_id_;
        put(code, args);
        if (not is_in_compound()) send_all();
        return id;
    }
    using simulated_client::begin_compound;
    void end_compound() {
        simulated_client::end_compound();
        send_all();
    }
    /// Asks to end a request that waits, by the async id it was given.
    void cancel(std::uint64_t async_id);

    /// The async id in the interim answer to a request sent.
    [[nodiscard]] std::uint64_t async_id_of(std::uint64_t message_id);
    /// Whether the last answer has come; asks the server something else, so that it would have.
    [[nodiscard]] bool is_answered(std::uint64_t message_id);
    /// The last answer to a request sent.
    [[nodiscard]] answer answer_to(std::uint64_t message_id);
    template <class Args>
    [[nodiscard]] answer call(smb::wire::command code, const Args& args) {
        return answer_to(send(code, args));
    }

private:
    void take_message(const smb::wire::message_view& message) override;
    void adjust(smb::wire::header& header) override;
    bool run(io::task<bool> what);
    void send_all();
    smb::wire::nt_status authenticate(std::string_view user, std::string_view password,
                                      smb::wire::session_setup_flags how);

    world& world_;
    io::task_group tasks_;
    std::map<std::uint64_t, answer> answers_;              // not asked for yet
    std::map<std::uint64_t, smb::wire::header> interims_;  // by message id
    std::vector<std::byte> last_sent_;
    std::vector<std::byte> first_of_authentication_;
    answer last_answer_;
    std::uint64_t cancelled_async_id_ = 0;
    smb::auth::signing_algorithm signing_ = smb::auth::signing_algorithm::aes_cmac;
    bool signing_was_chosen_ = false;          // by the server's reply; otherwise it is the default
    smb::auth::secret_bytes<16> signing_key_;  // of the session, or of the channel this is
    smb::wire::session_flags session_flags_ = smb::wire::session_flags::none;
};

/// Tests of one client that has logged on and connected to the share; more may come.
class served : public testing::Test {
protected:
    /// `adjust` changes the server's configuration before it starts.
    explicit served(void (*adjust)(smb::server::server_configuration&) = nullptr)
        : where_(io::simulation_options{.seed = 1}, 1, adjust),
          first_(std::make_unique<polite_client>(where_)) {
        EXPECT_EQ(first_->log_on("u", "p"), smb::wire::nt_status::success);
        EXPECT_EQ(first_->connect_tree("files"), smb::wire::nt_status::success);
    }
    ~served() override {
        first_.reset();
        where_.stop();
    }

    [[nodiscard]] polite_client& client() noexcept { return *first_; }
    [[nodiscard]] smb::server::smb_server& server_of_test() noexcept { return *where_.server; }

    world where_;
    std::unique_ptr<polite_client> first_;
};

}  // namespace sluice::smb_simulation
