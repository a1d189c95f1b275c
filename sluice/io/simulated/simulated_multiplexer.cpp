#include "sluice/io/simulated/simulated_multiplexer.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/worker_pool.hpp"

namespace sluice::io {

using detail::operation_record;
namespace {

using event_kind = simulation_event::kind;
constexpr auto never = io_multiplexer::time_point::max();
constexpr auto no_wait = io_multiplexer::time_point::min();

// In the order of operation_kind.
constexpr std::array operation_names{"read",      "write",         "write some",     "accept",
                                     "connect",   "ready to read", "ready to write", "splice out",
                                     "splice in", "receive from",  "send to",        "call in",
                                     "call out",  "barrier",       "sleep"};
static_assert(operation_names.size() == static_cast<std::size_t>(operation_kind::sleep) + 1);

// A file operation's `backend_word`: the time when it may advance, and whether its cancel is
// pending.
constexpr std::uint64_t cancel_requested_bit = 1ULL << 63;

/// Invariants:
///   1. `active_` names every side whose queue is not empty, and perhaps some whose queue is.
///   2. The front of an active side's queue is in flight. The operations after it wait, and the
///      base class may withdraw them.
///   3. Operations on files are in `files_` from submission to their end.
///   4. Random numbers are drawn in one order: each follows from the seed and the calls made so
///      far.
class back_end final : public simulated_multiplexer {
public:
    explicit back_end(simulation_options&& options)
        : simulated_multiplexer(options.seed),
          options_(std::move(options)),
          random_(options_.seed),
          clock_(options_.clock != nullptr ? options_.clock : &own_clock_) {
        query_before_speculating();
    }
    ~back_end() override { let_finish(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "simulated"; }
    [[nodiscard]] time_point now() const noexcept override { return clock_->steady_now(); }
    [[nodiscard]] deadline::system_clock::time_point utc_now() const noexcept override {
        return clock_->utc_now();
    }
    [[nodiscard]] bool waits_for_threads() const noexcept override { return false; }
    [[nodiscard]] std::uint64_t events() const noexcept override { return events_; }
    [[nodiscard]] std::uint64_t digest() const noexcept override { return digest_; }
    [[nodiscard]] std::string stalled() const override;
    [[nodiscard]] simulated_clock& clock_of_simulation() noexcept override { return *clock_; }

private:
    // One direction of one handle.
    struct side {
        registration::half* half = nullptr;
        time_point due{};               // when its front may advance
        time_point cancel_due{};        // when the cancel of its front takes effect
        bool is_active = false;         // in `active_`
        bool is_blocked = false;        // EAGAIN, and poll has not shown otherwise since
        bool cancel_requested = false;  // for its front
        int error = 0;                  // its next operation fails with this
        bool error_stays = false;       // and all later ones
    };

    // A possible next step.
    struct choice {
        side* stream = nullptr;
        operation_record* file = nullptr;
        bool is_cancel = false;
    };

    result<void> backend_attach(registration& attached) noexcept override;
    void backend_detach(registration& attached) noexcept override;
    void backend_submit(operation_record& op) noexcept override;
    void backend_cancel(operation_record& op) noexcept override;
    result<void> backend_complete(time_point until) noexcept override;
    void backend_wake() noexcept override {
        if (options_.sleeper != nullptr) options_.sleeper->wake(this);
    }
    void backend_poll(operation_record& op) noexcept override;
    [[nodiscard]] bool backend_attempt(operation_record& op) noexcept override;
    [[nodiscard]] bool backend_is_stalled() const noexcept override { return is_stalled_; }
    [[nodiscard]] bool may_speculate(const operation_record& op) const noexcept override;

    [[nodiscard]] bool happens(permille chance) const noexcept { return random_.below(1000) < chance; }
    [[nodiscard]] duration some_delay() const noexcept;
    [[nodiscard]] side& side_of(const operation_record& op) noexcept;
    void report(event_kind what, const operation_record& op, std::int64_t amount) const noexcept;
    void emit(simulation_event event) const noexcept;

    void take_new() noexcept;
    void show_front(side& s) noexcept;
    void ask_descriptors() noexcept;
    [[nodiscard]] bool step() noexcept;
    [[nodiscard]] time_point next_due() const noexcept;
    void advance_stream(side& s) noexcept;
    void advance_file(operation_record& op) noexcept;
    void after_step(side& s, operation_queue& served) noexcept;
    void fail_stream(side& s, int code) noexcept;
    void end_cancelled(const choice& chosen) noexcept;
    void break_handle(registration& target, int code) noexcept;
    [[nodiscard]] const injected_error* random_error(const operation_record& op) noexcept;
    [[nodiscard]] std::size_t random_limit(std::size_t bytes) noexcept;
    void pass_time(time_point to) noexcept;
    [[nodiscard]] bool wait_for_event(time_point until) noexcept;
    void let_others_run(time_point until) noexcept;
    void record_stall() noexcept;

    // Calls `visit(choice, time)` for every step that is possible without an action from outside.
    template <class Visit>
    void for_each_choice(Visit&& visit) const noexcept;

    simulation_options options_;
    mutable seeded_random random_;
    simulated_clock own_clock_;
    simulated_clock* clock_;
    std::vector<side> sides_;  // two for each slot
    std::vector<std::uint32_t> active_;
    std::vector<pollfd> asked_;
    std::vector<std::uint32_t> asked_sides_;
    operation_queue files_;
    bool is_stalled_ = false;
    mutable std::uint64_t events_ = 0;
    mutable std::uint64_t digest_ = 0xcbf2'9ce4'8422'2325;  // FNV-1a
};

// --- random choices and events
// -------------------------------------------------------------------------------------------------

io_multiplexer::duration back_end::some_delay() const noexcept {
    if (options_.delay_max <= duration::zero()) return duration::zero();
    return duration(random_.below(static_cast<std::uint64_t>(options_.delay_max.count()) + 1));
}

std::size_t back_end::random_limit(std::size_t bytes) noexcept {
    if (bytes <= 1 or not happens(options_.short_transfers)) return bytes;
    // Small parts as often as large ones, because transfers of single bytes break parsers.
    const std::size_t scale = std::size_t{1} << random_.below(20);
    return 1 + random_.below(std::min(bytes, scale));
}

const injected_error* back_end::random_error(const operation_record& op) noexcept {
    for (const injected_error& each : options_.errors) {
        if (each.on != op.kind or (each.of and *each.of != op.target->native.kind)) continue;
        if (happens(each.chance)) return &each;
    }
    return nullptr;
}

void back_end::report(event_kind what, const operation_record& op, std::int64_t amount) const noexcept {
    emit({.what = what, .operation = op.kind, .handle = op.target->slot, .amount = amount});
}

void back_end::emit(simulation_event event) const noexcept {
    event.number = events_++;
    event.when = now();
    for (const std::uint64_t word :
         {event.number, static_cast<std::uint64_t>(event.when.time_since_epoch().count()),
          static_cast<std::uint64_t>(event.what), static_cast<std::uint64_t>(event.operation),
          static_cast<std::uint64_t>(event.handle), static_cast<std::uint64_t>(event.amount)}) {
        digest_ = (digest_ ^ word) * 0x0000'0100'0000'01b3;
    }
    if (options_.listener != nullptr) options_.listener->on_event(event);
}

back_end::side& back_end::side_of(const operation_record& op) noexcept {
    ENSURE(op.target->slot * 2 + 1 < sides_.size(), "only what is attached has sides");
    return sides_[op.target->slot * 2 + static_cast<std::size_t>(direction_of(op.kind))];
}

// --- attaching, submitting, cancelling
// -------------------------------------------------------------------------------------------------

result<void> back_end::backend_attach(registration& attached) noexcept {
    const std::size_t needed = (attached.slot + 1) * 2;
    try {
        if (sides_.size() < needed) sides_.resize(needed);
        // Here, so that no later operation allocates.
        active_.reserve(sides_.capacity());
        asked_.reserve(sides_.capacity());
        asked_sides_.reserve(sides_.capacity());
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "attach to a simulated multiplexer", attached.native.descriptor});
    }
    for (auto& half : attached.halves) {
        ENSURE(half.queue.empty(), "a record is attached with operations of its last handle");
        side& s = sides_[attached.slot * 2 + static_cast<std::size_t>(half.which)];
        const bool was_active = s.is_active;
        s = side{.half = &half, .is_active = was_active};
    }
    return {};
}

void back_end::backend_detach(registration& attached) noexcept {
    // The next check drops its sides from `active_`.
    for (const auto& half : attached.halves)
        ENSURE(half.queue.empty(), "detached while operations are pending");
}

void back_end::backend_submit(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::waiting and not op.target->is_stream(),
           "only files are submitted");
    op.at = operation_record::stage::in_flight;
    op.backend_word = static_cast<std::uint64_t>((now() + some_delay()).time_since_epoch().count());
    files_.push_back(op);
}

