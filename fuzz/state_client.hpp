#pragma once

// The hostile client of the target smb2_server_states: some connections, and the ids of
// all sessions, trees, opens and pending requests that it was given. It may use each of
// them on any connection.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/state_world.hpp"
#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"

namespace sluice::fuzz {

/// The rest of an input, followed by zeros.
class program {
public:
    explicit program(bytes_view bytes) noexcept : bytes_(bytes) {}

    [[nodiscard]] bool is_over() const noexcept { return bytes_.empty(); }
    [[nodiscard]] unsigned byte() noexcept {
        if (bytes_.empty()) return 0;
        const auto value = std::to_integer<unsigned>(bytes_[0]);
        bytes_ = *bytes_.from(1);
        return value;
    }
    [[nodiscard]] unsigned word() noexcept {
        const unsigned low = byte();
        return low | byte() << 8;
    }
    [[nodiscard]] bytes_view take(std::size_t count) noexcept {
        const bytes_view part = *bytes_.slice({.offset = 0, .length = std::min(count, bytes_.size())});
        bytes_ = *bytes_.from(part.size());
        return part;
    }

private:
    bytes_view bytes_;
};

/// The way a request is sent: a byte of the program, and more bytes if a bit is set.
struct envelope {
    unsigned connection = 0;
    bool is_signed = false;
    bool is_sealed = false;
    bool is_replay = false;
    bool is_mutated = false;  // two bytes: the position and the changed bits
    bool is_odd = false;      // four bytes: session, tree, message id, channel sequence and credits
    bool goes_on = false;     // a compound: the next request is in the same frame,
                              // and related to this one
};

class client {
public:
    static constexpr std::size_t connections = 4;

    client(world& where, program& script);
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client();

    void connect(unsigned at);
    void drop(unsigned at);
    void drop_all();
    /// Closes the sending direction only.
    void shut(unsigned at);

    [[nodiscard]] envelope take_envelope();
    /// Encodes and sends a request, and takes the replies that come at once.
    template <class Args>
    void send(const envelope& how, smb::wire::command code, const Args& args) {
        std::vector<std::byte> message(message_bytes_max);
        byte_writer writer{mutable_bytes(message)};
        encode(writer, next_header(how, code));
        encode(writer, args);
        const auto done = writer.finish();
        if (not done) return;
        message.resize(done->size());
        finish(how, std::move(message));
    }
    void send_raw(unsigned connection, bytes_view frame);
    void send_body(const envelope& how, smb::wire::command code, bytes_view body);
    void take_replies();

    /// Negotiates with the dialects and contexts that the bits select.
    void negotiate(const envelope& how, unsigned choice, unsigned algorithms);
    struct logon {
        unsigned user = 0;  // u, v, g, anonymous
        bool is_binding = false;
        bool has_wrong_password = false;
        bool names_previous = false;
        bool stops_halfway = false;
        bool continues_session = false;  // the connection's: it authenticates again
        bool is_in_other_domain = false;
        bool changes_user = false;  // between its two tokens
    };
    void log_on(const envelope& how, const logon& as);

    [[nodiscard]] smb::wire::file_id some_file(const envelope& how, unsigned choice) const;
    [[nodiscard]] std::uint64_t some_async_id(unsigned choice) const;
    /// The last break notification, to acknowledge.
    [[nodiscard]] std::optional<smb::wire::oplock_break_args> some_break();
    /// The token of the last offloaded read, to write.
    [[nodiscard]] const std::optional<smb::wire::offload_token>& last_token() const { return last_token_; }
    [[nodiscard]] smb::wire::guid guid_of(unsigned connection) const { return wires_[connection].guid; }

private:
    static constexpr std::size_t message_bytes_max = 8192;
    static constexpr std::size_t remembered_max = 16;

    struct session {
        std::uint64_t id = 0;
        std::uint32_t tree = 0;
        bool must_seal = false;
        std::optional<smb::auth::secret_bytes<16>> signing_key;
        std::unique_ptr<smb::auth::sealing_key> encryption_key;
        std::optional<smb::auth::opener> opener;
        std::map<unsigned, smb::auth::secret_bytes<16>> signing_keys;  // by connection
        std::map<unsigned, smb::auth::sealer> sealers;
    };
    struct setup_reply {
        smb::wire::nt_status status = smb::wire::nt_status::success;
        std::uint64_t session_id = 0;
        smb::wire::session_flags flags = smb::wire::session_flags::none;
        std::vector<std::byte> token;
    };
    struct wire_end {
        int descriptor = -1;
        std::uint64_t next_message_id = 0;
        smb::wire::guid guid;
        smb::wire::dialect dialect = smb::wire::dialect::smb_2_0_2;
        smb::auth::signing_algorithm signing = smb::auth::signing_algorithm::hmac_sha256;
        smb::auth::cipher_algorithm cipher = smb::auth::cipher_algorithm::aes_128_ccm;
        smb::auth::preauth_integrity preauth;
        std::uint64_t session_id = 0;
        std::vector<std::byte> received;
        std::optional<setup_reply> said;    // reply to the last SESSION_SETUP
        std::vector<std::byte> last_reply;  // the complete message
        std::vector<std::byte> last_request;
        std::vector<std::vector<std::byte>> compound;  // to be sent in one frame
        std::vector<bool> signs;
    };
    struct open_file {
        smb::wire::file_id id;
        std::uint64_t session = 0;
        std::uint32_t tree = 0;
    };

    [[nodiscard]] smb::wire::header next_header(const envelope& how, smb::wire::command code);
    void make_odd(smb::wire::header& header);
    void finish(const envelope& how, std::vector<std::byte> message);
    void flush(const envelope& how);
    void sign(unsigned connection, mutable_bytes message);
    [[nodiscard]] std::vector<std::byte> sealed(const envelope& how, bytes_view messages);
    void send_frame(unsigned connection, bytes_view content);
    void send_bytes(unsigned connection, bytes_view bytes);
    [[nodiscard]] bool receive(unsigned connection);
    void take_frames(unsigned connection);
    void take_frame(unsigned connection, mutable_bytes frame);
    void take_messages(unsigned connection, bytes_view messages);
    void take_message(unsigned connection, const smb::wire::message_view& message);
    void take_control(const smb::wire::message_view& message);
    void take_notification(const smb::wire::message_view& message);
    void take_negotiate(wire_end& at, const smb::wire::message_view& message);
    [[nodiscard]] session* find_session(std::uint64_t id);
    [[nodiscard]] bool step_logon(const envelope& how, const logon& as, bytes_view token,
                                  smb::auth::preauth_integrity& preauth);
    void establish(const envelope& how, const logon& as, const smb::auth::session_key& key,
                   const smb::auth::preauth_integrity& preauth);
    void count_request(const smb::wire::header& header);

    world& world_;
    program& script_;
    predictable_secrets_for_simulation secrets_{2};
    std::array<wire_end, connections> wires_;
    std::deque<session> sessions_;
    std::deque<open_file> files_;
    std::deque<std::uint64_t> async_ids_;
    std::deque<smb::wire::oplock_break_args> breaks_;
    std::optional<smb::wire::offload_token> last_token_;
    std::vector<std::byte> room_;
};

}  // namespace sluice::fuzz
