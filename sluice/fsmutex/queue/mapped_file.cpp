#include "sluice/fsmutex/queue/mapped_file.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <span>

#include "sluice/fsmutex/cpu_relax.hpp"
#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::fsmutex {
namespace {

using kernel_lock::kind;
using namespace std::chrono_literals;

// Bytes that are locked, after the memory.
constexpr std::uint64_t first_byte = std::uint64_t{1} << 61;
constexpr kernel_lock::range in_use_byte{.first = first_byte, .length = 1};
constexpr kernel_lock::range opening_byte{.first = first_byte + 1, .length = 1};
constexpr kernel_lock::range everything{.first = 0, .length = 0};
constexpr kernel_lock::range byte_of_instance(std::uint32_t index) noexcept {
    return {.first = (std::uint64_t{1} << 62) + index, .length = 1};
}

constexpr std::uint32_t latch_sleepers = std::uint32_t{1} << 31;
constexpr std::uint32_t place_bits = 11;
constexpr std::uint32_t generations = std::uint32_t{1} << (31 - place_bits);
static_assert(mapped::instances_max < 1U << place_bits);
constexpr unsigned damaged_opens_max = 3;
constexpr int latch_spins = 200;
// The pause before a check of the latch's holder, which holds it for less than a microsecond if it
// runs.
constexpr std::chrono::milliseconds latch_check_delay = 10ms;

// The time that a process has waited, without the time for which it was itself stopped.
class running_time {
public:
    [[nodiscard]] std::chrono::nanoseconds until_now(const clock_source& clock) noexcept {
        const auto now = clock.steady_now();
        if (last_ != clock_source::steady_time()) sum_ += std::min<std::chrono::nanoseconds>(now - last_, 1s);
        last_ = now;
        return sum_;
    }

private:
    clock_source::steady_time last_;
    std::chrono::nanoseconds sum_{};
};

// Returns whether content without our version may be truncated: no content, or the zeros of a mutex
// whose creator died before it wrote the version. Any other content, such as a disk image, belongs
// to another program.
result<bool> is_nothing_but_zeros(int descriptor) noexcept {
    std::array<char, 4096> page{};
    for (off_t offset = 0;;) {
        const ssize_t got =
            io::checked_byte_count(::pread(descriptor, page.data(), page.size(), offset), page.size());
        if (got < 0 and errno == EINTR) continue;
        if (got < 0) return failure(error::last("read a mutex file", descriptor));
        if (got == 0) return true;
        const std::span<const char> seen(page.data(), static_cast<std::size_t>(got));
        if (std::ranges::any_of(seen, [](char each) { return each != 0; })) return false;
        offset += got;
    }
}

result<void> check_that_it_may_be_cut(int descriptor, std::uint64_t version) noexcept {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0)
        return failure(error::last("get the status of a mutex file", descriptor));
    if (status.st_size == 0) return {};
    const error foreign{EBADMSG, "open a file that is not a mapped mutex of this version", descriptor};
    // A truncated or damaged mutex. Its content is useless.
    if (version == mapped::version_1 and status.st_size <= static_cast<off_t>(sizeof(mapped::memory)))
        return {};
    if (status.st_size != static_cast<off_t>(sizeof(mapped::memory))) return failure(foreign);
    const auto is_ours = is_nothing_but_zeros(descriptor);
    if (not is_ours) return failure(is_ours.error());
    if (not*is_ours) return failure(foreign);
    return {};
}

}  // namespace

mapped_file::mapped_file(io::file_handle opened, const dependencies& from) noexcept
    : file_(std::move(opened)), dependencies_(from) {}

result<std::unique_ptr<mapped_file>> mapped_file::open(const io::path_handle& base, io::path_view path,
                                                       const dependencies& from,
                                                       const file_access& access) noexcept {
    const auto self = process_identity::of_this_process();
    if (not self) return failure(self.error());
    unsigned damaged = 0;
    for (unsigned attempts = 1;; ++attempts) {
        auto file = open_lock_file(base, path, from, access);
        if (not file) return failure(file.error());
        const int descriptor = file->descriptor();
        if (auto locked = kernel_lock::lock_for_opening(descriptor, opening_byte, *from.clock, *from.random);
            not locked)
            return failure(locked.error());
        struct stat status{};
        if (::fstat(descriptor, &status) != 0)
            return failure(error::last("get the status of a mutex file", descriptor));
        if (status.st_nlink == 0) {  // its last user removed it in between
            if (attempts == limits::vanished_mutex_attempts_max)
                return failure({ESTALE, "open a mutex file"});
            continue;
        }
        std::unique_ptr<mapped_file> made(new (std::nothrow) mapped_file(std::move(*file), from));
        if (made == nullptr) return failure({ENOMEM, "open a mutex"});
        if (auto entered = made->enter_file(*self); not entered) {
            // Without other users, it has removed the file. With other users, the next attempt
            // fails.
            const bool found_damage = made->instance_ != mapped::instances_max and made->is_damaged();
            if (found_damage and ++damaged != damaged_opens_max) continue;
            return failure(entered.error());
        }
        kernel_lock::unlock(descriptor, opening_byte);
        return made;
    }
}

