#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <utility>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"

// The faults of the published atomic append (LLFIO's), reproduced in a minimal form, for tests that
// must detect them. The file has a header and a record per request; a request waits for conflicting
// records before its own.

namespace sluice::interleave {

enum class fault {
    none,
    guard_is_lost,        // 1: releasing the lock for opening also releases the one that
                          // marks the file as used
    unlock_rereads,       // 2: the search for the first live record ends only
                          // at the end of the file
    own_lock_is_dropped,  // 3: as soon as it is granted, so that waiters do not sleep
    dead_are_not_found,   // 4: a record without its owner continues to conflict
    deadline_is_refused,  // 5: "operation not supported"
    no_hashes,            // 6: the first record after the former end of the file
                          // is taken for its own
    flag_is_toggled,      // 9: the append flag, on a descriptor that another thread uses to erase
    file_stays,           // 10
    header_goes_back,     // 11: several processes write it at once
    append_races,         // 13: on a file system where two appends can get the same offset
};

template <fault Fault>
class published_append final : public fsmutex::shared_fs_mutex {
public:
    /// With a descriptor, it is a second thread of that process.
    explicit published_append(const fsmutex::dependencies& from, int shared_descriptor = -1)
        : shared_fs_mutex(from, fsmutex::fork_mark::of_this_process().value()), file_(shared_descriptor) {
        while (file_ < 0) {
            file_ = open_file();
            (void)kernel_lock::lock(file_, opening, kind::exclusive);
            if (not begin()) ::close(std::exchange(file_, -1));
        }
    }
    ~published_append() override {
        (void)kernel_lock::lock(file_, opening, kind::exclusive);
        if (Fault != fault::file_stays and kernel_lock::try_lock(file_, in_use, kind::exclusive) == 0 and
            is_empty())
            (void)::unlinkat(::open("/simulated", O_RDONLY | O_DIRECTORY), "published", 0);
        ::close(file_);
    }
    [[nodiscard]] int descriptor() const noexcept { return file_; }
    [[nodiscard]] fsmutex::algorithm which() const noexcept override {
        return fsmutex::algorithm::atomic_append;
    }
    [[nodiscard]] bool is_fair() const noexcept override { return true; }

    struct record {
        std::uint64_t id;  // in the header: the offset of the first record that may be live
        std::uint64_t count;
        std::array<std::uint64_t, 2> entities;
    };

private:
    using entity = fsmutex::entity;
    using kind = fsmutex::kernel_lock::kind;
    using range = fsmutex::kernel_lock::range;
    struct kernel_lock {
        static int try_lock(int file, range where, kind how) {
            return fsmutex::kernel_lock::try_lock(file, where, how);
        }
        static int lock(int file, range where, kind how) {
            return fsmutex::kernel_lock::lock(file, where, how);
        }
        static void unlock(int file, range where) { fsmutex::kernel_lock::unlock(file, where); }
    };
    static constexpr std::uint64_t far = std::uint64_t{1} << 40;
    static constexpr range opening{.first = far, .length = 8};
    static constexpr range in_use{.first = Fault == fault::guard_is_lost ? far + 7 : far + 8, .length = 1};
    static constexpr range tidying{.first = far + 9, .length = 1};
    static constexpr range all_requests{.first = 2 * far, .length = far};
    static range request(std::uint64_t id) { return {.first = 2 * far + id % far, .length = 1}; }
    static int open_file(int flags = 0) { return ::open("/simulated/published", O_RDWR | O_CREAT | flags); }

    bool begin() {
        struct stat status{};
        ::fstat(file_, &status);
        if (status.st_nlink == 0) return false;
        const bool is_in_use = fsmutex::kernel_lock::is_locked(file_, in_use, kind::exclusive).value();
        if (Fault == fault::guard_is_lost ? not is_in_use : status.st_size == 0) {
            (void)::ftruncate(file_, 0);
            write(0, {.id = sizeof(record), .count = 0, .entities = {}});
        }
        (void)kernel_lock::lock(file_, in_use, kind::shared);
        kernel_lock::unlock(file_, opening);
        return true;
    }
    [[nodiscard]] record read(std::uint64_t place) const {
        record found{};
        (void)::pread(file_, &found, sizeof found, static_cast<off_t>(place));
        return found;
    }
    void write(std::uint64_t place, const record& what) const {
        (void)::pwrite(file_, &what, sizeof what, static_cast<off_t>(place));
    }
    [[nodiscard]] std::uint64_t end() const {
        struct stat status{};
        ::fstat(file_, &status);
        return static_cast<std::uint64_t>(status.st_size);
    }