void back_end::backend_cancel(operation_record& op) noexcept {
    ENSURE(op.cancel_code != 0, "cancelled without a cause");
    const bool is_stream = op.target->is_stream();
    const bool asked =
        is_stream ? side_of(op).cancel_requested : (op.backend_word & cancel_requested_bit) != 0;
    if (asked) return;
    if (not happens(options_.late_cancels)) {
        end_cancelled(is_stream ? choice{.stream = &side_of(op)} : choice{.file = &op});
        return;
    }
    const time_point heeded = now() + some_delay();
    if (is_stream) {
        side_of(op).cancel_requested = true;
        side_of(op).cancel_due = heeded;
    } else {
        op.backend_word |= cancel_requested_bit;
        op.expires = heeded;  // free: its timer has been removed
    }
    report(event_kind::cancelling, op, op.cancel_code);
}

void back_end::end_cancelled(const choice& chosen) noexcept {
    operation_record& op = chosen.stream != nullptr ? *chosen.stream->half->queue.front() : *chosen.file;
    ENSURE(op.at == operation_record::stage::in_flight and op.cancel_code != 0,
           "an operation ends early without a cancellation, or without the kernel");
    report(event_kind::cancelled, op, op.cancel_code);
    if (chosen.stream != nullptr) {
        withdraw(op, op.cancel_code);
        show_front(*chosen.stream);
        return;
    }
    files_.erase(op);
    if (op.transferred == 0) op.error_code = op.cancel_code;
    finish(op);
}

