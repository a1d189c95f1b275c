#include "sluice/fsmutex/mapped_file.hpp"

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

#include "sluice/fsmutex/kernel_lock.hpp"
#include "sluice/fsmutex/relax.hpp"
#include "sluice/io/fs_location.hpp"
#include "sluice/io/volume_status.hpp"

namespace sluice::fsmutex {
namespace {

using kernel_lock::kind;
using namespace std::chrono_literals;

// Bytes that are locked, behind the memory.
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
constexpr int latch_spins = 200;
// Until the latch's holder is looked after: it holds it for less than a microsecond, if it runs.
constexpr std::chrono::milliseconds latch_patience = 10ms;

// Whether what a file has without our version may be cut: nothing, or the zeros of a mutex whose creator died
// before it wrote the version. Anything else, such as the image of a disk, is another program's.
result<bool> is_nothing_but_zeros(int descriptor) noexcept {
    std::array<char, 4096> page{};
    for (off_t offset = 0;;) {
        const ssize_t got = ::pread(descriptor, page.data(), page.size(), offset);
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
    if (::fstat(descriptor, &status) != 0) return failure(error::last("look at a mutex file", descriptor));
    if (status.st_size == 0) return {};
    const error foreign{EBADMSG, "no mapped mutex of this version", descriptor};
    if (status.st_size != static_cast<off_t>(sizeof(mapped::memory))) return failure(foreign);
    if (version == mapped::version_1) return {};
    const auto is_ours = is_nothing_but_zeros(descriptor);
    if (not is_ours) return failure(is_ours.error());
    if (not*is_ours) return failure(foreign);
    return {};
}

}  // namespace

mapped_file::mapped_file(io::file_handle opened, const seams& from) noexcept
    : file_(std::move(opened)), seams_(from) {}

result<std::unique_ptr<mapped_file>> mapped_file::open(const io::path_handle& base, io::path_view path,
                                                       const seams& from,
                                                       const file_access& access) noexcept {
    const auto self = process_identity::of_this_process();
    if (not self) return failure(self.error());
    for (unsigned attempts = 1;; ++attempts) {
        auto file = open_lock_file(base, path, from, access);
        if (not file) return failure(file.error());
        const int descriptor = file->descriptor();
        if (auto locked = kernel_lock::lock_for_opening(descriptor, opening_byte, *from.clock, *from.random);
            not locked)
            return failure(locked.error());
        struct stat status{};
        if (::fstat(descriptor, &status) != 0)
            return failure(error::last("look at a mutex file", descriptor));
        if (status.st_nlink == 0) {  // its last user removed it between our two steps
            if (attempts == limits::vanished_mutex_attempts_max)
                return failure({ESTALE, "open a mutex file"});
            continue;
        }
        std::unique_ptr<mapped_file> made(new (std::nothrow) mapped_file(std::move(*file), from));
        if (made == nullptr) return failure({ENOMEM, "open a mutex"});
        if (auto entered = made->enter_file(*self); not entered) return failure(entered.error());
        kernel_lock::unlock(descriptor, opening_byte);
        return made;
    }
}

// While the byte for opening is locked.
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

// Writes the first page, of zeros but for what tells whose it is, if the file is empty or of an earlier boot.
result<void> mapped_file::prepare(const process_identity& self) noexcept {
    const int descriptor = file_.descriptor();
    struct {
        std::uint64_t version;
        std::array<char, 40> boot_id;
    } first{};
    static_assert(offsetof(mapped::memory, boot_id) == 8 and sizeof first == 48);
    const ssize_t got = ::pread(descriptor, &first, sizeof first, 0);
    if (got < 0) return failure(error::last("read a mutex file", descriptor));
    if (got != 0 and (got != sizeof first or (first.version != mapped::version_1 and first.version != 0)))
        return failure({EBADMSG, "no mapped mutex of this version", descriptor});
    const std::string_view boot(first.boot_id.data(), self.boot().size());
    if (first.version == mapped::version_1 and boot == self.boot()) return {};

    // Nobody who has it open can be of another boot.
    const int code = kernel_lock::try_lock(descriptor, in_use_byte, kind::exclusive);
    if (code != 0) return failure({code == EAGAIN ? EBADMSG : code, "begin a mapped mutex anew", descriptor});
    if (auto may_be_cut = check_that_it_may_be_cut(descriptor, first.version); not may_be_cut)
        return may_be_cut;
    constexpr off_t size = sizeof(mapped::memory);
    // All its blocks now: a hole that cannot be filled later would be a SIGBUS.
    if (::ftruncate(descriptor, 0) != 0 or ::fallocate(descriptor, 0, 0, size) != 0) {
        const error why = error::last("make room for a mapped mutex", descriptor);
        (void)!::ftruncate(descriptor, 0);
        return failure(why);
    }
    first = {.version = mapped::version_1, .boot_id = {}};
    self.boot().copy(first.boot_id.data(), first.boot_id.size());
    if (::pwrite(descriptor, &first, sizeof first, 0) != sizeof first)
        return failure(error::last("write a mutex file", descriptor));
    return {};
}

result<void> mapped_file::map() noexcept {
    const int descriptor = file_.descriptor();
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) return failure(error::last("look at a mutex file", descriptor));
    if (status.st_size != static_cast<off_t>(sizeof(mapped::memory)))
        return failure({EBADMSG, "no mapped mutex of this version", descriptor});
    void* const memory =
        ::mmap(nullptr, sizeof(mapped::memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return failure(error::last("map a mutex file", descriptor));
    memory_ = static_cast<mapped::memory*>(memory);
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
        // Before the latch: he who had the place before may have died with it.
        const std::uint32_t generation = (place.generation.load(std::memory_order_relaxed) + 1) % generations;
        place.generation.store(generation, std::memory_order_relaxed);
        latch_word_ = generation << place_bits | (index + 1);
        lock();
        mapped_queue::wake_list list;
        queue().bury(index, list);
        place.process_id = self.id;
        place.start_time = self.start_time;
        place.namespaces = self.namespaces;
        place.is_used = 1;
        unlock();
        wake(list);
        return {};
    }
    return failure({EBUSY, "open a mutex that too many have open", file_.descriptor()});
}

void mapped_file::release_instance() noexcept {
    lock();
    memory_->instances[instance_].is_used = 0;
    unlock();
}

mapped_file::~mapped_file() {
    if (instance_ != mapped::instances_max) {
        release_instance();
        if (kernel_lock::lock_for_opening(file_.descriptor(), opening_byte, *seams_.clock, *seams_.random) and
            kernel_lock::try_lock(file_.descriptor(), in_use_byte, kind::exclusive) == 0) {
            (void)bury_the_dead();
            lock();
            const bool is_empty = queue().is_empty();
            unlock();
            if (is_empty) (void)io::unlink(file_);
        }
        // A forked child may have the descriptor, too: closing it would not unlock.
        kernel_lock::unlock(file_.descriptor(), everything);
    }
    if (memory_ != nullptr) ::munmap(memory_, sizeof(mapped::memory));
}

// --- the latch

void mapped_file::lock() noexcept {
    std::uint32_t expected = 0;
    // acquire: pairs with the release of unlock().
    if (not memory_->latch.compare_exchange_strong(expected, latch_word_, std::memory_order_acquire,
                                                   std::memory_order_relaxed))
        lock_slowly();
}

void mapped_file::unlock() noexcept {
    // release: pairs with the acquire of whoever locks next.
    const std::uint32_t before = memory_->latch.exchange(0, std::memory_order_release);
    if ((before & latch_sleepers) != 0)
        (void)::syscall(SYS_futex, &memory_->latch, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void mapped_file::lock_slowly() noexcept {
    auto& latch = memory_->latch;
    std::uint32_t mine = latch_word_;
    for (int spin = 0;;) {
        std::uint32_t seen = latch.load(std::memory_order_relaxed);
        // acquire, here and below: pairs with the release of unlock().
        if (seen == 0 and
            latch.compare_exchange_weak(seen, mine, std::memory_order_acquire, std::memory_order_relaxed))
            return;
        if (seen == 0) continue;
        if (++spin < latch_spins) {
            relax();
            continue;
        }
        // From here on somebody has to wake us, and whoever else may sleep.
        mine = latch_word_ | latch_sleepers;
        if ((seen & latch_sleepers) == 0 and
            not latch.compare_exchange_weak(seen, seen | latch_sleepers, std::memory_order_relaxed))
            continue;
        const std::uint32_t holder = seen | latch_sleepers;
        if (sleep(latch, holder, latch_patience)) continue;
        if (not has_holder_died(holder & ~latch_sleepers)) continue;
        // It died with the latch. Of all who see that, one takes it.
        seen = holder;
        if (latch.compare_exchange_strong(seen, mine, std::memory_order_acquire, std::memory_order_relaxed)) {
            mapped_queue::wake_list list;
            queue().rebuild(list);
            wake(list);
            return;
        }
    }
}

bool mapped_file::sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds at_most) noexcept {
    const timespec within{.tv_sec = at_most.count() / 1'000'000'000,
                          .tv_nsec = at_most.count() % 1'000'000'000};
    // Not private: the word is in memory that processes share.
    return ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &within, nullptr, 0) == 0 or errno != ETIMEDOUT;
}

void mapped_file::wake(const mapped_queue::wake_list& list) noexcept {
    for (const std::uint32_t number : list.all())
        (void)::syscall(SYS_futex, &memory_->requests[number].state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// --- the dead

bool mapped_file::is_dead(std::uint32_t other) const noexcept {
    // The kernel gives the lock back when its last descriptor is closed, whatever the reason.
    const auto is_alive =
        kernel_lock::is_locked(file_.descriptor(), byte_of_instance(other), kind::exclusive);
    if (not is_alive) return false;
    if (not*is_alive) return true;
    // A child it forked may keep the descriptor.
    const mapped::instance& who = memory_->instances[other];
    return who.namespaces == namespaces_ and who.is_used != 0 and
           is_surely_dead(who.process_id, who.start_time);
}

bool mapped_file::has_holder_died(std::uint32_t latch_word) const noexcept {
    const std::uint32_t index = latch_word % (1U << place_bits) - 1;
    if (latch_word == latch_word_ or index >= mapped::instances_max) return false;  // another thread of ours
    const std::uint32_t now = memory_->instances[index].generation.load(std::memory_order_relaxed);
    return now != latch_word >> place_bits or is_dead(index);
}

unsigned mapped_file::bury_the_dead() noexcept {
    unsigned count = 0;
    for (std::uint32_t index = 0; index != mapped::instances_max; ++index) {
        if (index == instance_ or memory_->instances[index].is_used == 0 or not is_dead(index)) continue;
        mapped_queue::wake_list list;
        lock();
        // Somebody else may have been faster, and the place another's by now.
        if (memory_->instances[index].is_used != 0 and is_dead(index)) {
            queue().bury(index, list);
            memory_->instances[index].is_used = 0;
            ++count;
        }
        unlock();
        wake(list);
    }
    return count;
}

}  // namespace sluice::fsmutex