    [[nodiscard]] bool is_empty() const {
        for (std::uint64_t place = read(0).id; place < end(); place += sizeof(record))
            if (read(place).count != 0) return false;
        return true;
    }

    // A ticket contains the offset, the id of the conflicting owner, and a description of its own
    // request.
    result<bool> enter(std::span<const entity> wanted, fsmutex::ticket& mine, wait_policy) noexcept override {
        append(wanted, mine);
        return poll(wanted, mine);
    }
    void append(std::span<const entity> wanted, fsmutex::ticket& mine) noexcept {
        record own{.id = random().next_u64() % far, .count = wanted.size(), .entities = {}};
        for (std::size_t i = 0; i != wanted.size(); ++i)
            own.entities[i] = wanted[i].bits();
        mine.descriptor = open_file(O_APPEND);
        (void)kernel_lock::try_lock(mine.descriptor, request(own.id), kind::exclusive);
        mine.place = end();
        if (Fault == fault::append_races) {
            write(mine.place, own);
            return;
        }
        if (Fault == fault::flag_is_toggled) {
            append_by_flag(own, mine.place);
            return;
        }
        (void)!::write(mine.descriptor, &own, sizeof own);
        const off_t behind = ::lseek(mine.descriptor, 0, SEEK_CUR);
        if (Fault != fault::no_hashes) mine.place = static_cast<std::uint64_t>(behind) - sizeof own;
    }
    void append_by_flag(const record& own, std::uint64_t& place) const {
        ::fcntl(file_, F_SETFL, O_APPEND);
        (void)!::write(file_, &own, sizeof own);
        ::fcntl(file_, F_SETFL, 0);
        while (read(place).id != own.id)
            place += sizeof own;
    }
    result<bool> poll(std::span<const entity> wanted, fsmutex::ticket& mine) noexcept override {
        if (mine.mark == refused) return failure({EOPNOTSUPP, "lock a range for so long"});
        for (std::uint64_t place = read(0).id; place < mine.place; place += sizeof(record)) {
            const record other = read(place);
            if (not is_in_the_way(other, wanted)) continue;
            mine.mark = other.id;
            if (kernel_lock::try_lock(mine.descriptor, request(other.id), kind::shared) != 0) return false;
            if (read(place).id != other.id) continue;
            if (Fault == fault::dead_are_not_found or Fault == fault::own_lock_is_dropped) return false;
            mine.owner_died = true;
            write(place, {});
        }
        if (Fault == fault::own_lock_is_dropped) kernel_lock::unlock(mine.descriptor, all_requests);
        return true;
    }
    [[nodiscard]] static bool is_in_the_way(const record& other, std::span<const entity> wanted) {
        for (std::size_t i = 0; i != other.count; ++i)
            for (const entity each : wanted)
                if (each.conflicts_with(entity::from_bits(other.entities[i]))) return true;
        return false;
    }
    void wait(std::span<const entity>, fsmutex::ticket& mine, steady_time until) noexcept override {
        if (Fault == fault::deadline_is_refused and until != steady_time::max()) mine.mark = refused;
        const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
        if (until != steady_time::max())
            (void)::nanosleep(&moment, nullptr);
        else
            (void)kernel_lock::lock(mine.descriptor, request(mine.mark), kind::shared);
    }
    void drop_copy(fsmutex::ticket&) noexcept override {}
    void leave(fsmutex::ticket& mine) noexcept override {
        write(mine.place, {});
        kernel_lock::unlock(mine.descriptor, all_requests);
        tidy();
        ::close(mine.descriptor);
    }
    void tidy() const {
        if (Fault != fault::header_goes_back and kernel_lock::lock(file_, tidying, kind::exclusive) != 0)
            return;
        std::uint64_t first = read(0).id;
        // Reads two records at a time, except the last ones: another process may be appending.
        while (first + 2 * sizeof(record) <= end()) {
            const bool is_live = read(first).count != 0;
            if (is_live and Fault == fault::unlock_rereads) continue;
            if (is_live) break;
            first += sizeof(record);
        }
        write(0, {.id = first, .count = 0, .entities = {}});
        kernel_lock::unlock(file_, tidying);
    }

    static constexpr std::uint64_t refused = ~std::uint64_t{0};
    int file_;
};

}  // namespace sluice::interleave
