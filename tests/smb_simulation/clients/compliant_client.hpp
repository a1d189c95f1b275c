#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "tests/smb_simulation/clients/simulated_client.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace sluice::smb_simulation {

/// A client for tests that expect specific replies: one request and its reply at a time, as plain
/// calls that run the simulation. It neither signs nor encrypts by default. SMB 3.0.2, or 3.1.1
/// without ciphers; SMB 2.1 if the server supports nothing newer. Thread safety: the loop's thread.
class compliant_client final : private simulated_client {
public:
    /// The final reply to a request; an interim reply is not final.
    struct answer {
        std::vector<std::byte> bytes;

        [[nodiscard]] smb::wire::message_view message() const { return *smb::wire::message_view::of(bytes); }
        /// Returns the status; `network_name_deleted`, without a message, if the server has closed
        /// the connection.
        [[nodiscard]] smb::wire::nt_status status() const;
    };

    /// Connects and negotiates a dialect. The world outlives the client. Clients with the same
    /// `seed` have the same client GUID.
    explicit compliant_client(world& where, std::uint64_t seed = 1);
    /// Does the same with SMB 3.1.1, and offers these algorithms, of which there is at least one.
    compliant_client(world& where, std::vector<smb::wire::signing_algorithm> offered,
                     std::vector<smb::wire::compression_algorithm> compression = {});
    /// Does the same from another address.
    compliant_client(world& where, const io::socket_address& from, std::uint64_t seed = 1);
    compliant_client(const compliant_client&) = delete;
    compliant_client& operator=(const compliant_client&) = delete;
    /// Closes the connection, and runs the simulation until nothing is pending.
    ~compliant_client();
    /// Closes the connection while all other clients continue.
    void close_connection() { EXPECT_TRUE(socket_.close()); }
    /// Sends nothing more, but continues to read.
    void fall_silent() { EXPECT_TRUE(socket_.shutdown(io::direction::out)); }

    /// Sets up a session, or authenticates the present one again. Without a user: anonymously.
    smb::wire::nt_status log_on(std::string_view user, std::string_view password);
    /// The next logons name this session as their previous one; 0: none.
    void replace_session(std::uint64_t id) noexcept { previous_session_id_ = id; }
    /// Sends only the first token of an authentication. Afterwards the session id is known.
    smb::wire::nt_status begin_logon();
    /// Starts a session and leaves it unfinished. Returns the status of the reply.
    smb::wire::nt_status begin_session();
    /// Sends the proof of a password without waiting for the reply. Returns the message id.
    std::uint64_t send_proof(std::string_view user, std::string_view password);
    /// Sends the length of a frame without the frame.
    void announce_frame(std::size_t bytes);
    /// Returns the session flags of the server's reply.
    [[nodiscard]] smb::wire::session_flags session_flags() const { return session_flags_; }
    smb::wire::nt_status connect_tree(std::string_view share);
    /// Makes this connection a channel of the session of another client, which stays logged on, and
    /// uses that session's tree from then on.
    smb::wire::nt_status bind_to(const compliant_client& first, std::string_view user,
                                 std::string_view password);

    /// Opens a file, and returns only the status.
    smb::wire::nt_status try_create(std::string_view name, const smb::wire::create_args& how) {
        return answer_to(send_create(name, how)).status();
    }
    /// Opens a file for every access, with full sharing, unless `how` says otherwise.
    smb::wire::create_reply create(std::string_view name,
                                   const smb::wire::create_args& how = for_everything());
    /// Does the same without waiting for the reply. Returns the message id.
    std::uint64_t send_create(std::string_view name, smb::wire::create_args how = for_everything());
    [[nodiscard]] static smb::wire::create_args for_everything();

    /// The domain that the client names when it authenticates.
    std::string domain;
    /// The flags in the headers of the next requests.
    smb::wire::header_flags flags = smb::wire::header_flags::none;
    std::uint16_t charge = 1;
    std::uint16_t credits_wanted = 16;
    std::uint16_t channel_sequence = 0;  // failures of channels that the client has detected
    /// The number of sent bytes that still arrive; then the connection is closed.
    std::optional<std::size_t> sends_at_most;
    /// Returns the number of message ids that it may still use.
    [[nodiscard]] std::uint64_t credits() const noexcept { return credits_; }

    /// Encodes a request, without its frame, that is sent in another way. Uses up a message ID.
    template <class Args>
    [[nodiscard]] std::vector<std::byte> encoded(smb::wire::command code, const Args& args) {
        put(code, args);
        std::vector<std::byte> message(outgoing_.begin() + smb::wire::frame_prefix_bytes, outgoing_.end());
        outgoing_.clear();
        return message;
    }
    /// Sends any frame.
    void send_frame(bytes_view frame) { send_frames(std::span(&frame, 1)); }
    void send_frames(std::span<const bytes_view> frames);
    /// Returns whether the server has closed the connection.
    [[nodiscard]] bool is_rejected();