bool back_end::may_speculate(const operation_record& op) const noexcept {
    if (options_.speculation == 0 or not op.target->is_stream()) return false;
    const std::size_t index = op.target->slot * 2 + static_cast<std::size_t>(direction_of(op.kind));
    ENSURE(index < sides_.size(), "only what is attached has sides");
    const side& s = sides_[index];
    if (s.error != 0 or not happens(options_.speculation)) return false;
    report(event_kind::began, op, 0);
    return true;
}

bool back_end::backend_attempt(operation_record& op) noexcept {
    side& s = side_of(op);
    if (op.target->is_stream() and s.error != 0) {
        op.error_code = s.error;
        if (not s.error_stays) s.error = 0;
        report(event_kind::failed, op, op.error_code);
        return true;
    }
    const bool finished = attempt(op);
    report(finished ? event_kind::finished : event_kind::refused, op,
           static_cast<std::int64_t>(op.transferred));
    return finished;
}

// --- choosing
// -------------------------------------------------------------------------------------------------

// The front of a queue becomes known to the kernel; a new one has a delay of its own.
void back_end::show_front(side& s) noexcept {
    ENSURE(s.half->in_flight == 0, "nothing is with the kernel in a simulation");
    s.cancel_requested = false;
    s.is_blocked = false;
    if (s.half->queue.empty()) return;
    operation_record& front = *s.half->queue.front();
    front.at = operation_record::stage::in_flight;
    s.due = now() + some_delay();
}

