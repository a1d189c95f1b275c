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

/// A request that a client has sent, with the data that oracles need.
struct seen_request {
    std::size_t connection = 0;
    std::size_t client = 0;      // clients with the same number share a client GUID
    std::uint64_t sequence = 0;  // among all events of the run
    std::uint64_t message_id = 0;
    smb::wire::command command{};
    std::uint64_t session = 0;
    smb::wire::file_id file{};              // zero if it is that of `create`
    std::optional<std::uint64_t> create{};  // the message ID of the preceding CREATE in its
                                            // compound
    bool closes_itself = false;             // a CREATE whose compound has a CLOSE for it
    // for CREATE
    smb::wire::access_mask access{};
    smb::wire::share_access share{};
    std::string name{};  // UTF-16LE
    std::optional<smb::wire::lease_key> lease_key{};
    bool keeps_read = false;  // for acknowledgements: they identify a lease by its key, an oplock
                              // by its file
    // for LOCK
    std::vector<smb::wire::lock_element> locks{};
    // for READ and WRITE
    std::uint64_t offset_bytes = 0;
    std::vector<std::byte> data{};
};

/// The final reply to a request.
struct seen_reply {
    std::uint64_t sequence = 0;
    smb::wire::nt_status status{};
    // for CREATE
    smb::wire::file_id file{};
    std::uint64_t file_number = 0;  // 0: it was not requested
    smb::wire::oplock_level oplock{};
    smb::wire::lease_state lease{};  // none while it is being broken: then it is unknown
    // for READ
    std::vector<std::byte> data{};

    [[nodiscard]] bool is_success() const noexcept { return status == smb::wire::nt_status::success; }
};

/// A break, as the client received it.
struct seen_break {
    std::size_t connection = 0;
    std::size_t client = 0;
    std::uint64_t begin_offset = 0;  // offset of its frame in the stream of the connection
    std::uint64_t end_offset = 0;
    std::optional<smb::wire::lease_key> lease_key{};
    smb::wire::file_id file{};  // oplocks only
    bool keeps_read = false;
    bool needs_answer = false;
};

/// How many bytes of a connection the client has read, and how many have reached its socket.
struct reach {
    std::size_t connection = 0;
    std::uint64_t taken = 0;
    std::uint64_t arrived = 0;  // at most
    bool has_unread = false;    // the socket has unread bytes
};

/// Verifies the messages that clients see. A violation names connections: it does not count if the
/// server has ended one of them, because then the client's knowledge may have been wrong.
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
    /// `others`: the other connections of the client that received the reply, at that time.
    virtual void on_reach(const seen_request&, const std::vector<reach>& /*others*/) {}
    /// Called when a connection is closed: for its client, the session has ended.
    virtual void on_closed(std::size_t /*connection*/, std::uint64_t /*session*/) {}
    /// Called at the end of the run.
    virtual void finish() {}

    [[nodiscard]] const std::vector<violation>& violations() const noexcept { return violations_; }

protected:
    void report(std::string text, std::vector<std::size_t> connections) {
        violations_.push_back({std::move(text), std::move(connections)});
    }

private:
    std::vector<violation> violations_;
};

/// A fault injected into the input of the oracles, as a faulty server would show it: for the tests
/// of the oracles.
enum class mutation : std::uint8_t {
    none,
    opens_share_nothing,  // existing opens are treated as if they allowed no sharing
    locks_are_exclusive,  // existing locks are treated as if they were exclusive
    breaks_get_lost,
    reply_gets_lost,
    reply_is_repeated,
    reads_are_old,
};

/// Decodes the messages of all clients of a simulation and passes them to oracles. It verifies
/// itself that each request has one final reply. Thread safety: the clients' loop. Allocates: for
/// all messages.
class exchanges {
public:
    explicit exchanges(std::vector<oracle*> oracles, mutation fault = mutation::none)
        : oracles_(std::move(oracles)), fault_(fault) {}

    /// Adds a connection of a client. Returns its number.
    [[nodiscard]] std::size_t connect(std::size_t client);
    /// Records frames that the client is about to send.
    void sent(std::size_t connection, bytes_view frames);
    /// Records a message that the client reads, in a frame at these offsets of the stream of its
    /// connection.
    void received(std::size_t connection, const smb::wire::message_view& message, std::uint64_t begin_offset,
                  std::uint64_t end_offset);
    /// Returns the other connections of its client at that time. Called if is_final() was true.
    [[nodiscard]] std::vector<std::size_t> connections_of_same_client(std::size_t connection) const;
    void reached(std::size_t connection, const std::vector<reach>& others);
    /// Records the end of a connection: the client closes it, or has detected that the server did.
    void closed(std::size_t connection, bool by_server);
    /// Expects that all requests that require a reply have been answered.
    void expect_all_answered(std::size_t connection);

    /// Returns the violations, one per line; empty if there are none.
    [[nodiscard]] std::string verdict();
    [[nodiscard]] std::uint64_t replies() const noexcept { return replies_; }

private:
    struct connection {
        std::size_t client = 0;
        std::uint64_t session = 0;
        bool is_lost = false;  // the server closed it
        bool is_closed = false;
        std::map<std::uint64_t, seen_request> unanswered{};
    };
    void take_request(std::size_t number, const smb::wire::message_view& message);
    void take_final(std::size_t number, const smb::wire::message_view& message);
    void take_break(std::size_t number, const smb::wire::message_view& message, std::uint64_t begin_offset,
                    std::uint64_t end_offset);
    void record_problem(std::string text, std::size_t connection) {
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
