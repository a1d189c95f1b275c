#include "sluice/io/loop/refused_handles.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <type_traits>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/io_multiplexer_sharing.hpp"

namespace sluice::io {

using detail::operation_record;

void io_multiplexer::refuse_all() noexcept {
    ENSURE(sharing_ == nullptr and pending_ == 0, "a multiplexer refuses all from its first use on");
    refuses_all_ = true;
    // Exists only so that is_for_threads() is true. Static, so that it cannot fail; there is one
    // such multiplexer.
    alignas(sharing) static std::array<std::byte, sizeof(sharing)> room;
    sharing_.reset(new (room.data()) sharing);
}

// Gives the signals, or passes them to an outer call on this thread, so that receivers do not nest.
// Any number of threads may be here: the lock guards the members that a thread needs when it
// abandons the operation.
void io_multiplexer::end_refused(operation_record& op, int code) noexcept {
    const entry in(*this);
    ENSURE(op.is_idle(), "started while pending");
    op.transferred = 0;
    op.error_code = code;
    op.cancel_code = 0;
    op.has_completed = false;
    op.at = operation_record::stage::ready;
    operation_queue here;
    operation_queue& waiting = refused_ != nullptr ? *refused_ : here;
    op.backend_word = reinterpret_cast<std::uintptr_t>(&waiting);  // for abandon_refused()
    waiting.push_back(op);
    if (refused_ != nullptr) return;
    refused_ = &here;
    while (operation_record* const next = here.pop_front())
        signal_refused(*next);
    refused_ = nullptr;
}

// Not by `outside`: a handle must not adopt this multiplexer.
void io_multiplexer::signal_refused(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::ready, "signalled twice");
    const held by_this_thread(sharing_->signalling, op);
    op.at = operation_record::stage::valued;
    op.has_completed = true;
    leave();
    op.signal_value();
    (void)enter();
    op.at = operation_record::stage::idle;
    leave();
    op.signal_done();  // it may be gone, or started again
    (void)enter();
}

bool io_multiplexer::abandon_refused(operation_record& op) noexcept {
    const entry in(*this);
    const bool has_no_value = op.at == operation_record::stage::ready;
    // The queue may belong to another thread.
    // NOLINTNEXTLINE: the word is that of a queue
    if (has_no_value) reinterpret_cast<operation_queue*>(op.backend_word)->erase(op);
    while (sharing_->is_signalled_elsewhere(op)) {
        leave();
        std::this_thread::yield();
        (void)enter();
    }
    op.at = operation_record::stage::idle;
    return has_no_value;
}

namespace detail {
namespace {

static_assert(std::has_unique_object_representations_v<error>, "errors are compared as bytes");

// No thread runs it, and nothing is ever pending on it. Its lock guards the errors.
class refusing_multiplexer final : public io_multiplexer {
public:
    refusing_multiplexer() noexcept { refuse_all(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "none"; }

    [[nodiscard]] registration& with(const error& why) noexcept {
        // The path is kept, but not the descriptor, which differs each time.
        const error kept =
            why.descriptor() == error::no_descriptor ? why : error(why.code(), why.operation());
        const io_multiplexer::entry in(*this);
        std::size_t same_cause = limits::refusals_max - 1;
        for (std::size_t i = 0; i < refusals_.size(); ++i) {
            if (not refusals_[i]) return refusals_[i].emplace(kept, *this).target;
            const error& known = refusals_[i]->why;
            if (known != kept) continue;
            if (std::memcmp(&known, &kept, sizeof kept) == 0) return refusals_[i]->target;
            same_cause = i;
        }
        return refusals_[same_cause]->target;
    }

    void lock() noexcept { locked_.emplace(*this); }
    void unlock() noexcept { locked_.reset(); }

private:
    struct refusal {
        refusal(const error& of, io_multiplexer& none) noexcept : why(of) {
            target.multiplexer = &none;
            target.is_shared = true;
            target.refusal = &why;
        }
        const error why;
        registration target;
    };

    result<void> backend_attach(registration&) noexcept override {
        return failure({EOPNOTSUPP, "attach to multiplexer"});
    }
    void backend_detach(registration&) noexcept override {}
    void backend_submit(operation_record&) noexcept override {}
    void backend_cancel(operation_record&) noexcept override {}
    result<void> backend_complete(time_point) noexcept override { return {}; }
    void backend_wake() noexcept override {}

    std::array<std::optional<refusal>, limits::refusals_max> refusals_;
    std::optional<io_multiplexer::entry> locked_;
};

// The multiplexer, created when it is first needed and never destroyed, because a thread may start
// such an operation while the program ends. It is not a static variable in a function: a child
// after fork(2) might find its initialisation lock held permanently. During the fork, the forking
// thread holds both locks; no user code runs under them.
class refusals {
public:
    [[nodiscard]] static refusing_multiplexer& all() noexcept {
        const std::scoped_lock guard(making_);
        if (made_ == nullptr) made_ = new (room_.data()) refusing_multiplexer;
        return *made_;
    }

private:
    static void before_fork() noexcept {
        making_.lock();
        if (made_ != nullptr) made_->lock();
    }
    static void after_fork() noexcept {
        if (made_ != nullptr) made_->unlock();
        making_.unlock();
    }

    alignas(refusing_multiplexer) static inline std::array<std::byte, sizeof(refusing_multiplexer)> room_;
    static inline constinit std::mutex making_;
    static inline constinit refusing_multiplexer* made_ = nullptr;
    static inline const bool is_kept_ = ::pthread_atfork(before_fork, after_fork, after_fork) == 0;
};

}  // namespace

registration& refused_handle(const error& why) noexcept {
    return refusals::all().with(why);
}

}  // namespace detail
}  // namespace sluice::io
