#include "sluice/io/refused_handles.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>

#include "sluice/io/io_multiplexer_sharing.hpp"
#include "sluice/io/limits.hpp"

namespace sluice::io {

using detail::operation_record;

void io_multiplexer::refuse_all() noexcept {
    refuses_all_ = true;
    // Only so that is_for_threads() is true. Static, so that it cannot fail; there is one such multiplexer.
    alignas(sharing) static std::array<std::byte, sizeof(sharing)> room;
    sharing_.reset(new (room.data()) sharing);
}

// Gives the signals, or has them given by an outer call on this thread, so that receivers do not nest.
// Touches nothing but the operation: any number of threads may be here.
void io_multiplexer::end_refused(operation_record& op, int code) noexcept {
    ENSURE(op.is_idle(), "started while pending");
    op.transferred = 0;
    op.error_code = code;
    op.cancel_code = 0;
    op.has_completed = false;
    op.at = operation_record::stage::ready;
    if (refused_ != nullptr) return refused_->push_back(op);
    operation_queue here;
    here.push_back(op);
    refused_ = &here;
    while (operation_record* const next = here.pop_front()) {
        next->at = operation_record::stage::valued;
        next->has_completed = true;
        next->signal_value();
        next->at = operation_record::stage::idle;
        next->signal_done();  // it may be gone, or started again
    }
    refused_ = nullptr;
}

namespace detail {
namespace {

// No thread runs it, and nothing is ever pending on it.
class refusing_multiplexer final : public io_multiplexer {
public:
    refusing_multiplexer() noexcept { refuse_all(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "none"; }

private:
    result<void> backend_attach(registration&) noexcept override {
        return failure({EOPNOTSUPP, "attach to multiplexer"});
    }
    void backend_detach(registration&) noexcept override {}
    void backend_submit(operation_record&) noexcept override {}
    void backend_cancel(operation_record&) noexcept override {}
    result<void> backend_complete(time_point) noexcept override { return {}; }
    void backend_wake() noexcept override {}
};

static_assert(std::has_unique_object_representations_v<error>, "errors are compared as bytes");

class refusals {
public:
    [[nodiscard]] registration& with(const error& why) noexcept {
        // A path stays, but a descriptor goes: it is another one each time.
        const error kept =
            why.descriptor() == error::no_descriptor ? why : error(why.code(), why.operation());
        const std::scoped_lock guard(lock_);
        std::size_t same_cause = limits::refusals_max - 1;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (not entries_[i]) return entries_[i].emplace(kept, none_).target;
            const error& known = entries_[i]->why;
            if (known != kept) continue;
            if (std::memcmp(&known, &kept, sizeof kept) == 0) return entries_[i]->target;
            same_cause = i;
        }
        return entries_[same_cause]->target;
    }

private:
    struct entry {
        entry(const error& of, io_multiplexer& none) noexcept : why(of) {
            target.multiplexer = &none;
            target.refusal = &why;
        }
        const error why;
        registration target;
    };

    refusing_multiplexer none_;
    std::mutex lock_;  // guards what follows
    std::array<std::optional<entry>, limits::refusals_max> entries_;
};

}  // namespace

registration& refused_handle(const error& why) noexcept {
    // Never destroyed: a thread may start such an operation while the program ends.
    alignas(refusals) static std::array<std::byte, sizeof(refusals)> room;
    static refusals& all = *new (room.data()) refusals;
    return all.with(why);
}

}  // namespace detail
}  // namespace sluice::io
