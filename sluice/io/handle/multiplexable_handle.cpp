#include "sluice/io/handle/multiplexable_handle.hpp"

#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/loop/known_calls.hpp"
#include "sluice/io/loop/refused_handles.hpp"

namespace sluice::io {

multiplexable_handle& multiplexable_handle::operator=(multiplexable_handle&& other) noexcept {
    if (this != &other) {
        detach_permanently();
        handle::operator=(std::move(other));
        registration_ = std::exchange(other.registration_, nullptr);
    }
    return *this;
}

multiplexable_handle::~multiplexable_handle() {
    detach_permanently();
}

void multiplexable_handle::detach_permanently() noexcept {
    if (registration_ == nullptr) return;
    const auto detached = set_multiplexer(nullptr);
    ENSURE(detached.has_value(),
           "a handle is closed while I/O is pending on it: cancel and complete it first");
}

io_multiplexer* multiplexable_handle::multiplexer() const noexcept {
    return registration_ != nullptr ? registration_->multiplexer : nullptr;
}

result<void> multiplexable_handle::set_multiplexer(io_multiplexer* multiplexer) noexcept {
    if (registration_ != nullptr) {
        if (auto detached = detail::engine::detach(*registration_->multiplexer, *registration_); not detached)
            return detached;
        registration_ = nullptr;
    }
    if (multiplexer == nullptr) return {};
    auto attached = detail::engine::attach(*multiplexer, native_);
    if (not attached) return failure(attached.error());
    ENSURE((*attached)->pending == 0 and (*attached)->multiplexer == multiplexer,
           "a record is used again while operations are pending on it");
    registration_ = *attached;
    return {};
}

result<void> multiplexable_handle::set_multiplexer() noexcept {
    auto own = this_thread::multiplexer();
    if (not own) return failure(own.error());
    return set_multiplexer(*own);
}

registration& multiplexable_handle::adopt() noexcept {
    ENSURE(registration_ == nullptr, "a handle that has a multiplexer adopts none");
    io_multiplexer* const running = io_multiplexer::running_here();
    if (const auto attached = running != nullptr ? set_multiplexer(running) : set_multiplexer(); not attached)
        return detail::refused_handle(attached.error());
    return *registration_;
}

void multiplexable_handle::record_nonblocking() noexcept {
    native_.nonblocking = true;
    if (registration_ != nullptr) io::record_nonblocking(*registration_);
}

result<void> multiplexable_handle::close() noexcept {
    detach_permanently();
    return handle::close();
}

native_handle multiplexable_handle::release() noexcept {
    detach_permanently();
    return handle::release();
}

}  // namespace sluice::io
