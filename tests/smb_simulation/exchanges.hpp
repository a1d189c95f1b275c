#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb_simulation {

/// A request that a client has sent, as far as oracles need it.
struct seen_request {
    std::size_t connection = 0;
    std::size_t client = 0;      // clients of one number share a client GUID
    std::uint64_t sequence = 0;  // of all events of the run
    std::uint64_t message_id = 0;
    smb::wire::command command{};
    std::uint64_t session = 0;
    smb::wire::file_id file{};              // zero if it is that of `create`
    std::optional<std::uint64_t> create{};  // the message ID of the CREATE before it in its compound
    bool closes_itself = false;             // a CREATE whose compound has a CLOSE for it
    // of CREATE
    smb::wire::access_mask access{};
    smb::wire::share_access share{};
    std::string name{};  // UTF-16LE
    std::optional<smb::wire::lease_key> lease_key{};
    bool keeps_read = false;  // acknowledgements: they name a lease by its key, an oplock by its file
    // of LOCK
    std::vector<smb::wire::lock_element> locks{};
    // of READ and WRITE
    std::uint64_t offset_bytes = 0;
    std::vector<std::byte> data{};
};

/// The final reply to one.
struct seen_reply {
    std::uint64_t sequence = 0;
    smb::wire::nt_status status{};
    // of CREATE
    smb::wire::file_id file{};
    std::uint64_t file_number = 0;  // 0: it was not asked for
    smb::wire::oplock_level oplock{};
    smb::wire::lease_state lease{};  // none while it is being broken: then it is not known
    // of READ
    std::vector<std::byte> data{};

    [[nodiscard]] bool is_success() const noexcept { return status == smb::wire::nt_status::success; }
};

/// A break, as it reached the client.
struct seen_break {
    std::size_t connection = 0;
    std::size_t client = 0;
    std::uint64_t begin_offset = 0;  // where its frame begins in the stream of the connection
    std::uint64_t end_offset = 0;
    std::optional<smb::wire::lease_key> lease_key{};
    smb::wire::file_id file{};  // oplocks only
    bool keeps_read = false;
    bool needs_answer = false;
};

/// How much of a connection's bytes the client has taken, and how much has reached its socket.
struct reach {
    std::size_t connection = 0;
    std::uint64_t taken = 0;
    std::uint64_t arrived = 0;  // at most
    bool has_unread = false;    // in the socket
};

/// Judges what clients see. A violation names connections: it does not count if the server has ended one of
/// them, because then what its client believed may have been wrong.
class oracle {
public:
    struct violation {
        std::string text;
        std::vector<std::size_t> connections;
    };
    virtual ~oracle() = default;
    virtual void on_request(const seen_request&) {}
    virtual void on_reply(const seen_request&, const seen_reply&) {}
    virtual void on_break(const seen_break&) {}
    /// `others`: the other connections of the client that the reply went to, at that moment.
    virtual void on_reach(const seen_request&, const std::vector<reach>& /*others*/) {}
    /// The session of a connection that was closed is over for its client.
    virtual void on_closed(std::size_t /*connection*/, std::uint64_t /*session*/) {}
    /// After everything.
    virtual void finish() {}

    [[nodiscard]] const std::vector<violation>& violations() const noexcept { return violations_; }

protected:
    void report(std::string text, std::vector<std::size_t> connections) {
        violations_.push_back({std::move(text), std::move(connections)});
    }

private:
    std::vector<violation> violations_;
};

/// A fault in what oracles see, as a server that is wrong would show it: for the tests of the oracles.
enum class mutation : std::uint8_t {
    none,
    opens_share_nothing,  // the opens that exist should have been refused
    locks_are_exclusive,  // the locks that exist should have been refused
    breaks_get_lost,
    reply_gets_lost,
    reply_is_repeated,
    reads_are_old,
};

/// Takes the messages of all clients of a simulation apart and gives them to oracles. It judges itself that
/// each request has one final reply. Thread safety: the clients' loop. Allocates: for everything that is
/// seen.
class exchanges {
public:
    explicit exchanges(std::vector<oracle*> oracles, mutation fault = mutation::none)
        : oracles_(std::move(oracles)), fault_(fault) {}

    /// A new connection of a client. Returns its number.
    [[nodiscard]] std::size_t connect(std::size_t client);
    /// The client is about to send these frames.
    void sent(std::size_t connection, bytes_view frames);
    /// The client takes a message, of a frame at these offsets of the bytes of its connection.
    void received(std::size_t connection, const smb::wire::message_view& message, std::uint64_t begin_offset,
                  std::uint64_t end_offset);
    /// Where the other connections of its client are, just after that. Called if is_final() was true.
    [[nodiscard]] std::vector<std::size_t> connections_of_same_client(std::size_t connection) const;
    void reached(std::size_t connection, const std::vector<reach>& others);
    /// The connection is over: the client ends it, or has found that the server did.
    void closed(std::size_t connection, bool by_server);
    /// Everything has been answered that should be.
    void expect_all_answered(std::size_t connection);

    /// Returns the violations, one per line; empty if there are none.
    [[nodiscard]] std::string verdict();
    [[nodiscard]] std::uint64_t replies() const noexcept { return replies_; }

private:
    struct connection {
        std::size_t client = 0;
        std::uint64_t session = 0;
        bool is_lost = false;  // the server ended it
        bool is_closed = false;
        std::map<std::uint64_t, seen_request> unanswered{};
    };
    void take_request(std::size_t number, const smb::wire::message_view& message);
    void take_final(std::size_t number, const smb::wire::message_view& message);
    void take_break(std::size_t number, const smb::wire::message_view& message, std::uint64_t begin_offset,
                    std::uint64_t end_offset);
    void complain(std::string text, std::size_t connection) {
        own_.push_back({std::move(text), {connection}});
    }

    std::vector<oracle*> oracles_;
    mutation fault_;
    std::vector<connection> connections_;
    std::vector<oracle::violation> own_;
    std::uint64_t sequence_ = 0;
    std::uint64_t replies_ = 0;
    std::optional<seen_request> last_answered_;
    std::optional<std::uint64_t> last_create_;  // within the frame that is being sent
};

}  // namespace sluice::smb_simulation