// Called while the byte for opening is locked.
result<void> mapped_file::enter_file(const process_identity& self) noexcept {
    const auto volume = io::volume_of(file_);
    if (not volume) return failure(volume.error());
    if (volume->reach != io::volume_reach::this_host)
        return failure({EOPNOTSUPP, "map a mutex that other hosts can open", file_.descriptor()});
    if (auto ready = prepare(self); not ready) return ready;
    if (const int code = kernel_lock::try_lock(file_.descriptor(), in_use_byte, kind::shared); code != 0)
        return failure({code, "lock a mutex file", file_.descriptor()});
    if (auto mapped = map(); not mapped) return mapped;
    return claim_instance(self);
}

// Writes the first page, which is zero except for the identity of the mutex, if the file is empty
// or of an earlier boot.
result<void> mapped_file::prepare(const process_identity& self) noexcept {
    const int descriptor = file_.descriptor();
    struct {
        std::uint64_t version;
        std::array<char, 40> boot_id;
        std::array<char, 96> between;
        std::uint32_t is_damaged;
    } first{};
    static_assert(offsetof(mapped::memory, boot_id) == 8 and
                  offsetof(mapped::memory, is_damaged) == offsetof(decltype(first), is_damaged));
    constexpr ssize_t identity_bytes = 48;
    const ssize_t got = ::pread(descriptor, &first, sizeof first, 0);
    struct stat status{};
    if (got < 0 or ::fstat(descriptor, &status) != 0)
        return failure(error::last("read a mutex file", descriptor));
    if (got != 0 and (got < identity_bytes or (first.version != mapped::version_1 and first.version != 0)))
        return failure({EBADMSG, "open a file that is not a mapped mutex of this version", descriptor});
    const std::string_view boot(first.boot_id.data(), self.boot().size());
    const bool is_intact =
        first.is_damaged == 0 and status.st_size >= static_cast<off_t>(sizeof(mapped::memory));
    if (first.version == mapped::version_1 and boot == self.boot() and is_intact) return {};

    // A file of an earlier boot has no users. The users of a damaged one must close it first.
    const int code = kernel_lock::try_lock(descriptor, in_use_byte, kind::exclusive);
    if (code == EAGAIN) return failure({EBADMSG, "open a damaged mutex file that is in use", descriptor});
    if (code != 0) return failure({code, "recreate a mapped mutex", descriptor});
    if (auto may_be_cut = check_that_it_may_be_cut(descriptor, first.version); not may_be_cut)
        return may_be_cut;
    constexpr off_t size = sizeof(mapped::memory);
    // Allocates all blocks now: a hole without a free block would later raise SIGBUS.
    if (::ftruncate(descriptor, 0) != 0 or ::fallocate(descriptor, 0, 0, size) != 0) {
        const error why = error::last("allocate a mapped mutex", descriptor);
        (void)!::ftruncate(descriptor, 0);
        return failure(why);
    }
    first = {};
    first.version = mapped::version_1;
    self.boot().copy(first.boot_id.data(), first.boot_id.size());
    if (::pwrite(descriptor, &first, sizeof first, 0) != sizeof first)
        return failure(error::last("write a mutex file", descriptor));
    return {};
}

