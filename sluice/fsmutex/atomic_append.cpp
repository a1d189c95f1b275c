#include "sluice/fsmutex/atomic_append.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "sluice/fsmutex/cpu_relax.hpp"
#include "sluice/fsmutex/process/descriptor_pool.hpp"
#include "sluice/fsmutex/process/process_identity.hpp"
#include "sluice/fsmutex/queue/queue_scan.hpp"

namespace sluice::fsmutex {

using namespace queue_format;
using kernel_lock::kind;

namespace {

// About 20 µs, the cost of sleeping and being woken, or as long as a few requests take. Each poll
// is a system call there, and on tmpfs it locks the page that others write.
constexpr int looks_with_other_processors = 1000;
constexpr int looks_per_long_look = 25;
constexpr unsigned relaxes_between_long_looks = 100;

std::uint64_t this_processor() noexcept {
    return static_cast<std::uint64_t>(std::max(::sched_getcpu(), 0)) & queue_bytes::processor_mask;
}

}  // namespace

/// The state of one request. Later requests reuse it.
struct atomic_append::lane {
    // A slot of a dead process.
    struct dead_slot {
        queue_scan::blocking_slot where;
        slot rest;  // the part to report to others after we have repaired the data of our entities
        std::unique_ptr<dead_slot> next;
    };

    explicit lane(std::uint64_t seed) noexcept : ids(seed) {}

    seeded_random ids;    // a random number from the kernel would cost a system call each time
    int descriptor = -1;  // opened with O_APPEND; its locks are the request's
    std::uint64_t id = 0;
    std::uint64_t ids_locked = 0;  // that one, and the following ones
    std::uint64_t place = 0;
    std::size_t slots = 0;
    std::size_t slots_room = 0;
    std::unique_ptr<std::byte[]> bytes;  // as appended
    queue_scan scan;
    std::optional<queue_scan::blocking_slot> contended;
    std::optional<queue_scan::blocking_slot> neighbour;  // a conflicting slot with the same CPU
    std::unique_ptr<dead_slot> dead;
    lock_threads::wait* waiting = nullptr;  // for the lock of the contended slot
    bool owner_died = false;
    bool is_granted = false;
    bool is_patient = false;
    bool has_waited = false;
    bool has_yielded = false;
    bool has_checked = false;
    bool has_contended = false;  // its lock: it no longer conflicts
    bool has_locks_of_others = false;
    std::unique_ptr<lane> next_idle;

    [[nodiscard]] result<void> record_dead(const slot& found, std::span<const entity> wanted) noexcept;
    void repair(queue_file& file) noexcept;
};

result<void> atomic_append::lane::record_dead(const slot& found, std::span<const entity> wanted) noexcept {
    std::unique_ptr<dead_slot> node(new (std::nothrow)
                                        dead_slot{.where = *contended, .rest = {}, .next = nullptr});
    if (node == nullptr) return failure({ENOMEM, "lock entities"});
    // Shared holders have changed nothing, and repair nothing.
    node->rest = with_only(found, [&](entity of_dead) {
        return of_dead.is_exclusive() and std::find(wanted.begin(), wanted.end(), of_dead) == wanted.end();
    });
    node->next = std::move(dead);
    dead = std::move(node);
    return {};
}

void atomic_append::lane::repair(queue_file& file) noexcept {
    const queue_file::append_pause pause(file, descriptor);
    if (pause.error_code() != 0) return;  // the death is reported again
    for (; dead != nullptr; dead = std::move(dead->next)) {
        const auto now = queue_scan::recheck(file, dead->where);
        if (not now or not now->is_live()) continue;
        const auto others = dead->rest.entities();
        const slot rest = with_only(
            *now, [&](entity each) { return std::find(others.begin(), others.end(), each) != others.end(); });
        // If two processes do this at once, without a pause, one may report a death again that the
        // other has repaired. That is harmless.
        file.rewrite(dead->where.offset, rest);
    }
}

class atomic_append::lanes {
public:
    lanes(int original, const process_identity& self, random_source& random) noexcept
        : descriptors_(original, O_RDWR | O_APPEND), random_(random) {
        head_.kind = slot_kind::head;
        head_.process_id = self.id;
        // Its last byte stays zero, as erase() requires.
        self.host_name().copy(head_.host.data(), head_.host.size() - 1);
    }
    ~lanes() {
        while (idle_ != nullptr) {
            ::close(idle_->descriptor);
            idle_ = std::exchange(idle_->next_idle, nullptr);
        }
    }

