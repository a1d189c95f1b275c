#include "sluice/smb/server/operation/loss_notice.hpp"

#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

namespace {

// The result must be held only on the loop `at`, where these connections end.
[[nodiscard]] std::vector<std::shared_ptr<connection>> connections_of(const server_context& host,
                                                                      const std::string& client,
                                                                      const server_loop& at) noexcept {
    std::vector<std::shared_ptr<connection>> found;
    for (connection* const one : host.connections.of_loop(at))
        if (one->peer_host() == client) found.push_back(one->shared_from_this());
    return found;
}

// A loop notices the end of a connection when it next looks at its sockets, unless earlier replies
// are still unsent: a client that has closed one direction only is not waited for long.
[[nodiscard]] io::task<void> notice_losses_at(const server_context& host, server_loop& there,
                                              std::string client, io::io_multiplexer& home) noexcept {
    constexpr std::chrono::milliseconds pause{1};
    constexpr unsigned pauses_max = 250;
    cross_loop_posts::record();
    co_await io::resume_on(there.multiplexer);
    unsigned pauses = 0;
    for (const std::shared_ptr<connection>& one : connections_of(host, client, there))
        for (; one->has_unprocessed_loss() and pauses != pauses_max; ++pauses)
            (void)co_await pass(there.multiplexer, deadline(pause));
    cross_loop_posts::record();
    co_await io::resume_on(home);
}

}  // namespace

io::task<void> notice_losses(server_context& host, const connection& of) noexcept {
    ENSURE(of.loop().is_owner(), "a connection asks on its own loop");
    const std::string client = of.peer_host();
    for (std::size_t i = 0; i != host.loops().size(); ++i) {
        server_loop& there = *host.loops()[i];
        if (&there == &of.home() or not host.homes.has(client, i)) continue;
        io::task<void> noticing = io::uncancelled(notice_losses_at(host, there, client, of.loop()));
        co_await within_work(std::move(noticing));
    }
}

}  // namespace sluice::smb::server
