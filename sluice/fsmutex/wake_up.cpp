#include "sluice/fsmutex/wake_up.hpp"

#include <cerrno>
#include <new>

#include "sluice/base/ensure.hpp"
#include "sluice/io/engine.hpp"

namespace sluice::fsmutex {

std::shared_ptr<wake_up> wake_up::create() noexcept {
    try {
        return std::make_shared<wake_up>();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void wake_up::attach(io::io_multiplexer& loop, io::detail::operation_record& sleeping) noexcept {
    sleeping_ = &sleeping;
    const std::scoped_lock guard(mutex_);
    ENSURE(loop_ == nullptr, "one wait at a time");
    loop_ = &loop;
    if (was_woken_) post_with_mutex_held();
}

bool wake_up::detach() noexcept {
    sleeping_ = nullptr;
    const std::scoped_lock guard(mutex_);
    loop_ = nullptr;
    return was_woken_;
}

bool wake_up::was_woken() noexcept {
    const std::scoped_lock guard(mutex_);
    return was_woken_;
}

void wake_up::wake() noexcept {
    const std::scoped_lock guard(mutex_);
    ENSURE(not was_woken_, "woken twice");
    was_woken_ = true;
    if (loop_ != nullptr) post_with_mutex_held();
}

// With the mutex held, so that detach() does not return, and the loop does not go, before post() has.
void wake_up::post_with_mutex_held() noexcept {
    while_posted_ = shared_from_this();
    loop_->post(*this);
}

void wake_up::invoke() noexcept {
    std::shared_ptr<wake_up> kept;
    {
        const std::scoped_lock guard(mutex_);
        kept = std::move(while_posted_);
    }
    if (sleeping_ != nullptr)
        io::detail::engine::cancel(*sleeping_->target->multiplexer, *sleeping_, ECANCELED);
}

}  // namespace sluice::fsmutex