void back_end::take_new() noexcept {
    while (registration::half* const half = dirty_.pop_front()) {
        if (half->queue.empty()) continue;
        const std::size_t index = half->owner->slot * 2 + static_cast<std::size_t>(half->which);
        ENSURE(index < sides_.size() and sides_[index].half == half, "only what is attached has sides");
        side& s = sides_[index];
        if (half->queue.front()->at != operation_record::stage::in_flight) show_front(s);
        if (s.is_active) continue;
        s.is_active = true;
        active_.push_back(static_cast<std::uint32_t>(index));
    }
    std::erase_if(active_, [this](std::uint32_t index) {
        side& s = sides_[index];
        s.is_active = not s.half->queue.empty();
        return not s.is_active;
    });
}

// One poll(2) for all refused handles: steps at the other ends may have changed their state.
void back_end::ask_descriptors() noexcept {
    asked_.clear();
    asked_sides_.clear();
    for (const std::uint32_t index : active_) {
        const side& s = sides_[index];
        if (not s.is_blocked) continue;
        const short events = s.half->which == direction::in ? POLLIN : POLLOUT;
        asked_.push_back({.fd = s.half->owner->native.descriptor, .events = events, .revents = 0});
        asked_sides_.push_back(index);
    }
    if (asked_.empty() or ::poll(asked_.data(), asked_.size(), 0) <= 0) return;
    ENSURE(asked_.size() == asked_sides_.size(), "each descriptor that is asked belongs to a side");
    for (std::size_t i = 0; i < asked_.size(); ++i) {
        if (asked_[i].revents != 0) sides_[asked_sides_[i]].is_blocked = false;
    }
}

template <class Visit>
void back_end::for_each_choice(Visit&& visit) const noexcept {
    for (const std::uint32_t index : active_) {
        side& s = const_cast<side&>(sides_[index]);
        if (s.half->queue.empty()) continue;
        if (not s.is_blocked or s.error != 0) visit(choice{.stream = &s}, s.due);
        if (s.cancel_requested) visit(choice{.stream = &s, .is_cancel = true}, s.cancel_due);
    }
    for (operation_record& op : files_) {
        const auto due = duration(static_cast<std::int64_t>(op.backend_word & ~cancel_requested_bit));
        visit(choice{.file = &op}, time_point(due));
        const bool cancel_requested = (op.backend_word & cancel_requested_bit) != 0;
        if (cancel_requested) visit(choice{.file = &op, .is_cancel = true}, op.expires);
    }
}

io_multiplexer::time_point back_end::next_due() const noexcept {
    time_point next = never;
    for_each_choice([&](const choice&, time_point due) { next = std::min(next, due); });
    return next;
}

// Executes one of the possible steps. Returns whether there was one.
bool back_end::step() noexcept {
    take_new();
    ask_descriptors();
    const time_point time = now();
    std::uint64_t possible = 0;
    for_each_choice([&](const choice&, time_point due) { possible += due <= time ? 1 : 0; });
    if (possible == 0) return false;
    std::uint64_t drawn = possible == 1 ? 0 : random_.below(possible);
    choice chosen;
    for_each_choice([&](const choice& each, time_point due) {
        if (due <= time and drawn-- == 0) chosen = each;
    });
    ENSURE((chosen.stream != nullptr) != (chosen.file != nullptr),
           "a draw chooses one of the possible events");
    clock_->advance(options_.step_time);
    if (chosen.is_cancel) {
        end_cancelled(chosen);
    } else if (chosen.stream != nullptr) {
        advance_stream(*chosen.stream);
    } else {
        advance_file(*chosen.file);
    }
    return true;
}

// --- advancing
// -------------------------------------------------------------------------------------------------

void back_end::break_handle(registration& target, int code) noexcept {
    ENSURE(code != 0, "a handle breaks with the error of its operations");
    for (auto& half : target.halves) {
        side& s = sides_[target.slot * 2 + static_cast<std::size_t>(half.which)];
        s.error = code;
        s.error_stays = true;
    }
    // The other end must notice as well. A pipe's does when this end is closed.
    if (target.native.kind == handle_kind::socket) (void)::shutdown(target.native.descriptor, SHUT_RDWR);
}