    [[nodiscard]] result<lane*> take() noexcept {
        {
            const std::lock_guard holding(mutex_);
            if (idle_ != nullptr) {
                lane* const taken = idle_.release();
                idle_ = std::move(taken->next_idle);
                return taken;
            }
        }
        std::unique_ptr<lane> made(new (std::nothrow) lane(random_.next_u64()));
        if (made == nullptr) return failure({ENOMEM, "lock entities"});
        const auto descriptor = descriptors_.take();
        if (not descriptor) return failure(descriptor.error());
        made->descriptor = *descriptor;
        return made.release();
    }
    void release(lane& used) noexcept {
        used.contended.reset();
        used.neighbour.reset();
        used.owner_died = false;
        used.is_granted = false;
        used.has_waited = false;
        used.has_yielded = false;
        used.has_checked = false;
        used.has_contended = false;
        used.has_locks_of_others = false;
        used.slots = 0;
        used.scan.end();
        const std::lock_guard holding(mutex_);
        used.next_idle = std::move(idle_);
        idle_.reset(&used);
    }
    /// The common part of the heads of all our requests.
    [[nodiscard]] const slot& head() const noexcept { return head_; }

private:
    descriptor_pool descriptors_;
    random_source& random_;
    sync::basic_small_mutex<sync::real_atomics> mutex_;
    std::unique_ptr<lane> idle_;
    slot head_;
};

atomic_append::atomic_append(std::unique_ptr<queue_file> file, std::unique_ptr<lanes> requests,
                             const dependencies& from, fork_mark mark) noexcept
    : shared_fs_mutex(from, std::move(mark)),
      file_(std::move(file)),
      lanes_(std::move(requests)),
      looks_(::get_nprocs() > 1 ? looks_with_other_processors : 0) {}
atomic_append::~atomic_append() {
    if (is_ours()) return;
    file_->leave_to_parent();
    threads_.leave_to_parent();
}

result<std::unique_ptr<shared_fs_mutex>> atomic_append::open_with_access(const io::path_handle& base,
                                                                         io::path_view path,
                                                                         const dependencies& from,
                                                                         const file_access& access) noexcept {
    const auto self = process_identity::of_this_process();
    if (not self) return failure(self.error());
    auto mark = fork_mark::of_this_process();
    if (not mark) return failure(mark.error());
    auto file = queue_file::open(base, path, from, access);
    if (not file) return failure(file.error());
    std::unique_ptr<lanes> requests(new (std::nothrow) lanes((*file)->descriptor(), *self, *from.random));
    if (requests == nullptr) return failure({ENOMEM, "open a mutex"});
    std::unique_ptr<shared_fs_mutex> made(
        new (std::nothrow) atomic_append(std::move(*file), std::move(requests), from, *std::move(mark)));
    if (made == nullptr) return failure({ENOMEM, "open a mutex"});
    return made;
}

// In a ticket, `state` is the lane and `mark` counts the pauses.

result<void> atomic_append::generate_id(lane& mine) noexcept {
    while (mine.ids_locked == 0) {
        mine.id = (mine.ids.next_u64() & queue_bytes::random_mask) | this_processor()
                                                                         << queue_bytes::count_bits;
        // Locked before another process can read it: a slot with a free lock always belongs to a
        // dead process.
        const auto several = queue_bytes::of_requests_from(mine.id);
        const int code = kernel_lock::try_lock(mine.descriptor, several, kind::exclusive);
        if (code != 0 and code != EAGAIN) return failure({code, "lock a request", mine.descriptor});
        if (code == 0) mine.ids_locked = several.length;  // else another process has the same id
    }
    return {};
}

result<void> atomic_append::append(lane& mine, std::span<const entity> wanted) noexcept {
    const std::size_t slots = slots_for(wanted.size());
    if (slots > mine.slots_room) {
        mine.bytes.reset(new (std::nothrow) std::byte[slots * slot_bytes]);
        mine.slots_room = mine.bytes != nullptr ? slots : 0;
        if (mine.bytes == nullptr) return failure({ENOMEM, "lock entities"});
    }
    slot head = lanes_->head();
    head.id = mine.id;
    head.when_us = file_->age_us();
    for (std::size_t i = 0; i != slots; ++i)
        encode(slot_of(head, wanted, i),
               std::span<std::byte, slot_bytes>(mine.bytes.get() + i * slot_bytes, slot_bytes));
    const auto place = file_->append(mine.descriptor, {mine.bytes.get(), slots * slot_bytes});
    if (not place) return failure(place.error());
    mine.place = *place;
    mine.slots = slots;
    mine.scan.begin_at_own(*file_, mine.place);
    return {};
}

// Checks before appending, so that a request that does not wait leaves no trace if it would have
// to.
result<bool> atomic_append::is_free(lane& mine, std::span<const entity> wanted) noexcept {
    const auto end = file_->end();
    if (not end) return failure(end.error());
    mine.scan.begin(*file_, *end / slot_bytes * slot_bytes);
    for (;;) {
        const auto found = mine.scan.next(*file_, wanted);
        if (not found) return failure(found.error());
        if (not*found) return true;
        const auto is_alive =
            kernel_lock::is_locked(mine.descriptor, queue_bytes::of_request((*found)->id), kind::shared);
        if (not is_alive) return failure(is_alive.error());
        if (*is_alive) return false;
    }
}

// If the queue has two requests of one CPU, each of their turns is a switch between processes. That
// does not change, because all come back in the order in which they came. So a thread that was
// queued after another one of its CPU lets that one run before its next request: then they are in
// the queue one at a time. The other would have to run first in any case, so this wait is never
// wasted, however long it takes, and needs no deadline, unlike a request. While one of them is in
// the queue, the others would only cause such switches again.
void atomic_append::yield_to_neighbours(lane& mine, std::span<const entity> wanted,
                                        wait_policy how) noexcept {
    if (how != wait_policy::endless or not met_neighbour_.load(std::memory_order_relaxed)) return;
    met_neighbour_.store(false, std::memory_order_relaxed);
    yield_policy_.yield_to_requesters(clock(), [&] { return has_neighbour(mine, wanted); });
}

// Returns whether the queue has a conflicting request of our CPU.
bool atomic_append::has_neighbour(lane& mine, std::span<const entity> wanted) noexcept {
    // On a file system with a server, reading the slot takes a message.
    if (file_->method() != queue_file::append_method::atomic) return false;
    const auto end = file_->end();
    if (not end) return false;
    mine.scan.begin(*file_, *end / slot_bytes * slot_bytes);
    const auto found = mine.scan.next(*file_, wanted);
    return found and * found and mine.scan.neighbour(**found, wanted, this_processor());
}

result<bool> atomic_append::enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept {
    const auto taken = lanes_->take();
    if (not taken) return failure(taken.error());
    lane& own = **taken;
    own.is_patient = how != wait_policy::none;
    yield_to_neighbours(own, wanted, how);
    const auto enter_queue = [&]() -> result<void> {
        if (how == wait_policy::none) {
            const auto free = is_free(own, wanted);
            if (not free) return failure(free.error());
            if (not*free) return failure({ETIMEDOUT, "lock entities"});
        }
        if (const auto drawn = generate_id(own); not drawn) return drawn;
        return append(own, wanted);
    };
    const auto entered = enter_queue();
    if (not entered) {
        unlock_ids(own);
        lanes_->release(own);
        return failure(entered.error());
    }
    mine.state = &own;
    const auto granted = poll(wanted, mine);
    if (not granted) leave(mine);
    return granted;
}

// Returns whether the contended slot no longer conflicts; if its process died, records that.
result<bool> atomic_append::is_past(lane& own, std::span<const entity> wanted) noexcept {
    if (not own.has_contended) {
        const auto before = own.scan.recheck_and_scan_ahead(*file_, *own.contended);
        if (not before) return failure(before.error());
        if (not before->is_live()) return true;
        const int code =
            kernel_lock::try_lock(own.descriptor, queue_bytes::of_request(own.contended->id), kind::shared);
        if (code == EAGAIN) return false;
        if (code != 0) return failure({code, "wait for a request", own.descriptor});
    }
    // Once granted, this lock stays until we leave. It conflicts with no request, because the
    // previous holder uses another id.
    own.has_contended = false;
    own.has_locks_of_others = true;
    const auto seen = own.scan.recheck_and_scan_ahead(*file_, *own.contended);
    if (not seen) return failure(seen.error());
    if (not seen->is_live()) return true;
    // Its lock is free, but the slot is not erased: the process died.
    own.scan.record_remains(*own.contended);
    if (auto recorded = own.record_dead(*seen, wanted); not recorded) return failure(recorded.error());
    own.owner_died = own.owner_died or own.contended->was_exclusive;
    return true;
}

result<bool> atomic_append::poll(std::span<const entity> wanted, ticket& mine) noexcept {
    lane& own = *static_cast<lane*>(mine.state);
    for (;;) {
        if (own.contended) {
            const auto past = is_past(own, wanted);
            if (not past or not*past) return past;
            own.contended.reset();
        }
        const auto found = own.scan.next(*file_, wanted);
        if (not found) return failure(found.error());
        if (not*found) break;
        own.contended = *found;
        own.neighbour = own.scan.neighbour(**found, wanted, queue_bytes::processor_of(own.id));
        if (own.neighbour) met_neighbour_.store(true, std::memory_order_relaxed);
        own.has_waited = true;
        own.has_checked = false;
        // It was there a moment ago: a request that can wait does so before it requests the lock
        // from the kernel.
        if (own.is_patient) return false;
    }
    // Otherwise the file was truncated, and slots of holders may be gone as well.
    if (own.has_waited and not has_place(own))
        return failure({EBADMSG, "lock entities with a truncated mutex file", file_->descriptor()});
    own.is_granted = true;
    mine.owner_died = own.owner_died;
    return true;
}

// Returns whether its slot is where it was appended. No user removes it, but a program that
// truncates the file does.
bool atomic_append::has_place(const lane& own) const noexcept {
    // Where other hosts share the volume, reading the slot takes a message to the server.
    if (file_->method() != queue_file::append_method::atomic) return true;
    return own.scan.is_there(*file_, {.offset = own.place, .id = own.id, .was_exclusive = false});
}

// Does the same as memory_map, for the same reasons.
void atomic_append::stay_awake(lane& own, steady_time end) noexcept {
    // Where other hosts access the file through a server, each poll is a message.
    if (file_->method() != queue_file::append_method::atomic) return;
    if (own.neighbour and not std::exchange(own.has_yielded, true)) (void)yield_policy_.yield(clock(), end);
    if (own.neighbour and not own.scan.is_there(*file_, *own.neighbour)) own.neighbour.reset();
    if (own.neighbour or std::exchange(own.has_checked, true)) return;
    const bool is_cheap = own.scan.is_before_us(*own.contended);
    const int looks = is_cheap ? looks_ : looks_ / looks_per_long_look;
    for (int look = 0; look != looks and own.scan.is_there(*file_, *own.contended); ++look)
        cpu_relax(is_cheap ? 1 : relaxes_between_long_looks);
}

void atomic_append::wait(std::span<const entity>, ticket& mine, steady_time end) noexcept {
    lane& own = *static_cast<lane*>(mine.state);
    stay_awake(own, end);
    if (own.has_checked and not own.scan.is_there(*file_, *own.contended)) return;
    if (end != steady_time::max() or not file_->wakes_waiters())
        return backoff(mine.mark).sleep(clock(), random(), end);
    // A failure recurs, and is reported, when polling.
    const auto& before = own.neighbour ? *own.neighbour : *own.contended;
    const int code = kernel_lock::lock(own.descriptor, queue_bytes::of_request(before.id), kind::shared);
    if (code == 0) own.has_locks_of_others = true;
    if (before.offset == own.contended->offset) own.has_contended = code == 0;
    own.neighbour.reset();  // it is gone, or does not help
}

bool atomic_append::begin_wait(std::span<const entity>, ticket& mine,
                               const std::shared_ptr<wake_up>& waker) noexcept {
    if (not file_->ends_waits()) return false;
    lane& own = *static_cast<lane*>(mine.state);
    own.waiting =
        threads_.begin(own.descriptor, queue_bytes::of_request(own.contended->id), kind::shared, waker);
    return own.waiting != nullptr;
}

void atomic_append::end_wait(ticket& mine) noexcept {
    lane& own = *static_cast<lane*>(mine.state);
    const int code = threads_.end(std::exchange(own.waiting, nullptr));
    // A wait that was ended early may have got the lock in the last moment. Other failures recur,
    // and are reported, when polling.
    if (code == 0 or code == ECANCELED) own.has_locks_of_others = true;
    own.has_contended = code == 0;
}

void atomic_append::unlock_ids(lane& mine) noexcept {
    mine.ids_locked = 0;
    kernel_lock::unlock(mine.descriptor, queue_bytes::all_requests);
}

// The waiters for this request continue; the next one has an id that is locked already.
void atomic_append::unlock_id(lane& mine) noexcept {
    kernel_lock::unlock(mine.descriptor, queue_bytes::of_request(mine.id));
    ++mine.id;
    --mine.ids_locked;
}

// Erases the slots, and then unlocks the waiters. Returns false if the file was truncated.
//
// In a truncated file, another request's slots may be at our position, and the slots of our waiters
// may be gone. Checking our slot costs a page fault if we have not waited. So the last byte is not
// written if it is zero: then a truncated file ends before it.
bool atomic_append::erase(lane& own) noexcept {
    const std::uint64_t end = own.place + own.slots * slot_bytes;
    const bool shows_cuts = own.bytes[own.slots * slot_bytes - 1] == std::byte{};
    if ((own.has_waited or not shows_cuts) and not has_place(own)) {
        unlock_ids(own);
        return false;
    }
    file_->erase(own.place, own.slots * slot_bytes - (shows_cuts ? 1 : 0));
    if (own.has_locks_of_others) {
        unlock_ids(own);
        return true;
    }
    // Without a later request there is no waiter for our lock, and the next request of
    // this lane can use it.
    const auto seen = own.has_waited ? std::nullopt : file_->end_after_erasing(own.descriptor);
    if (seen != end) unlock_id(own);
    return not seen or * seen >= end;
}

void atomic_append::leave(ticket& mine) noexcept {
    lane& own = *static_cast<lane*>(mine.state);
    // The slots of the dead stay until the holder that got the report is done: if it also dies, the
    // next one finds them. Without a grant, the next one gets the report anyway.
    if (own.is_granted and own.dead != nullptr) own.repair(*file_);
    while (own.dead != nullptr)
        own.dead = std::move(own.dead->next);
    // First the slot, then the lock: a live process never has a slot with a free lock.
    const bool is_whole = erase(own);
    if (not is_whole and own.is_granted) mine.problem = EBADMSG;
    if (own.is_granted and is_whole) {
        const std::uint64_t seen = own.scan.dead_before();
        file_->record_dead_before(seen == own.place ? own.place + own.slots * slot_bytes : seen);
    }
    // The request with the first slot of a page tidies up; if its process died, the request with
    // the first slot of the next page does.
    const std::uint64_t page = own.place / page_bytes;
    const std::uint64_t within = own.place % page_bytes;
    if (within == 0 or within + own.slots * slot_bytes > page_bytes)
        file_->tidy(own.descriptor, page * page_bytes, page % 16 == 0);
    lanes_->release(own);
}

result<void> atomic_append::check(const ticket& mine) noexcept {
    if (has_place(*static_cast<const lane*>(mine.state))) return {};
    return failure({EBADMSG, "hold entities with a truncated mutex file", file_->descriptor()});
}

void atomic_append::drop_copy(ticket& mine) noexcept {
    const std::unique_ptr<lane> own(static_cast<lane*>(mine.state));
    ::close(own->descriptor);
}

int atomic_append::file_descriptor() const noexcept {
    return file_->descriptor();
}

result<std::vector<listed_request>> atomic_append::list() noexcept {
    if (not is_ours()) return refuse_after_fork();
    try {
        std::vector<listed_request> found;
        const auto live = file_->live_slots();
        if (not live) return failure(live.error());
        std::uint64_t last_id = 0;
        for (const slot& each : *live) {
            if (each.kind == slot_kind::head or found.empty() or each.id != last_id) {
                const auto is_alive = kernel_lock::is_locked(file_->descriptor(),
                                                             queue_bytes::of_request(each.id), kind::shared);
                if (not is_alive) return failure(is_alive.error());
                listed_request& fresh = found.emplace_back();
                fresh.what = *is_alive ? listed_request::state::holds : listed_request::state::died;
                fresh.process_id = each.process_id;
                fresh.host = each.host_name();
                fresh.since = clock_source::utc_time(std::chrono::seconds(file_->created_s()) +
                                                     std::chrono::microseconds(each.when_us));
                last_id = each.id;
            }
            auto& entities = found.back().entities;
            entities.insert(entities.end(), each.entities().begin(), each.entities().end());
        }
        // After a live process with an earlier conflicting request: it waits.
        for (auto one = found.begin(); one != found.end(); ++one)
            if (one->what == listed_request::state::holds and
                std::any_of(found.begin(), one, [&](const listed_request& earlier) {
                    return earlier.what != listed_request::state::died and
                           conflict(earlier.entities, one->entities);
                }))
                one->what = listed_request::state::waits;
        return found;
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "list the holders"});
    }
}

}  // namespace sluice::fsmutex
