#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/deadline.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/name/name_resolution.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

using addresses_result = result<std::vector<socket_address>>;

/// The source of a name_resolver's answers: the system, or the script of a test.
class name_source {
public:
    name_source() noexcept = default;
    name_source(const name_source&) = delete;
    name_source& operator=(const name_source&) = delete;
    virtual ~name_source() = default;

    /// Looks up a host. Called on any thread, on several at a time. Errors, Blocks: as resolve().
    [[nodiscard]] virtual addresses_result look_up(const std::string& host, std::uint16_t port) noexcept = 0;
};

/// A host to look up, and the port that the addresses get.
struct host_and_port {
    std::string host;  ///< a name, or a numeric address, which is not looked up
    std::uint16_t port = 0;
};

namespace detail {

class lookup_queue;
class lookup_wait;

// A lookup, shared by the operation that waits for it and the thread that carries it out.
// Invariant: the thread takes `waiter_` when the outcome is known, and the waiter removes itself
// before that; one of the two completes the operation.
class lookup {
public:
    explicit lookup(host_and_port what) noexcept : what_(std::move(what)) {}

    [[nodiscard]] const host_and_port& what() const noexcept { return what_; }

    // Called by the waiter. Returns whether the outcome is not known yet: then `waiter` is notified
    // of it.
    [[nodiscard]] bool notify(lookup_wait& waiter) noexcept;
    // Returns false if the waiter has been, or is being, notified.
    [[nodiscard]] bool forget_waiter() noexcept;
    [[nodiscard]] bool wait_until(deadline::steady_clock::time_point end) noexcept;
    // Returns the outcome if it is known.
    [[nodiscard]] std::optional<addresses_result> take() noexcept;

    // Called by the thread that carries it out.
    void finish(addresses_result&& outcome) noexcept;

private:
    const host_and_port what_;
    std::mutex mutex_;  // guards the following members
    std::condition_variable has_ended_;
    std::optional<addresses_result> outcome_;
    lookup_wait* waiter_ = nullptr;
};

}  // namespace detail

struct name_resolver_options {
    std::size_t threads_max = 4;            ///< lookups that are carried out at the same time
    std::size_t waiting_max = 256;          ///< lookups that wait for a thread; one
                                            ///< more fails with EAGAIN
    std::shared_ptr<name_source> source{};  ///< null: the system's getaddrinfo
};

/// Looks up host names without blocking the caller, on threads of its own.
///
/// getaddrinfo(3) cannot be interrupted. A cancellation of an operation, or its deadline, therefore
/// ends the wait, and the result of the lookup is discarded. If the lookup has begun, it occupies
/// one of the threads until it ends; otherwise it is removed from the queue.
///
/// Thread safety: resolve() and starting operations from any thread. Allocates: each lookup;
/// threads, when lookups come and no thread is free. The destructor does not block: lookups that
/// have begun end on their threads, which then end, and access no memory of the caller.
class name_resolver {
public:
    explicit name_resolver(name_resolver_options options = {});
    name_resolver(const name_resolver&) = delete;
    name_resolver& operator=(const name_resolver&) = delete;
    /// No operation may be pending (ENSURE, for those whose lookup waits for a thread).
    ~name_resolver();

    /// Returns the addresses of a host, in the order in which to try them; at most
    /// limits::addresses_per_name_max. Without a deadline the calling thread looks up; with one, a
    /// thread of the resolver does. Errors name the host: ENOENT if there is no such name; EAGAIN
    /// if no name server answered, or too many lookups wait; EINVAL for an empty name or one with a
    /// NUL; ENAMETOOLONG beyond 1024 bytes; ETIMEDOUT; ENOMEM, EIO. Blocks: until the deadline.
    [[nodiscard]] addresses_result resolve(const host_and_port& what, deadline within = {}) noexcept;

private:
    friend class detail::lookup_wait;

    [[nodiscard]] std::shared_ptr<detail::lookup> begin(const host_and_port& what) noexcept;
    void forget(const std::shared_ptr<detail::lookup>& one) noexcept;

    std::shared_ptr<detail::lookup_queue> queue_;
};

namespace detail {

// An operation's wait for a lookup.
class lookup_wait final : public external_work {
public:
    lookup_wait(io_multiplexer& loop, name_resolver& resolver, const host_and_port& what) noexcept
        : loop_(loop), resolver_(resolver), what_(what) {}

    // Returns the outcome of an operation that ended with this errno value, or 0.
    [[nodiscard]] addresses_result take(int code) noexcept;

private:
    friend class lookup;

    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override;
    void end() noexcept override;
    [[nodiscard]] bool abandon() noexcept override;
    // Called on the thread of the lookup: its outcome is known.
    void finish() noexcept { complete(0); }

    io_multiplexer& loop_;
    name_resolver& resolver_;
    const host_and_port& what_;
    std::shared_ptr<lookup> lookup_;  // from begin() to the outcome
};

}  // namespace detail

/// The sender of async_resolve: looks up a host.
class resolve_sender {
public:
    using result_type = addresses_result;

    resolve_sender(io_multiplexer& multiplexer, name_resolver& resolver, host_and_port what,
                   deadline within) noexcept
        : multiplexer_(&multiplexer), resolver_(&resolver), what_(std::move(what)), within_(within) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }
    void configure(operation& configured) noexcept {
        configure_external(configured, *multiplexer_, waiting_.emplace(*multiplexer_, *resolver_, what_),
                           within_);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        return (*waiting_).take(code_of(completed));
    }

private:
    io_multiplexer* multiplexer_;
    name_resolver* resolver_;
    host_and_port what_;
    deadline within_;
    work_room<detail::lookup_wait> waiting_;
};

/// Returns the sender of name_resolver::resolve; its errors apply, and ECANCELED. A deadline of
/// zero starts no lookup: only hosts that need no lookup succeed. A simulated multiplexer does not
/// wait for threads: there, start() carries out the lookup. The resolver and the multiplexer must
/// outlive the operation.
[[nodiscard]] inline auto async_resolve(io_multiplexer& multiplexer, name_resolver& resolver,
                                        host_and_port what, deadline within = {}) noexcept {
    return resolve_sender(multiplexer, resolver, std::move(what), within);
}

/// The awaitable form. Suspends.
[[nodiscard]] inline auto co_resolve(io_multiplexer& multiplexer, name_resolver& resolver, host_and_port what,
                                     deadline within = {}) noexcept {
    return async_resolve(multiplexer, resolver, std::move(what), within);
}

}  // namespace sluice::io