result<void> mapped_file::map() noexcept {
    const int descriptor = file_.descriptor();
    struct stat status{};
    if (::fstat(descriptor, &status) != 0)
        return failure(error::last("get the status of a mutex file", descriptor));
    if (status.st_size < static_cast<off_t>(sizeof(mapped::memory)))
        return failure({EBADMSG, "open a file that is not a mapped mutex of this version", descriptor});
    void* const memory =
        ::mmap(nullptr, sizeof(mapped::memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return failure(error::last("map a mutex file", descriptor));
    memory_ = static_cast<mapped::memory*>(memory);
    auto guard = fault_guard::over(std::span(static_cast<std::byte*>(memory), sizeof(mapped::memory)),
                                   memory_->is_damaged);
    if (not guard) return failure(guard.error());
    guard_ = *std::move(guard);
    return {};
}

result<void> mapped_file::claim_instance(const process_identity& self) noexcept {
    namespaces_ = self.namespaces;
    for (std::uint32_t index = 0; index != mapped::instances_max; ++index) {
        const int code = kernel_lock::try_lock(file_.descriptor(), byte_of_instance(index), kind::exclusive);
        if (code == EAGAIN) continue;
        if (code != 0) return failure({code, "lock a mutex file", file_.descriptor()});
        instance_ = index;
        mapped::instance& place = memory_->instances[index];
        // Before the latch: the previous user of this instance may have died with it.
        const std::uint32_t generation = (place.generation.load(std::memory_order_relaxed) + 1) % generations;
        place.generation.store(generation, std::memory_order_relaxed);
        latch_word_ = generation << place_bits | (index + 1);
        if (auto locked = lock(); not locked) return locked;
        mapped_queue::wake_list list;
        mapped_queue entered = queue();
        entered.reap_instance(index, list);
        place.process_id = self.id;
        place.start_time = self.start_time;
        place.namespaces = self.namespaces;
        place.is_used = 1;
        const auto unlocked = unlock(entered);
        wake(list);
        return unlocked;
    }
    return failure({EBUSY, "open a mutex with too many users", file_.descriptor()});
}

void mapped_file::release_instance() noexcept {
    if (not lock()) return;  // others will treat it as dead
    mapped_queue::wake_list list;
    mapped_queue left = queue();
    if (has_orphans_.load(std::memory_order_relaxed)) left.reap_instance(instance_, list);
    memory_->instances[instance_].is_used = 0;
    (void)unlock(left);
    wake(list);
}

mapped_file::~mapped_file() {
    if (instance_ != mapped::instances_max) {
        release_instance();
        remove_if_unused();
        // A forked child may also have the descriptor: closing it would not unlock.
        kernel_lock::unlock(file_.descriptor(), everything);
    }
    guard_ = fault_guard();
    if (memory_ != nullptr) ::munmap(memory_, sizeof(mapped::memory));
}

void mapped_file::remove_if_unused() noexcept {
    if (not kernel_lock::lock_for_opening(file_.descriptor(), opening_byte, *dependencies_.clock,
                                          *dependencies_.random) or
        kernel_lock::try_lock(file_.descriptor(), in_use_byte, kind::exclusive) != 0)
        return;
    (void)reap_dead_instances();
    mapped_queue seen = queue();
    const auto locked = lock();
    const bool is_empty = locked and seen.is_empty();
    if (locked) (void)unlock(seen);
    if (is_empty or is_damaged()) (void)io::unlink(file_);
}

std::unexpected<error> mapped_file::report_damage() noexcept {
    constexpr std::uint32_t yes = 1;
    memory_->is_damaged = yes;
    // If a fault has replaced our memory, the file is not damaged.
    if (not is_cut()) {
        constexpr off_t offset = offsetof(mapped::memory, is_damaged);
        (void)!::pwrite(file_.descriptor(), &yes, sizeof yes, offset);
    }
    return failure({EBADMSG, "use a damaged mutex file", file_.descriptor()});
}

bool mapped_file::is_cut() const noexcept {
    struct stat status{};
    return ::fstat(file_.descriptor(), &status) == 0 and
           status.st_size < static_cast<off_t>(sizeof(mapped::memory));
}

// --- the latch

bool mapped_file::is_latch_word(std::uint32_t word) noexcept {
    const std::uint32_t place = word % (1U << place_bits);
    return word < latch_sleepers and place != 0 and place <= mapped::instances_max;
}

result<void> mapped_file::unlock_slow_path(bool is_intact) noexcept {
    std::uint32_t seen = memory_->latch.load(std::memory_order_relaxed);
    while ((seen & ~latch_sleepers) == latch_word_) {
        // release: pairs with the acquire of the next lock().
        if (not memory_->latch.compare_exchange_weak(seen, 0, std::memory_order_release,
                                                     std::memory_order_relaxed))
            continue;
        if ((seen & latch_sleepers) != 0)
            (void)::syscall(SYS_futex, &memory_->latch, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        if (is_intact) return {};
        break;
    }
    // Also if another process has acquired the latch that this one holds.
    return report_damage();
}

result<void> mapped_file::lock_slow_path() noexcept {
    auto& latch = memory_->latch;
    std::uint32_t mine = latch_word_;
    running_time waited;
    for (int spin = 0;;) {
        std::uint32_t seen = latch.load(std::memory_order_relaxed);
        // acquire, here and below: pairs with the release of unlock().
        if (seen == 0 and
            latch.compare_exchange_weak(seen, mine, std::memory_order_acquire, std::memory_order_relaxed))
            return {};
        if (seen == 0) continue;
        if (++spin < latch_spins) {
            cpu_relax();
            continue;
        }
        if (is_damaged()) return report_damage();
        if (waited.until_now(*dependencies_.clock) >= limits::latch_wait_max)
            return failure({EBUSY, "use a mutex file latched by a stopped process", file_.descriptor()});
        // From here on the holder must wake us, and any other sleeper.
        mine = latch_word_ | latch_sleepers;
        if ((seen & latch_sleepers) == 0 and
            not latch.compare_exchange_weak(seen, seen | latch_sleepers, std::memory_order_relaxed))
            continue;
        const std::uint32_t holder = seen | latch_sleepers;
        if (sleep(latch, holder, latch_check_delay)) continue;
        if (not is_latch_word(holder & ~latch_sleepers)) return report_damage();
        if (not has_holder_died(holder & ~latch_sleepers)) continue;
        // It died while it held the latch. One of the waiters that detect this takes it over.
        seen = holder;
        if (latch.compare_exchange_strong(seen, mine, std::memory_order_acquire, std::memory_order_relaxed))
            return take_over_latch();
    }
}

// Rebuilds the queue, because its holder died during an operation.
result<void> mapped_file::take_over_latch() noexcept {
    mapped_queue::wake_list list;
    mapped_queue left = queue();
    left.rebuild(list);
    wake(list);
    if (not left.is_damaged()) return {};
    return unlock(left);
}

bool mapped_file::sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds at_most) noexcept {
    const timespec within{.tv_sec = at_most.count() / 1'000'000'000,
                          .tv_nsec = at_most.count() % 1'000'000'000};
    // Not private: the word is in memory that processes share.
    return ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &within, nullptr, 0) == 0 or errno != ETIMEDOUT;
}

void mapped_file::wake(const mapped_queue::wake_list& list) noexcept {
    const auto wake_one = [&](std::uint32_t number) {
        (void)::syscall(SYS_futex, &memory_->requests[number].state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    };
    for (const std::uint32_t number : list.all())
        wake_one(number);
    for (std::uint32_t number = 0; list.has_more() and number != mapped::requests_max; ++number) {
        const std::uint32_t state = memory_->requests[number].state.load(std::memory_order_relaxed);
        if (state == mapped::granted or state == mapped::next_up) wake_one(number);
    }
}

// --- the dead

bool mapped_file::is_dead(std::uint32_t other) const noexcept {
    // The kernel releases the lock when its last descriptor is closed, whatever the reason.
    const auto is_alive =
        kernel_lock::is_locked(file_.descriptor(), byte_of_instance(other), kind::exclusive);
    if (not is_alive) return false;
    if (not*is_alive) return true;
    // A child that it forked may keep the descriptor.
    const mapped::instance& who = memory_->instances[other];
    return who.namespaces == namespaces_ and who.is_used != 0 and
           is_surely_dead(who.process_id, who.start_time);
}

bool mapped_file::has_holder_died(std::uint32_t latch_word) const noexcept {
    const std::uint32_t index = latch_word % (1U << place_bits) - 1;
    // Another thread of ours.
    if (latch_word == latch_word_ or index >= mapped::instances_max) return false;
    const std::uint32_t now = memory_->instances[index].generation.load(std::memory_order_relaxed);
    return now != latch_word >> place_bits or is_dead(index);
}

unsigned mapped_file::reap_dead_instances() noexcept {
    unsigned count = 0;
    for (std::uint32_t index = 0; index != mapped::instances_max; ++index) {
        if (index == instance_ or memory_->instances[index].is_used == 0 or not is_dead(index)) continue;
        mapped_queue::wake_list list;
        mapped_queue left = queue();
        if (not lock()) return count;
        // Another process may have been faster, and the instance may now have a new user.
        if (memory_->instances[index].is_used != 0 and is_dead(index)) {
            left.reap_instance(index, list);
            memory_->instances[index].is_used = 0;
            ++count;
        }
        const auto unlocked = unlock(left);
        wake(list);
        if (not unlocked) return count;
    }
    return count;
}

}  // namespace sluice::fsmutex
