#include "sluice/fsmutex/memory_map.hpp"

#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "sluice/fsmutex/cpu_relax.hpp"
#include "sluice/fsmutex/queue/mapped_file.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

// A woken CPU takes tens of microseconds to respond, and one that still polls takes a tenth of one.
// About 20 µs: the cost of sleeping and being woken.
constexpr int spins_with_other_processors = 1000;
// How long a death may go unnoticed.
constexpr std::chrono::nanoseconds deaths_after = 40ms;

// For listings only, so the time of the kernel's last tick is enough.
std::uint64_t coarse_date_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t this_processor() noexcept {
    return static_cast<std::uint32_t>(std::max(::sched_getcpu(), 0)) % mapped::processors;
}

// From here on the granting process must wake it, unless it is granted already. Returns the new
// state.
std::uint32_t falls_asleep(std::atomic<std::uint32_t>& state) noexcept {
    std::uint32_t seen = state.load(std::memory_order_relaxed);
    // Also if it becomes the next in the meantime, because it has already stayed awake for a
    // moment.
    while (seen == mapped::waiting or seen == mapped::next_up)
        if (state.compare_exchange_weak(seen, mapped::asleep, std::memory_order_relaxed))
            seen = mapped::asleep;
    return seen;
}

listed_request::state listed_state_of(std::uint32_t state) noexcept {
    if (state == mapped::abandoned) return listed_request::state::died;
    return state == mapped::granted ? listed_request::state::holds : listed_request::state::waits;
}

// In a ticket, `place` is the number of the request. `mark` is twice its arrival, and one more once
// its owner knows that it was granted.

mapped_queue::request_key key_of(const ticket& mine) noexcept {
    return {.number = static_cast<std::uint32_t>(mine.place), .arrival = mine.mark / 2};
}
bool knows_grant(const ticket& mine) noexcept {
    return mine.mark % 2 != 0;
}

}  // namespace

memory_map::memory_map(std::unique_ptr<mapped_file> file, const dependencies& from, fork_mark mark) noexcept
    : shared_fs_mutex(from, std::move(mark)),
      file_(std::move(file)),
      spins_(::get_nprocs() > 1 ? spins_with_other_processors : 0) {}
memory_map::~memory_map() {
    if (not is_ours()) file_->leave_to_parent();
}

result<std::unique_ptr<shared_fs_mutex>> memory_map::open_with_access(const io::path_handle& base,
                                                                      io::path_view path,
                                                                      const dependencies& from,
                                                                      const file_access& access) noexcept {
    auto mark = fork_mark::of_this_process();
    if (not mark) return failure(mark.error());
    auto file = mapped_file::open(base, path, from, access);
    if (not file) return failure(file.error());
    std::unique_ptr<shared_fs_mutex> made(new (std::nothrow)
                                              memory_map(std::move(*file), from, *std::move(mark)));
    if (made == nullptr) return failure({ENOMEM, "open a mutex"});
    return made;
}

// Does the same as atomic_append, for the same reasons: with two requests of one CPU in the queue,
// each turn is a switch between processes, permanently. So a thread that was queued after another
// one of its CPU lets that one run before its next request, and as long as one of them is in the
// queue.
void memory_map::yield_to_neighbours(wait_policy how) noexcept {
    if (how != wait_policy::endless or not met_neighbour_.load(std::memory_order_relaxed)) return;
    met_neighbour_.store(false, std::memory_order_relaxed);
    yield_policy_.yield_to_requesters(
        clock(), [&] { return file_->queue().has_waiter_on_processor(this_processor()); });
}

result<bool> memory_map::enter(std::span<const entity> wanted, ticket& mine, wait_policy how) noexcept {
    yield_to_neighbours(how);
    const mapped_queue::origin from{
        .instance = file_->instance(), .processor = this_processor(), .since_ns = coarse_date_ns()};
    for (bool may_check_for_deaths = true;;) {
        mapped_queue queue = file_->queue();
        if (const auto locked = file_->lock(); not locked) return failure(locked.error());
        const bool is_refused = how == wait_policy::none and queue.is_contended(wanted);
        const auto entered = is_refused ? std::nullopt : queue.enter(from, wanted);
        if (const auto unlocked = file_->unlock(queue); not unlocked) return failure(unlocked.error());
        if (entered) {
            mine.place = entered->number;
            mine.mark = entered->arrival * 2;
            return poll(wanted, mine);
        }
        // The conflicting requests, or those that fill the queue, may belong to dead processes.
        if (not std::exchange(may_check_for_deaths, false) or file_->reap_dead_instances() == 0)
            return failure({is_refused ? ETIMEDOUT : ENOLCK, "lock entities"});
    }
}

result<bool> memory_map::poll(std::span<const entity>, ticket& mine) noexcept {
    const mapped::request& own = file_->queue().request_at(static_cast<std::uint32_t>(mine.place));
    // acquire: pairs with the release of the granting process.
    const std::uint32_t state = own.state.load(std::memory_order_acquire);
    if (state == mapped::granted) {
        mine.owner_died = own.owner_died != 0;
        mine.mark |= 1;
        return true;
    }
    if (file_->is_damaged() or not mapped::is_waiting(state)) return file_->report_damage();
    return false;
}