    /// Returns the capabilities of the server's reply to NEGOTIATE.
    [[nodiscard]] smb::wire::capabilities server_capabilities() const noexcept {
        return server_capabilities_;
    }
    /// Returns how many compressed frames it has received.
    [[nodiscard]] unsigned compressed_frames() const noexcept { return compressed_frames_; }
    /// Returns the algorithms of compression that the server chose.
    [[nodiscard]] const smb::wire::negotiated_compression& compression() const noexcept {
        return compression_;
    }
    /// Returns the algorithm that the server chose; std::nullopt if it chose the default, AES-CMAC.
    [[nodiscard]] std::optional<smb::auth::signing_algorithm> chosen_signing() const {
        return signing_was_chosen_ ? std::optional(signing_) : std::nullopt;
    }
    /// Sets whether requests are signed with the key of the session or channel.
    void sign(bool does);
    /// Returns the frames that were sent last, unchanged.
    [[nodiscard]] const std::vector<std::byte>& last_sent() const noexcept { return last_sent_; }
    /// Returns the first frame of the last authentication.
    [[nodiscard]] const std::vector<std::byte>& first_of_authentication() const noexcept {
        return first_of_authentication_;
    }
    /// Returns the last result of answer_to().
    [[nodiscard]] const answer& last_answer() const noexcept { return last_answer_; }
    /// Sends a frame that another client has sent, byte for byte. Returns its message id.
    std::uint64_t send_copy(const std::vector<std::byte>& frame);
    [[nodiscard]] bool is_signed_by_key(const answer& said);
    /// Returns the header of the interim reply to a request.
    [[nodiscard]] smb::wire::header interim_of(std::uint64_t message_id);

    /// The session and the tree of requests; none: those that are created next.
    struct request_ids {
        std::uint64_t session = 0;
        std::uint32_t tree = 0;
    };
    [[nodiscard]] request_ids current_ids() const noexcept {
        return {.session = session_id_, .tree = tree_id_};
    }
    void use_ids(const request_ids& where) noexcept {
        session_id_ = where.session;
        tree_id_ = where.tree;
    }

    /// Sends a request, and returns its message id. A compound is sent at its end.
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
    /// Cancels a waiting request by its async id.
    void cancel(std::uint64_t async_id);

    /// Returns the async id in the interim reply to a request.
    [[nodiscard]] std::uint64_t async_id_of(std::uint64_t message_id);
    /// Returns whether the final reply has arrived; sends another request first, so that it would
    /// have.
    [[nodiscard]] bool is_answered(std::uint64_t message_id);
    /// Returns the message ids of all final replies and notifications so far, in the
    /// order of their arrival.
    [[nodiscard]] const std::vector<std::uint64_t>& arrivals() const noexcept { return arrivals_; }
    /// Returns the final reply to a request.
    [[nodiscard]] answer answer_to(std::uint64_t message_id);
    template <class Args>
    [[nodiscard]] answer call(smb::wire::command code, const Args& args) {
        return answer_to(send(code, args));
    }

private:
    void take_message(const smb::wire::message_view& message) override;
    [[nodiscard]] bool decompress(std::vector<std::byte>& frame) override;
    void adjust(smb::wire::header& header) override;
    bool run(io::task<bool> what);
    void send_all();
    smb::wire::nt_status authenticate(std::string_view user, std::string_view password,
                                      smb::wire::session_setup_flags how);

    world& world_;
    io::task_group tasks_;
    std::map<std::uint64_t, answer> answers_;  // not queried yet
    std::vector<std::uint64_t> arrivals_;
    std::map<std::uint64_t, smb::wire::header> interims_;  // by message id
    std::vector<std::byte> last_sent_;
    std::vector<std::byte> first_of_authentication_;
    answer last_answer_;
    std::uint64_t cancelled_async_id_ = 0;
    smb::auth::signing_algorithm signing_ = smb::auth::signing_algorithm::aes_cmac;
    bool derives_keys_ = true;  // before SMB 3.0, the key of the logon signs
    smb::wire::negotiated_compression compression_;
    unsigned compressed_frames_ = 0;
    smb::wire::capabilities server_capabilities_ = smb::wire::capabilities::none;
    bool signing_was_chosen_ = false;          // by the server's reply; otherwise it is the default
    smb::auth::secret_bytes<16> signing_key_;  // the key of the session, or of this channel
    smb::wire::session_flags session_flags_ = smb::wire::session_flags::none;
};

/// Tests of one client that has logged on and connected to the share; they may add others.
class served : public testing::Test {
protected:
    /// `adjust` changes the server's configuration before it starts.
    explicit served(void (*adjust)(smb::server::server_configuration&) = nullptr)
        : where_(io::simulation_options{.seed = 1}, 1, adjust),
          first_(std::make_unique<compliant_client>(where_)) {
        EXPECT_EQ(first_->log_on("u", "p"), smb::wire::nt_status::success);
        EXPECT_EQ(first_->connect_tree("files"), smb::wire::nt_status::success);
    }
    ~served() override {
        first_.reset();
        where_.stop();
    }

    [[nodiscard]] compliant_client& client() noexcept { return *first_; }
    [[nodiscard]] smb::server::smb_server& server_of_test() noexcept { return *where_.server; }

    world where_;
    std::unique_ptr<compliant_client> first_;
};

}  // namespace sluice::smb_simulation
