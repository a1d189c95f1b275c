#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/lock_benchmark/benchmark_subjects.hpp"

// The system calls that each algorithm requires: no checks, no records, no treatment of dead
// processes.

namespace sluice::lock_benchmark {
namespace {

int open_file(const std::string& path, int flags = 0) {
    const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666);
    ENSURE(opened >= 0);
    return opened;
}

void set_lock(int file, int command, short type, std::uint64_t first, std::uint64_t length) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(first);
    lock.l_len = static_cast<off_t>(length);
    ENSURE(::fcntl(file, command, &lock) == 0);
}

// One lock per entity, and one call that unlocks them all.
class byte_ranges_limit final : public locker {
public:
    explicit byte_ranges_limit(const lock_setup& here)
        : file_(open_file(here.directory + "/file")), numbers_(here.numbers) {}
    void lock_and_unlock() override {
        for (const std::uint64_t number : numbers_)
            set_lock(file_, F_OFD_SETLKW, F_WRLCK, number, 1);
        set_lock(file_, F_OFD_SETLK, F_UNLCK, 0, 0);
    }

private:
    int file_;
    std::vector<std::uint64_t> numbers_;
};

// For each entity: create a file, lock it, check that it was not removed before, write it, remove
// it, unlock it (a child may have inherited it) and close it.
class lock_files_limit final : public locker {
public:
    explicit lock_files_limit(const lock_setup& here)
        : directory_(::open(here.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        ENSURE(directory_ >= 0);
        for (const std::uint64_t number : here.numbers)
            names_.push_back(std::string(14, '0') + std::to_string(100 + number));
        files_.resize(names_.size());
    }
    void lock_and_unlock() override {
        for (std::size_t i = 0; i != names_.size(); ++i)
            files_[i] = take(names_[i].c_str());
        for (std::size_t i = 0; i != names_.size(); ++i) {
            ::unlinkat(directory_, names_[i].c_str(), 0);
            set_lock(files_[i], F_OFD_SETLK, F_UNLCK, 0, 1);
            ::close(files_[i]);
        }
    }

private:
    int take(const char* name) {
        static constexpr std::array<char, 80> record{'o', 'w', 'n', 'e', 'r'};
        int file = -1;
        while ((file = ::openat(directory_, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
            ::sched_yield();
        set_lock(file, F_OFD_SETLKW, F_WRLCK, 0, 1);
        struct stat status{};
        ENSURE(::fstat(file, &status) == 0);
        ENSURE(::pwrite(file, record.data(), record.size(), 0) == static_cast<ssize_t>(record.size()));
        return file;
    }
    int directory_;
    std::vector<std::string> names_;
    std::vector<int> files_;
};

// Lock the request's own byte, append a record, query its offset, erase the record, unlock.
class atomic_append_limit final : public locker {
public:
    explicit atomic_append_limit(const lock_setup& here)
        : appended_(open_file(here.directory + "/file", O_APPEND)),
          file_(open_file(here.directory + "/file")) {}
    void lock_and_unlock() override {
        static constexpr std::array<char, 128> record{'o', 'w', 'n', 'e', 'r'};
        static constexpr std::array<char, 128> zeros{};
        constexpr std::uint64_t far = std::uint64_t{1} << 62;
        set_lock(appended_, F_OFD_SETLK, F_WRLCK, far + ++requests_, 1);
        ENSURE(::write(appended_, record.data(), record.size()) == static_cast<ssize_t>(record.size()));
        const off_t end = ::lseek(appended_, 0, SEEK_CUR);
        ENSURE(::pwrite(file_, zeros.data(), zeros.size(), end - static_cast<off_t>(zeros.size())) > 0);
        set_lock(appended_, F_OFD_SETLK, F_UNLCK, far, 0);
    }

private:
    int appended_;
    int file_;
    std::uint64_t requests_ = 0;
};

// Each process sleeps until the previous one in the ring wakes it.
class futex_ring final : public locker {
public:
    explicit futex_ring(const lock_setup& here) {
        const int file = open_file(here.directory + "/file");
        ENSURE(::ftruncate(file, sizeof(ring)) == 0);
        void* const memory = ::mmap(nullptr, sizeof(ring), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ENSURE(memory != MAP_FAILED);
        auto& all = *static_cast<ring*>(memory);
        own_ = &all[here.process].word;
        next_ = &all[(here.process + 1) % here.processes].word;
        if (here.process == 0) own_->store(has_turn, std::memory_order_release);
    }
    void lock_and_unlock() override {
        for (std::uint32_t seen = 0; seen != has_turn;) {
            seen = none;
            // acquire here, release below: the process whose turn it is sees all earlier writes.
            if (not own_->compare_exchange_strong(seen, asleep, std::memory_order_acquire) and
                seen == has_turn)
                break;
            // Limits the wait, so that the end is noticed even if the process whose turn it was has
            // exited.
            const timespec moment{.tv_sec = 0, .tv_nsec = 50'000'000};
            const auto slept = ::syscall(SYS_futex, own_, FUTEX_WAIT, asleep, &moment, nullptr, 0);
            if (slept != 0 and errno == ETIMEDOUT) return;
        }
        own_->store(none, std::memory_order_relaxed);
        if (next_->exchange(has_turn, std::memory_order_acq_rel) == asleep)
            (void)::syscall(SYS_futex, next_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }

private:
    enum : std::uint32_t { none, asleep, has_turn };
    struct alignas(64) line {
        std::atomic<std::uint32_t> word;
    };
    using ring = std::array<line, processes_max>;
    std::atomic<std::uint32_t>* own_;
    std::atomic<std::uint32_t>* next_;
};

}  // namespace

std::vector<benchmark_subject> limits() {
    return {
        {.name = "limit.hand_off", .make = make_locker<futex_ring>, .needs_company = true},
        {.name = "limit.atomic_append", .make = make_locker<atomic_append_limit>, .excludes = false},
        {.name = "limit.byte_ranges", .make = make_locker<byte_ranges_limit>},
        {.name = "limit.lock_files", .make = make_locker<lock_files_limit>},
    };
}

}  // namespace sluice::lock_benchmark
