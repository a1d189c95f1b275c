#include "sluice/io/name/name_resolver.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/signal_set.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/loop/engine.hpp"

namespace sluice::io {

namespace {

class system_names final : public name_source {
    addresses_result look_up(const std::string& host, std::uint16_t port) noexcept override {
        return io::resolve(host, port);
    }
};

error lookup_error(int code, const host_and_port& what) noexcept {
    return error::with_path(code, "look up", what.host);
}

// Returns the answers that need no query: for an address, and for a name that cannot exist. They
// must not wait for the threads, which may be occupied by names without an answer.
std::optional<addresses_result> known_answer(const host_and_port& what) noexcept {
    constexpr std::size_t name_bytes_max = 1024;  // NI_MAXHOST, without its terminating zero
    if (const auto numeric = socket_address::ip(what.host, what.port); numeric) return std::vector{*numeric};
    // The C functions would look up only the part before a NUL.
    if (what.host.empty() or what.host.find('\0') != std::string::npos)
        return failure(lookup_error(EINVAL, what));
    if (what.host.size() > name_bytes_max) return failure(lookup_error(ENAMETOOLONG, what));
    return std::nullopt;
}

}  // namespace

namespace detail {

// --- one lookup

bool lookup::notify(lookup_wait& waiter) noexcept {
    const std::scoped_lock guard(mutex_);
    if (outcome_) return false;
    ENSURE(waiter_ == nullptr, "one waits for a lookup");
    waiter_ = &waiter;
    return true;
}

bool lookup::forget_waiter() noexcept {
    const std::scoped_lock guard(mutex_);
    return std::exchange(waiter_, nullptr) != nullptr;
}

bool lookup::wait_until(deadline::steady_clock::time_point end) noexcept {
    std::unique_lock guard(mutex_);
    return has_ended_.wait_until(guard, end, [this] { return outcome_.has_value(); });
}

std::optional<addresses_result> lookup::take() noexcept {
    const std::scoped_lock guard(mutex_);
    return std::exchange(outcome_, std::nullopt);
}

void lookup::finish(addresses_result&& outcome) noexcept {
    lookup_wait* waiter = nullptr;
    {
        const std::scoped_lock guard(mutex_);
        ENSURE(not outcome_, "a lookup ends once");
        outcome_.emplace(std::move(outcome));
        has_ended_.notify_all();
        waiter = std::exchange(waiter_, nullptr);
    }
    if (waiter != nullptr) waiter->finish();
}

// --- the threads

// Owned by the resolver and by each of its threads, so that an abandoned lookup
// outlives the resolver.
class lookup_queue final : public std::enable_shared_from_this<lookup_queue> {
public:
    explicit lookup_queue(name_resolver_options&& options) noexcept : options_(std::move(options)) {
        ENSURE(options_.threads_max != 0);
        if (options_.source == nullptr) options_.source = std::make_shared<system_names>();
    }

    [[nodiscard]] addresses_result look_up(const host_and_port& what) noexcept;
    // Errors: EAGAIN, ENOMEM.
    [[nodiscard]] int submit(const std::shared_ptr<lookup>& one) noexcept;
    void forget(const std::shared_ptr<lookup>& one) noexcept;
    void close() noexcept;

private:
    void start_thread() noexcept;
    void work() noexcept;