// Fails the front. If a part of it has been transferred, that is reported instead, and the next
// operation gets the error.
void back_end::fail_stream(side& s, int code) noexcept {
    ENSURE(code != 0, "fails without a cause");
    operation_record& front = *s.half->queue.front();
    report(event_kind::failed, front, code);
    if (front.transferred != 0) s.error = code;
    withdraw(front, code);
    show_front(s);
}

void back_end::advance_stream(side& s) noexcept {
    operation_record& front = *s.half->queue.front();
    ENSURE(s.is_active and front.at == operation_record::stage::in_flight,
           "the front of an active side is in flight");
    ENSURE(s.due <= now(), "it happens before it may");
    if (s.error != 0) {
        const int code = s.error;
        if (not s.error_stays) s.error = 0;
        fail_stream(s, code);
        return;
    }
    if (happens(options_.spurious_waits)) {
        report(event_kind::held_back, front, 0);
        s.due = now() + std::max(some_delay(), options_.step_time);
        return;
    }
    if (const injected_error* const drawn = random_error(front)) {
        if (drawn->breaks) break_handle(*front.target, drawn->code);
        fail_stream(s, drawn->code);
        return;
    }
    operation_queue served;
    const std::size_t before = front.transferred;
    const bool may_share = front.target->native.stream and front.kind <= operation_kind::write;
    const bool together = may_share and s.half->queue.back() != &front and random_.below(2) == 0;
    const std::size_t limit = random_limit(requested_bytes(front) - before);
    const progress made =
        together ? advance_together(*s.half, served, limit) : advance(front, limit, wait::no);
    if (made == progress::would_block) {
        report(event_kind::refused, front, 0);
        s.is_blocked = true;
        return;
    }
    if (not together and made == progress::finished) finish_front(*s.half, served);
    if (served.empty()) {
        report(event_kind::advanced, front, static_cast<std::int64_t>(front.transferred - before));
        s.due = now() + some_delay();
        return;
    }
    after_step(s, served);
}

void back_end::after_step(side& s, operation_queue& served) noexcept {
    while (operation_record* const op = served.pop_front()) {
        const bool is_error = op->error_code != 0;
        report(is_error ? event_kind::failed : event_kind::finished, *op,
               is_error ? op->error_code : static_cast<std::int64_t>(op->transferred));
        finish(*op);
    }
    show_front(s);
}

void back_end::advance_file(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::in_flight,
           "a file's operation is in flight from its submission");
    const auto done = [&](event_kind what, std::int64_t amount) {
        report(what, op, amount);
        files_.erase(op);
        finish(op);
    };
    if (const injected_error* const drawn = random_error(op)) {
        if (op.transferred == 0) op.error_code = drawn->code;
        done(event_kind::failed, drawn->code);
        return;
    }
    if (op.kind == operation_kind::barrier) {
        perform_blocking(op);
        done(op.error_code == 0 ? event_kind::finished : event_kind::failed, op.error_code);
        return;
    }
    const std::size_t before = op.transferred;
    const std::size_t limit = random_limit(requested_bytes(op) - before);
    const progress made = advance(op, limit, wait::yes);
    ENSURE(op.transferred - before <= limit, "it advances by no more than was drawn");
    if (made == progress::finished) {
        const bool is_error = op.error_code != 0;
        done(is_error ? event_kind::failed : event_kind::finished,
             is_error ? op.error_code : static_cast<std::int64_t>(op.transferred));
        return;
    }
    report(event_kind::advanced, op, static_cast<std::int64_t>(op.transferred - before));
    const auto due = static_cast<std::uint64_t>((now() + some_delay()).time_since_epoch().count());
    op.backend_word = (op.backend_word & cancel_requested_bit) | due;
}

// --- the loop
// -------------------------------------------------------------------------------------------------

