// The file of memory_map while it is in use: steps of its users, between which an attacker writes
// into it and truncates it. No step may crash or hang; without the attacker, none may fail.
//
// The input is a list of steps of four bytes: operation, user or value, and position (16 bits).
// Each reading of the clock advances it, so that a wait for a forged latch ends.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/async_lock.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"

namespace {

using namespace sluice;
using namespace sluice::fsmutex;

constexpr std::size_t users = 3;
constexpr std::size_t guards_per_user = 3;
constexpr std::size_t steps_max = 64;
constexpr unsigned busy_max = 2;
constexpr std::array<std::uint32_t, 8> values{0, 1, 2, 9, 4096, 32'768, 0x8000'0000, 0xffff'ffff};

class hasty_clock final : public clock_source {
public:
    [[nodiscard]] steady_time steady_now() const noexcept override {
        return steady_time(std::chrono::seconds(++ticks_));
    }
    [[nodiscard]] utc_time utc_now() const noexcept override { return utc_time(std::chrono::hours(1)); }

private:
    mutable std::int64_t ticks_ = 0;
};

// The wait of a request that has no thread. It is never started here.
class unstarted_operation final : public io::detail::operation_record {
    void signal_value() noexcept override {}
    void signal_done() noexcept override {}
};

struct user {
    std::unique_ptr<shared_fs_mutex> mutex;
    std::array<fs_mutex_guard, guards_per_user> held;
    std::optional<lock_attempt> waits;

    void close() {
        waits.reset();
        for (fs_mutex_guard& each : held)
            (void)each.unlock();
        mutex.reset();
    }
};

class scene {
public:
    scene() : path_("/dev/shm/sluice_map_fuzz." + std::to_string(::getpid())) { ::unlink(path_.c_str()); }
    scene(const scene&) = delete;
    scene& operator=(const scene&) = delete;
    ~scene() {
        if (busy_ != 0) release_latch();
        for (user& each : users_)
            each.close();
        // A file that was left is created again, or refused.
        const auto last = open();
        if (last) (void)(*last)->try_lock(entity(1));
        ENSURE(was_attacked_ or last);
        ::unlink(path_.c_str());
    }

    void step(std::uint8_t what, std::uint8_t who, std::uint16_t where) {
        user& one = users_[who % users];
        // Each wait for a forged latch takes a tenth of a second.
        if (busy_ == busy_max) {
            busy_ = 0;
            release_latch();
        }
        if (what % 16 >= 11) return attack(what, who, where);
        if (one.mutex == nullptr) {
            auto opened = open();
            ENSURE(was_attacked_ or opened);
            if (opened) one.mutex = *std::move(opened);
            return;
        }
        switch (what % 16) {
            case 0:
                return one.close();
            case 1:
                return check(one.mutex->list());
            case 2:
            case 3:
                return unlock(one.held[where % guards_per_user]);
            case 4:
                return check(one.held[where % guards_per_user].check());
            case 5:
            case 6:
                return wait(one, wanted(where));
            default: {
                auto held = one.mutex->try_lock(wanted(where));
                if (not held) return expect_failure(held.error());
                one.held[where % guards_per_user] = *std::move(held);
            }
        }
    }

private:
    [[nodiscard]] result<std::unique_ptr<shared_fs_mutex>> open() {
        return memory_map::open({}, path_, {.clock = &clock_, .random = &random_});
    }
    // A few entities with small numbers; sometimes more than a record holds.
    [[nodiscard]] static std::vector<entity> wanted(std::uint16_t where) {
        std::vector<entity> all;
        for (std::uint64_t i = 0; i != 5; ++i)
            if ((where >> i & 1) != 0)
                all.emplace_back(i, (where >> (5 + i) & 1) != 0 ? lock_mode::shared : lock_mode::exclusive);
        if (where >> 13 == 7)
            for (std::uint64_t i = 10; i != 22; ++i)
                all.emplace_back(i);
        if (all.empty()) all.emplace_back(where);
        return all;
    }
    void expect_failure(const error& why) {
        if (why == std::errc::device_or_resource_busy) ++busy_;
        ENSURE(was_attacked_ or why == std::errc::timed_out);
    }
    template <class Result>
    void check(const Result& outcome) {
        if (not outcome) expect_failure(outcome.error());
    }
    void unlock(fs_mutex_guard& held) { check(held.unlock()); }
    void wait(user& one, const std::vector<entity>& entities) {
        if (not one.waits) {
            auto begun = lock_attempt::begin(*one.mutex, entities, {});
            if (not begun) return expect_failure(begun.error());
            one.waits.emplace(*std::move(begun));
            return;
        }
        unstarted_operation sleeping;
        one.waits->begin_wait(*loop_, sleeping);
        const auto granted = one.waits->poll();
        check(granted);
        (void)one.waits->end_wait(sleeping);
        if (granted and not*granted) return;
        if (granted) {
            auto held = one.waits->take();
            check(held.unlock());
        }
        one.waits.reset();
    }

    void release_latch() const {
        const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return;
        write(file, offsetof(mapped::memory, latch), 0);
        ::close(file);
    }
    // Replaces one word, or the size.
    void attack(std::uint8_t what, std::uint8_t who, std::uint16_t where) {
        const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return;
        was_attacked_ = true;
        if (what % 16 == 11) {
            constexpr std::array<off_t, 8> sizes{0,      8,       4096,    36'864,
                                                 57'344, 100'000, 1 << 20, off_t{2} << 20};
            (void)!::ftruncate(file, where % 64 == 0 ? where : sizes[where % sizes.size()]);
        } else {
            const std::uint32_t word = (who & 0x80) != 0 ? who & 0x7fU : values[who % values.size()];
            write(file, offset_of(what, where), word);
        }
        ::close(file);
    }
    [[nodiscard]] static off_t offset_of(std::uint8_t what, std::uint16_t where) {
        const std::size_t word = std::size_t{where} * 4;
        const std::size_t offset = what % 16 == 12   ? word % offsetof(mapped::memory, instances)
                                   : what % 16 == 13 ? offsetof(mapped::memory, instances) + word % 128
                                   : what % 32 == 14
                                       ? offsetof(mapped::memory, heads) + word % (4 * mapped::buckets)
                                       : offsetof(mapped::memory, requests) + word % 3200;
        return static_cast<off_t>(offset);
    }
    static void write(int file, off_t offset, std::uint32_t word) {
        struct stat status{};
        if (::fstat(file, &status) == 0 and status.st_size > offset)
            (void)!::pwrite(file, &word, sizeof word, offset);
    }

    std::string path_;
    std::unique_ptr<io::io_multiplexer> loop_ = io::make_simulated_multiplexer({}).value();
    hasty_clock clock_;
    seeded_random random_{1};
    bool was_attacked_ = false;
    unsigned busy_ = 0;
    std::array<user, users> users_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    scene all;
    for (std::size_t at = 0; at + 4 <= std::min(size, 4 * steps_max); at += 4)
        all.step(data[at], data[at + 1], static_cast<std::uint16_t>(data[at + 2] | data[at + 3] << 8));
    return 0;
}