    name_resolver_options options_;
    std::mutex mutex_;  // guards the following members; never held together with a lookup's
    std::condition_variable has_news_;
    std::deque<std::shared_ptr<lookup>> waiting_;
    std::size_t idle_ = 0;
    std::size_t threads_ = 0;
    bool is_closed_ = false;
};

addresses_result lookup_queue::look_up(const host_and_port& what) noexcept {
    if (auto known = known_answer(what)) return *std::move(known);
    auto found = options_.source->look_up(what.host, what.port);
    if (found and found->empty()) return failure(lookup_error(ENOENT, what));
    if (found and found->size() > limits::addresses_per_name_max)
        found->resize(limits::addresses_per_name_max);
    return found;
}

int lookup_queue::submit(const std::shared_ptr<lookup>& one) noexcept {
    const std::scoped_lock guard(mutex_);
    ENSURE(not is_closed_, "a lookup is begun while its resolver is destroyed");
    if (waiting_.size() >= options_.waiting_max) return EAGAIN;
    if (waiting_.size() >= idle_ and threads_ < options_.threads_max) start_thread();
    if (threads_ == 0) return EAGAIN;
    try {
        waiting_.push_back(one);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
    has_news_.notify_one();
    return 0;
}

void lookup_queue::forget(const std::shared_ptr<lookup>& one) noexcept {
    const std::scoped_lock guard(mutex_);
    std::erase(waiting_, one);
}

void lookup_queue::close() noexcept {
    const std::scoped_lock guard(mutex_);
    ENSURE(waiting_.empty(), "a resolver is destroyed while lookups are pending: cancel and complete them");
    is_closed_ = true;
    has_news_.notify_all();
}

// Called with the mutex held.
void lookup_queue::start_thread() noexcept {
    const blocked_signals inherited(receivable_signals());
    ENSURE(threads_ < options_.threads_max, "more threads than were allowed");
    try {
        std::thread([self = shared_from_this()] { self->work(); }).detach();
        ++threads_;
    } catch (const std::exception&) {  // NOLINT: no thread, or no memory: the others do more
    }
}

void lookup_queue::work() noexcept {
    const sigpipe_guard quiet;
    std::unique_lock guard(mutex_);
    for (;;) {
        ++idle_;
        ENSURE(idle_ <= threads_, "more threads are idle than were started");
        has_news_.wait(guard, [this] { return is_closed_ or not waiting_.empty(); });
        --idle_;
        if (waiting_.empty()) return;
        const std::shared_ptr<lookup> next = std::move(waiting_.front());
        waiting_.pop_front();
        guard.unlock();
        next->finish(look_up(next->what()));
        guard.lock();
    }
}

}  // namespace detail

// --- the resolver

name_resolver::name_resolver(name_resolver_options options)
    : queue_(std::make_shared<detail::lookup_queue>(std::move(options))) {}

name_resolver::~name_resolver() {
    queue_->close();
}

addresses_result name_resolver::resolve(const host_and_port& what, deadline within) noexcept {
    if (within.is_none()) return queue_->look_up(what);
    const auto end = within.steady_end(deadline::steady_clock::now(), deadline::system_clock::now());
    const auto one = begin(what);
    if (not one->wait_until(end)) forget(one);
    if (auto outcome = one->take()) return *std::move(outcome);
    return failure(lookup_error(ETIMEDOUT, what));
}

std::shared_ptr<detail::lookup> name_resolver::begin(const host_and_port& what) noexcept {
    auto one = std::make_shared<detail::lookup>(what);
    if (auto known = known_answer(what))
        one->finish(*std::move(known));
    else if (const int code = queue_->submit(one); code != 0)
        one->finish(failure(lookup_error(code, what)));
    return one;
}

void name_resolver::forget(const std::shared_ptr<detail::lookup>& one) noexcept {
    queue_->forget(one);
}

// --- the sender

namespace detail {

std::optional<int> lookup_wait::begin(bool may_wait) noexcept {
    ENSURE(lookup_ == nullptr, "begun while its last lookup is pending");
    if (not engine::waits_for_threads(loop_)) {
        lookup_ = std::make_shared<lookup>(what_);
        lookup_->finish(resolver_.queue_->look_up(what_));
        return 0;
    }
    if (not may_wait and not known_answer(what_)) return ETIMEDOUT;
    lookup_ = resolver_.begin(what_);
    if (lookup_->notify(*this)) return std::nullopt;
    return 0;
}

void lookup_wait::end() noexcept {
    if (abandon()) complete(ECANCELED);
}

bool lookup_wait::abandon() noexcept {
    ENSURE(lookup_ != nullptr, "ends before it has begun");
    if (not lookup_->forget_waiter()) return false;
    resolver_.forget(lookup_);
    return true;
}

addresses_result lookup_wait::take(int code) noexcept {
    const std::shared_ptr<lookup> ended = std::move(lookup_);
    if (code != 0) return failure(lookup_error(code, what_));
    std::optional<addresses_result> outcome = ended->take();
    ENSURE(outcome.has_value(), "a lookup ends with an outcome");
    return *std::move(outcome);
}

}  // namespace detail
}  // namespace sluice::io