void back_end::pass_time(time_point to) noexcept {
    const duration passed = to - now();
    ENSURE(passed > duration::zero(), "time passes forwards");
    clock_->advance_to(to);
    emit({.what = event_kind::time_passed, .operation = operation_kind::sleep, .amount = passed.count()});
}

void back_end::record_stall() noexcept {
    is_stalled_ = true;
    if (pending() != 0) emit({.what = event_kind::stalled, .amount = static_cast<std::int64_t>(pending())});
}

// step() has just called poll: descriptors that it did not report are still blocked.
void back_end::let_others_run(time_point until) noexcept {
    std::erase_if(asked_, [](const pollfd& each) { return each.revents != 0; });
    if (not options_.sleeper->sleep(this, until, asked_)) record_stall();
}

// No event is possible now. Returns whether one is after the time that has passed.
bool back_end::wait_for_event(time_point until) noexcept {
    if (not prepare_to_sleep()) return false;  // an item has been posted
    const time_point next = next_due();
    const time_point target = std::min(next, until);
    if (options_.sleeper != nullptr) {
        let_others_run(target);
        woke_up();
        return false;
    }
    woke_up();
    if (target == never) {
        record_stall();
        return false;
    }
    if (target > now()) pass_time(target);
    return next <= until;
}

result<void> back_end::backend_complete(time_point until) noexcept {
    is_stalled_ = false;
    constexpr int steps_max = 64;  // per pass, so that deadlines are checked in between
    for (int steps = 0; steps < steps_max;) {
        if (step()) {
            ++steps;
            if (until != no_wait and now() >= until) return {};
            // The number of operations that end in one pass is random as well.
            if (not ready_.empty() and random_.below(2) == 0) return {};
            continue;
        }
        if (not ready_.empty()) return {};
        if (until == no_wait or now() >= until) {
            // A check takes time, because otherwise a program that only checks would never see it
            // pass.
            if (steps == 0) clock_->advance(options_.step_time);
            return {};
        }
        if (not wait_for_event(until)) return {};
    }
    return {};
}

void back_end::backend_poll(operation_record&) noexcept {
    // Operations that wait to be signalled must not prevent the time from passing.
    operation_queue kept = std::move(ready_);
    (void)backend_complete(no_wait);
    kept.append(std::move(ready_));
    ready_ = std::move(kept);
}

std::string describe(const operation_record& op) {
    std::string text = operation_names[static_cast<std::size_t>(op.kind)];
    text += " on handle " + std::to_string(op.target->slot) + " (descriptor " +
            std::to_string(op.target->native.descriptor) + ")";
    if (op.piece_count != 0) {
        text +=
            ": " + std::to_string(op.transferred) + " of " + std::to_string(requested_bytes(op)) + " bytes";
    }
    return text;
}

std::string back_end::stalled() const {
    std::string text;
    if (not is_stalled_) return text;
    for (const side& s : sides_) {
        if (s.half == nullptr) continue;
        for (const operation_record& op : s.half->queue)
            text += describe(op) + "\n";
    }
    return text;
}

}  // namespace

result<std::unique_ptr<simulated_multiplexer>> make_simulated_multiplexer(
    simulation_options options) noexcept {
    auto* const made = new (std::nothrow) back_end(std::move(options));
    if (made == nullptr) return failure({ENOMEM, "make a simulated multiplexer"});
    return std::unique_ptr<simulated_multiplexer>(made);
}

std::string to_text(const simulation_event& event) {
    static constexpr std::array names{"advanced",   "finished",  "refused", "held back",   "failed",
                                      "cancelling", "cancelled", "began",   "time passed", "stalled"};
    return std::to_string(event.number) + " at " + std::to_string(event.when.time_since_epoch().count()) +
           " ns: " + operation_names[static_cast<std::size_t>(event.operation)] + " on handle " +
           std::to_string(event.handle) + " " + names[static_cast<std::size_t>(event.what)] + ", " +
           std::to_string(event.amount);
}

}  // namespace sluice::io
