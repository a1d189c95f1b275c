#include "sluice/discovery/advertiser/advertiser.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"
#include "sluice/discovery/mdns/mdns_protocol.hpp"
#include "sluice/discovery/wsd/wsd_protocol.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/handle/multiplexable_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::discovery {

/// Readable while any of its descriptors is: one wait for all sockets.
class advertiser::poller : public io::multiplexable_handle {
public:
    explicit poller(int descriptor) noexcept
        : multiplexable_handle(io::native_handle{.descriptor = descriptor,
                                                 .kind = io::handle_kind::pipe,
                                                 .readable = true,
                                                 .nonblocking = true}) {}

    [[nodiscard]] result<void> add(int watched) noexcept {
        epoll_event wanted{.events = EPOLLIN, .data = {.fd = watched}};
        if (::epoll_ctl(descriptor(), EPOLL_CTL_ADD, watched, &wanted) != 0)
            return failure(error::last("epoll_ctl", watched));
        return {};
    }
};

advertiser::advertiser(const settings& given) : listening_(given.listening) {}

result<void> advertiser::open_poller() {
    wake_up_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_up_ < 0) return failure(error::last("eventfd"));
    const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
    if (descriptor < 0) return failure(error::last("epoll_create1"));
    poller_ = std::make_unique<poller>(descriptor);
    if (const auto added = poller_->add(wake_up_); not added) return added;
    for (const auto& protocol : protocols_)
        for (const int each : protocol->descriptors())
            if (const auto added = poller_->add(each); not added) return added;
    return {};
}

result<std::unique_ptr<advertiser>> advertiser::start(const settings& given, std::vector<problem>& problems) {
    std::unique_ptr<advertiser> started(new advertiser(given));
    if (auto mdns = mdns_protocol::open(given.description, started->random_))
        started->protocols_.push_back(*std::move(mdns));
    else
        problems.push_back({.protocol = "mDNS", .why = mdns.error()});
    // Windows connects to this port only.
    if (given.description.port == 445) {
        const auto since_epoch = started->clock_.utc_now().time_since_epoch();
        auto wsd =
            wsd_protocol::open({.endpoint = urn_uuid(given.identity, 8),
                                .computer = given.description.name,
                                .instance = static_cast<std::uint64_t>(
                                    std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count())},
                               started->random_);
        if (wsd)
            started->protocols_.push_back(*std::move(wsd));
        else
            problems.push_back({.protocol = "WS-Discovery", .why = wsd.error()});
    }
    if (started->protocols_.empty()) return std::unique_ptr<advertiser>();
    auto loop = io::best_available();
    if (not loop) return failure(loop.error());
    started->loop_ = *std::move(loop);
    if (const auto opened = started->open_poller(); not opened) return failure(opened.error());
    try {
        started->runner_ = std::thread([&self = *started] {
            io::sync_wait(*self.loop_, self.run());
            self.poller_.reset();  // on the thread that used them
            self.protocols_.clear();
        });
    } catch (const std::system_error& why) {
        return failure({why.code().value(), "start a thread"});
    }
    return started;
}

advertiser::~advertiser() {
    request_stop();
    if (runner_.joinable()) runner_.join();
    if (wake_up_ >= 0) (void)::close(wake_up_);
}

void advertiser::request_stop() noexcept {
    must_stop_.store(true, std::memory_order_release);  // pairs with the load in run()
    if (wake_up_ >= 0) (void)::eventfd_write(wake_up_, 1);
}

void advertiser::update_links() {
    const chosen_links chosen = choose_links(read_interfaces(), listening_);
    for (const auto& each : protocols_)
        each->set_links(chosen.links, chosen.own_addresses, clock_.steady_now());
}

io::task<void> advertiser::run() {
    if (const auto attached = poller_->set_multiplexer(loop_.get()); not attached) co_return;
    for (const auto& each : protocols_)
        each->start(*loop_);
    auto next_update = clock_.steady_now();
    // Pairs with the store in request_stop().
    while (not must_stop_.load(std::memory_order_acquire)) {
        if (next_update <= clock_.steady_now()) {
            update_links();
            next_update = clock_.steady_now() + limits::interface_poll_interval;
        }
        auto due = next_update;
        for (const auto& each : protocols_) {
            each->advance(clock_.steady_now());
            due = std::min(due, each->next_due());
        }
        (void)co_await io::co_ready(*poller_, io::direction::in, deadline(due));
        for (const auto& each : protocols_) {
            if (must_stop_.load(std::memory_order_relaxed)) break;  // the loop reads it again
            each->receive(clock_.steady_now());
        }
    }
    for (const auto& each : protocols_)
        each->stop();
    for (const auto& each : protocols_) {
        io::task<void> ending = each->done();
        co_await std::move(ending);
    }
}

}  // namespace sluice::discovery
