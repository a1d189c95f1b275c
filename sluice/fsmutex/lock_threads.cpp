#include "sluice/fsmutex/lock_threads.hpp"

#include <csignal>
#include <new>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/limits.hpp"

namespace sluice::fsmutex {

/// A thread and its wait.
class lock_threads::wait {
public:
    wait() noexcept = default;
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;
    ~wait() = default;

    /// Returns 0, or the error that prevented the thread.
    [[nodiscard]] int start_thread() noexcept;
    void begin(int descriptor, kernel_lock::range where, kernel_lock::kind how,
               std::shared_ptr<wake_up> waker) noexcept;
    /// Returns the outcome, unless it is still waiting.
    [[nodiscard]] bool has_ended() noexcept;
    [[nodiscard]] int take_outcome() noexcept;
    void stop_thread() noexcept;

    std::unique_ptr<wait> next_idle;

private:
    enum class stage : unsigned char { idle, asked, waiting, ended };

    static void* run(void* self);
    void work();

    pthread_t thread_{};
    std::mutex mutex_;  // guards the members below
    std::condition_variable has_news_;
    stage at_ = stage::idle;
    bool stops_ = false;
    int descriptor_ = -1;
    kernel_lock::range where_;
    kernel_lock::kind how_ = kernel_lock::kind::shared;
    std::shared_ptr<wake_up> waker_;
    int code_ = 0;
};

namespace {

// Here the thread may be cancelled. That unwinds its stack from inside the system call. So nothing
// here is noexcept or has a destructor, and the function is not inlined where something does.
[[gnu::noinline]] int lock_unless_cancelled(int descriptor, kernel_lock::range where, kernel_lock::kind how) {
    struct flock wanted = kernel_lock::described(where, kernel_lock::type_of(how));
    int before = 0;
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    // An earlier cancellation request takes effect here.
    ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    const long outcome = ::syscall(SYS_fcntl, descriptor, F_OFD_SETLKW, &wanted);
    const int code = outcome == 0 ? 0 : errno;
    // The type first: the signal may arrive after this, and glibc 2.36 then checks the type but not
    // the state. It would end the thread while it holds a mutex.
    ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return code;
}

}  // namespace

int lock_threads::wait::start_thread() noexcept {
    // The new thread inherits the mask. The C library's own signals, with which it
    // cancels, are not blocked.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = ::pthread_create(&thread_, nullptr, &wait::run, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return code;
}

void lock_threads::wait::begin(int descriptor, kernel_lock::range where, kernel_lock::kind how,
                               std::shared_ptr<wake_up> waker) noexcept {
    const std::scoped_lock guard(mutex_);
    ENSURE(at_ == stage::idle);
    descriptor_ = descriptor;
    where_ = where;
    how_ = how;
    waker_ = std::move(waker);
    at_ = stage::asked;
    has_news_.notify_one();
}

bool lock_threads::wait::has_ended() noexcept {
    const std::scoped_lock guard(mutex_);
    return at_ == stage::ended;
}

int lock_threads::wait::take_outcome() noexcept {
    const std::scoped_lock guard(mutex_);
    const int code = at_ == stage::ended ? code_ : ECANCELED;
    at_ = stage::idle;
    return code;
}

// Works wherever the thread is. It is woken if it sleeps without a wait, and cancelled inside the
// system call. On its way into the call it ends as it enters. On its way out it ends when it finds
// the stop request.
void lock_threads::wait::stop_thread() noexcept {
    {
        const std::scoped_lock guard(mutex_);
        stops_ = true;
        has_news_.notify_one();
    }
    ::pthread_cancel(thread_);
    ::pthread_join(thread_, nullptr);
}

void* lock_threads::wait::run(void* self) {
    int before = 0;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    static_cast<wait*>(self)->work();
    return nullptr;
}

// Not noexcept: a cancelled wait unwinds through it.
void lock_threads::wait::work() {
    for (;;) {
        {
            std::unique_lock guard(mutex_);
            has_news_.wait(guard, [this] { return stops_ or at_ == stage::asked; });
            if (stops_) return;
            at_ = stage::waiting;
        }
        int code = EINTR;
        while (code == EINTR)
            code = lock_unless_cancelled(descriptor_, where_, how_);
        std::shared_ptr<wake_up> waker;
        {
            const std::scoped_lock guard(mutex_);
            code_ = code;
            waker = std::move(waker_);
            at_ = stage::ended;
        }
        waker->wake();
    }
}

lock_threads::lock_threads() noexcept = default;

lock_threads::~lock_threads() {
    ENSURE(count_ == idle_count_, "all waits ended before their mutex is destroyed");
    while (idle_ != nullptr) {
        idle_->stop_thread();
        idle_ = std::move(idle_->next_idle);
    }
}

void lock_threads::leave_to_parent() noexcept {
    (void)idle_.release();
    count_ = idle_count_ = 0;
}

lock_threads::wait* lock_threads::idle_or_new() noexcept {
    {
        const std::scoped_lock guard(mutex_);
        if (idle_ != nullptr) {
            wait* const taken = idle_.release();
            idle_ = std::move(taken->next_idle);
            --idle_count_;
            return taken;
        }
        if (count_ == limits::lock_threads_max) return nullptr;
        ++count_;
    }
    std::unique_ptr<wait> made(new (std::nothrow) wait);
    if (made != nullptr and made->start_thread() == 0) return made.release();
    const std::scoped_lock guard(mutex_);
    --count_;
    return nullptr;
}

lock_threads::wait* lock_threads::begin(int descriptor, kernel_lock::range where, kernel_lock::kind how,
                                        std::shared_ptr<wake_up> waker) noexcept {
    wait* const one = idle_or_new();
    if (one != nullptr) one->begin(descriptor, where, how, std::move(waker));
    return one;
}

int lock_threads::end(wait* one) noexcept {
    std::unique_ptr<wait> owned(one);
    const bool was_early = not owned->has_ended();
    if (was_early) owned->stop_thread();
    const int code = owned->take_outcome();
    std::unique_lock guard(mutex_);
    const bool is_kept = not was_early and idle_count_ < limits::idle_lock_threads_max;
    if (is_kept) {
        ++idle_count_;
        owned->next_idle = std::move(idle_);
        idle_ = std::move(owned);
        return code;
    }
    --count_;
    guard.unlock();
    if (not was_early) owned->stop_thread();
    return code;
}

}  // namespace sluice::fsmutex
