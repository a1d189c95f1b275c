#pragma once

#include <string>
#include <unordered_map>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// The requests on named pipes that one loop has to process, one at a time: the clients that have
/// some take turns, and those of one client are granted in order of arrival. So a client waits for
/// at most one request of each other client before each of its own, however many pipes those use.
/// A client is a user, or an address of guests.
///
/// Invariants:
///   1. One place is granted at most; while none is, none waits.
///   2. A client is in `clients_`, and in `turns_` once, exactly while a place of it waits.
/// Loop-owned. Allocates: an entry for each client that waits. Complexity: constant.
class pipe_queue {
public:
    /// A request's place: granted, or waiting, from its construction to its end. Lifetime: the
    /// queue and `granted` outlive it.
    class place {
    public:
        /// `granted` is set to success when the place is granted later than at once.
        place(pipe_queue& in, const client_reference& by, one_shot_event<wire::nt_status>& granted);
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place();

        [[nodiscard]] bool is_granted() const noexcept { return in_.granted_ == this; }

    private:
        friend class pipe_queue;
        pipe_queue& in_;
        const client_reference by_;
        one_shot_event<wire::nt_status>& set_when_granted_;
        list_hook<place> link_;  // while it waits
    };

    pipe_queue() = default;
    pipe_queue(const pipe_queue&) = delete;
    pipe_queue& operator=(const pipe_queue&) = delete;
    ~pipe_queue() { ENSURE(granted_ == nullptr and turns_.empty(), "a loop ends after its requests"); }

private:
    struct client {
        const std::string* name = nullptr;  // the key
        intrusive_list<place, &place::link_> places;
        list_hook<client> link;
    };

    void add(place& fresh);
    void remove(place& waiting) noexcept;
    void grant_next() noexcept;

    place* granted_ = nullptr;
    // By the name in the table of clients, which each place keeps there.
    std::unordered_map<const std::string*, client> clients_;
    intrusive_list<client, &client::link> turns_;
};

}  // namespace sluice::smb::server
