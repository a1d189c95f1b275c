#include "sluice/io/stream/signal_receiver.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sluice/io/call/blocking.hpp"

namespace sluice::io {
namespace {

error signal_error(const char* rule, int number) noexcept {
    const char* const name = ::sigabbrev_np(number);
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%d%s%s", number, name != nullptr ? ", SIG" : "",
                        name != nullptr ? name : "");
    return error::with_path(EINVAL, rule, text.data());
}

result<void> check(signal_set which) noexcept {
    if (which.empty() or not which.is_valid())
        return failure({EINVAL, "receive signals: the set is empty, or has a number outside of 1 to 64"});
    const signal_set blocked = blocked_by_this_thread();
    for (int number = 1; number <= signal_numbers_max; ++number) {
        if (not which.contains(number)) continue;
        if (not can_be_received(number))
            return failure(signal_error("signal that cannot be received", number));
        if (not blocked.contains(number))
            return failure(signal_error(
                "signal that this thread does not block (make a blocked_signals first)", number));
    }
    return {};
}

handle owned(int descriptor) noexcept {
    return handle(native_handle{.descriptor = descriptor});
}

}  // namespace

// --- delivering

namespace detail {

// Guards all hubs, and the inboxes. One for the process, because signals are rare: so the thread
// that forks can hold it, and the child finds it free and the guarded state consistent.
class hubs_lock {
public:
    [[nodiscard]] static std::mutex& mutex() noexcept { return mutex_; }

private:
    static void lock() noexcept { mutex_.lock(); }
    static void unlock() noexcept { mutex_.unlock(); }

    static inline constinit std::mutex mutex_;
    static inline const bool is_kept_ = ::pthread_atfork(lock, unlock, unlock) == 0;
};

// The signals that have arrived for one receiver. Guarded by the lock of the hubs.
class signal_inbox {
public:
    signal_inbox(std::shared_ptr<signal_hub> hub, signal_set which, handle doorbell) noexcept
        : hub_(std::move(hub)), which_(which), doorbell_(std::move(doorbell)) {}

    [[nodiscard]] signal_hub& hub() const noexcept { return *hub_; }
    [[nodiscard]] int doorbell() const noexcept { return doorbell_.descriptor(); }

    void add(const signal_event& event) noexcept {
        if (not which_.contains(event.number)) return;
        const std::uint64_t bit = std::uint64_t{1} << (event.number - 1);
        signal_event& kept = events_[static_cast<std::size_t>(event.number - 1)];
        const std::uint64_t before = (arrived_ & bit) != 0 ? kept.occurrences : 0;
        kept = event;
        kept.occurrences = before + event.occurrences;
        if (arrived_ == 0) {
            const std::uint64_t one = 1;
            (void)::write(doorbell(), &one, sizeof one);
        }
        arrived_ |= bit;
    }

    [[nodiscard]] bool take(signal_event& into) noexcept {
        if (arrived_ == 0) return false;
        ENSURE((arrived_ & ~which_.bits()) == 0, "a signal has arrived that was not asked for");
        into = events_[static_cast<std::size_t>(std::countr_zero(arrived_))];
        arrived_ &= arrived_ - 1;
        if (arrived_ == 0) {
            std::uint64_t wakes = 0;
            (void)::read(doorbell(), &wakes, sizeof wakes);
        }
        return true;
    }

    void renew_doorbell(int fresh) noexcept {
        (void)::dup3(fresh, doorbell(), O_CLOEXEC);  // cannot fail for two open descriptors
        const std::uint64_t one = 1;
        if (arrived_ != 0) (void)::write(doorbell(), &one, sizeof one);
    }

private:
    std::shared_ptr<signal_hub> hub_;
    signal_set which_;
    handle doorbell_;  // an eventfd: readable exactly while a signal is in the inbox
    std::uint64_t arrived_ = 0;
    std::array<signal_event, signal_numbers_max> events_{};
};

// The signalfd, and the receivers that get its signals. The first receiver that checks reads for
// all of them.
class signal_hub {
public:
    signal_hub(signal_set which, handle source) noexcept : which_(which), source_(std::move(source)) {}

    [[nodiscard]] signal_set signals() const noexcept { return which_; }
    [[nodiscard]] int source() const noexcept { return source_.descriptor(); }