// Returns whether the request was granted before it was time to sleep.
bool memory_map::stays_awake(std::uint32_t number, steady_time end) noexcept {
    const auto& state = file_->queue().request_at(number).state;
    if (file_->queue().has_neighbour(number)) {
        met_neighbour_.store(true, std::memory_order_relaxed);
        if (yield_policy_.yield(clock(), end) and state.load(std::memory_order_relaxed) == mapped::granted)
            return true;
    }
    // If the other request is still queued, the scheduler runs us in another order than that of the
    // queue. Sleeping until that request wakes us restores the order.
    if (file_->queue().has_neighbour(number)) return false;
    for (int spin = 0; spin != spins_; ++spin) {
        const std::uint32_t seen = state.load(std::memory_order_relaxed);
        if (seen != mapped::waiting and seen != mapped::next_up) return seen == mapped::granted;
        cpu_relax();
    }
    return false;
}

memory_map::wake_word memory_map::prepare_wake(ticket& mine) noexcept {
    auto& state = file_->queue().request_at(static_cast<std::uint32_t>(mine.place)).state;
    (void)falls_asleep(state);
    return {.word = &state, .expected = mapped::asleep, .deaths_after = deaths_after};
}

void memory_map::check_for_deaths(ticket& mine) noexcept {
    // Also where it does not access the missing pages.
    if (file_->is_cut()) (void)file_->report_damage();
    (void)file_->reap_dead_instances();
    mapped_queue queue = file_->queue();
    if (not file_->lock()) return;  // polling reports the error
    queue.check_waiter(key_of(mine));
    (void)file_->unlock(queue);
}

void memory_map::wait(std::span<const entity>, ticket& mine, steady_time end) noexcept {
    const auto number = static_cast<std::uint32_t>(mine.place);
    if (stays_awake(number, end)) return;
    auto& state = file_->queue().request_at(number).state;
    if (falls_asleep(state) == mapped::granted) return;
    std::chrono::nanoseconds longest = deaths_after;
    if (end != steady_time::max())
        longest = std::clamp<std::chrono::nanoseconds>(end - clock().steady_now(), 0ns, longest);
    if (mapped_file::sleep(state, mapped::asleep, longest)) return;
    if (longest == deaths_after) check_for_deaths(mine);
}

void memory_map::leave(ticket& mine) noexcept {
    mapped_queue::wake_list list;
    mapped_queue queue = file_->queue();
    if (const auto locked = file_->lock(); not locked) [[unlikely]] {
        mine.problem = locked.error().code();
        file_->record_orphan();
        return;
    }
    queue.leave(key_of(mine), knows_grant(mine), list);
    if (const auto unlocked = file_->unlock(queue); not unlocked) [[unlikely]]
        mine.problem = unlocked.error().code();
    file_->wake(list);
}

result<void> memory_map::check(const ticket& mine) noexcept {
    // A truncated file is damaged at the next access.
    if (not file_->is_cut() and not file_->is_damaged() and
        file_->queue().has(key_of(mine), knows_grant(mine)))
        return {};
    return file_->report_damage();
}

int memory_map::file_descriptor() const noexcept {
    return file_->descriptor();
}

result<std::vector<listed_request>> memory_map::list() noexcept {
    if (not is_ours()) return refuse_after_fork();
    (void)file_->reap_dead_instances();
    try {
        const auto self = process_identity::of_this_process();
        std::vector<std::pair<std::uint64_t, listed_request>> found;
        found.reserve(mapped::requests_max);  // nothing may fail while the latch is held
        std::vector<entity> entities;
        entities.reserve(mapped::requests_max * mapped::links_per_request);
        std::vector<std::size_t> counts;
        counts.reserve(mapped::requests_max);
        mapped_queue queue = file_->queue();
        if (const auto locked = file_->lock(); not locked) return failure(locked.error());
        queue.for_each([&](std::uint32_t number) {
            const mapped::request& one = queue.request_at(number);
            listed_request seen;
            seen.what = listed_state_of(one.state.load(std::memory_order_relaxed));
            seen.process_id = file_->process_of(mapped::read_once(one.instance));
            seen.since = clock_source::utc_time(std::chrono::nanoseconds(one.since_ns));
            found.emplace_back(one.arrival.load(std::memory_order_relaxed), std::move(seen));
            counts.push_back(queue.copy_entities(number, entities));
        });
        if (const auto unlocked = file_->unlock(queue); not unlocked) return failure(unlocked.error());
        auto next = entities.begin();
        for (std::size_t i = 0; i != found.size(); ++i) {
            const auto end = next + static_cast<std::ptrdiff_t>(counts[i]);
            found[i].second.entities.assign(std::exchange(next, end), end);
            if (self) found[i].second.host = self->host_name();
        }
        std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<listed_request> sorted;
        for (auto& each : found)
            sorted.push_back(std::move(each.second));
        return sorted;
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "list the holders"});
    }
}

}  // namespace sluice::fsmutex
