#pragma once

#include <string_view>

#include "sluice/smb/server/net/frame_stream.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/server/session/negotiated.hpp"

namespace sluice::smb::server {

class request;
class server_context;

/// The part of a connection that its requests use; connection.hpp has the rest. Loop-owned: the
/// thread of the home loop, except where a member says otherwise.
class replier {
public:
    replier(const replier&) = delete;
    replier& operator=(const replier&) = delete;

    [[nodiscard]] server_context& host() const noexcept { return host_; }
    [[nodiscard]] server_loop& home() const noexcept { return home_; }
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return home_.multiplexer; }
    /// The buffers of the loop, counted for this connection.
    [[nodiscard]] buffer_source buffers() noexcept { return {home_.buffers, &buffer_use_}; }
    /// Any thread.
    [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffer_use_.bytes(); }

    /// The negotiated parameters.
    negotiated agreed;

    /// Ends the connection soon; `why`, a string of static lifetime, is for the log. Any thread.
    virtual void close(std::string_view why) noexcept = 0;
    /// A request begins, and ends; between the two, the connection can interrupt it.
    virtual void enter(request& fresh) noexcept = 0;
    virtual void leave(request& ending) noexcept = 0;
    /// Counts the request among the waiting ones until it ends. Returns false if too many wait.
    [[nodiscard]] virtual bool count_pending(request& r) noexcept = 0;
    /// Sends the replies to earlier messages of the frame of a request that is about to wait, if
    /// one of them grants caching: the request may wait for the break of this caching.
    virtual void send_earlier_replies(request& r) noexcept = 0;
    /// Sends the client an interim reply ([MS-SMB2] 3.3.4.2). Returns false if there is no memory.
    [[nodiscard]] virtual bool send_interim(request& r) noexcept = 0;

protected:
    replier(server_context& host, server_loop& home) noexcept : host_(host), home_(home) {}
    ~replier() = default;

    server_context& host_;
    server_loop& home_;
    buffer_account buffer_use_;
};

}  // namespace sluice::smb::server