    [[nodiscard]] bool add(signal_inbox& inbox) noexcept {
        const std::scoped_lock guard(hubs_lock::mutex());
        ENSURE(std::ranges::find(inboxes_, &inbox) == inboxes_.end(), "a receiver joins its source once");
        try {
            inboxes_.push_back(&inbox);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    void remove(signal_inbox& inbox) noexcept {
        const std::scoped_lock guard(hubs_lock::mutex());
        ENSURE(std::erase(inboxes_, &inbox) == 1, "a receiver leaves its source once");
    }
    [[nodiscard]] bool take(signal_inbox& inbox, signal_event& into) noexcept {
        ENSURE(&inbox.hub() == this, "a receiver gets the signals of its own source");
        const std::scoped_lock guard(hubs_lock::mutex());
        deliver();
        return inbox.take(into);
    }

private:
    void deliver() noexcept {
        signalfd_siginfo arrived{};
        // At most one of each number waits in the kernel, except real-time signals, of which any
        // number may: limit them.
        for (int count = 0; count != signal_numbers_max; ++count) {
            if (::read(source(), &arrived, sizeof arrived) != static_cast<ssize_t>(sizeof arrived)) return;
            const auto number = static_cast<int>(arrived.ssi_signo);
            const signal_event event{.number = number,
                                     .code = arrived.ssi_code,
                                     .process = static_cast<std::int32_t>(arrived.ssi_pid),
                                     .user = arrived.ssi_uid,
                                     .value = number == SIGCHLD ? arrived.ssi_status : arrived.ssi_int};
            for (signal_inbox* const each : inboxes_)
                each->add(event);
        }
    }

    const signal_set which_;
    const handle source_;
    std::vector<signal_inbox*> inboxes_;  // guarded by the lock of the hubs
};

}  // namespace detail

std::optional<int> signal_request::attempt(const native_handle&) noexcept {
    if (not from_->hub().take(*from_, event_)) return std::nullopt;
    return 0;
}

// --- the source

signal_source::signal_source(std::shared_ptr<detail::signal_hub> hub) noexcept : hub_(std::move(hub)) {}

result<signal_source> signal_source::create(signal_set which) noexcept {
    if (auto checked = check(which); not checked) return failure(checked.error());
    handle source = owned(open_signal_descriptor(which));
    if (not source.is_valid()) return failure(error::last("signalfd"));
    try {
        return signal_source(std::make_shared<detail::signal_hub>(which, std::move(source)));
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "make a source of signals"});
    }
}

signal_set signal_source::signals() const noexcept {
    return hub_->signals();
}

// --- the receiver

signal_receiver::signal_receiver(std::unique_ptr<detail::signal_inbox> inbox, native_handle ready) noexcept
    : inbox_(std::move(inbox)), handle_(ready) {}

signal_receiver::signal_receiver(signal_receiver&&) noexcept = default;

signal_receiver::~signal_receiver() {
    if (inbox_ != nullptr) inbox_->hub().remove(*inbox_);
}

namespace {

// The doorbell of a receiver, and a poller that watches the doorbell and the signals.
struct receiver_descriptors {
    handle doorbell;
    handle ready;
};

result<receiver_descriptors> make_descriptors(int source) noexcept {
    receiver_descriptors made{.doorbell = owned(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
                              .ready = owned(::epoll_create1(EPOLL_CLOEXEC))};
    if (not made.doorbell.is_valid() or not made.ready.is_valid())
        return failure(error::last("make a receiver of signals"));
    for (const int each : {source, made.doorbell.descriptor()}) {
        epoll_event event{.events = EPOLLIN, .data = {.fd = each}};
        if (::epoll_ctl(made.ready.descriptor(), EPOLL_CTL_ADD, each, &event) != 0)
            return failure(error::last("epoll_ctl"));
    }
    return made;
}

}  // namespace

result<signal_receiver> signal_receiver::create(const signal_source& from, signal_set which) noexcept {
    if (which.empty() or not which.is_valid() or (which.bits() & ~from.signals().bits()) != 0)
        return failure(
            {EINVAL, "receive signals: the set is empty, or has signals that the source does not receive"});
    auto made = make_descriptors(from.hub_->source());
    if (not made) return failure(made.error());
    std::unique_ptr<detail::signal_inbox> inbox(
        new (std::nothrow) detail::signal_inbox(from.hub_, which, std::move(made->doorbell)));
    if (inbox == nullptr or not from.hub_->add(*inbox))
        return failure({ENOMEM, "make a receiver of signals"});
    native_handle native = made->ready.release();
    native.kind = handle_kind::pipe;  // it waits like a pipe
    native.readable = native.nonblocking = true;
    return signal_receiver(std::move(inbox), native);
}

// The poller watches signals for the process that created it, and the doorbell is shared with the
// parent.
result<void> signal_receiver::renew_in_child() noexcept {
    auto made = make_descriptors(inbox_->hub().source());
    if (not made) return failure(made.error());
    inbox_->renew_doorbell(made->doorbell.descriptor());
    // By then the poller watches the doorbell's new description under a number that is about to be
    // closed. It stays watched, because the other number also refers to it.
    if (::dup3(made->ready.descriptor(), handle_.descriptor(), O_CLOEXEC) < 0)
        return failure(error::last("dup3"));
    return {};
}

result<signal_event> signal_receiver::wait(deadline within) noexcept {
    const auto end = within.steady_end(deadline::steady_clock::now(), deadline::system_clock::now());
    signal_event event;
    while (not inbox_->hub().take(*inbox_, event)) {
        const auto ready =
            wait_ready(handle_.native(), direction::in, within.is_none() ? deadline() : deadline(end));
        if (not ready) return failure({ready.error().code(), "wait for a signal"});
    }
    return event;
}

}  // namespace sluice::io
