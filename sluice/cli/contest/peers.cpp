#include "bench/fs_mutex_peers.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "sluice/base/ensure.hpp"

namespace sluice::bench {

struct crowd::board {
    std::atomic<unsigned> ready;
    std::atomic<bool> is_started;
    std::atomic<bool> is_over;
    struct alignas(64) line {
        std::atomic<std::uint64_t> done;
        std::uint64_t cpu_ns;
    };
    std::array<line, 16> workers;
};

crowd::crowd(unsigned processes, const std::function<std::unique_ptr<locker>(unsigned)>& make) {
    void* const memory =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ENSURE(memory != MAP_FAILED);
    board_ = new (memory) board;
    for (unsigned process = 0; process != processes; ++process) {
        const pid_t id = ::fork();
        ENSURE(id >= 0);
        if (id != 0) {
            workers_.push_back(id);
            continue;
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to say that it is over
        {
            const auto mine = make(process);
            auto& line = board_->workers[process];
            board_->ready.fetch_add(1);
            while (not board_->is_started.load())
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            while (not board_->is_over.load(std::memory_order_relaxed)) {
                mine->lock_and_unlock();
                line.done.store(line.done.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            }
            timespec used{};
            ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            line.cpu_ns = static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(used.tv_nsec);
        }
        ::_exit(0);
    }
    while (board_->ready.load() != processes)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

crowd::~crowd() {
    stop();
    ::munmap(board_, sizeof(board));
}

std::uint64_t crowd::run_for(std::chrono::milliseconds duration) {
    board_->is_started.store(true);
    std::this_thread::sleep_for(duration);
    for (const auto& each : board_->workers)
        done_ += each.done.load();
    return std::max<std::uint64_t>(done_, 1);
}

void crowd::stop() {
    board_->is_over.store(true);
    for (const pid_t each : workers_)
        ::waitpid(each, nullptr, 0);
    workers_.clear();
}

double crowd::cpu_ns_per_operation() const {
    std::uint64_t cpu = 0;
    std::uint64_t all = 0;
    for (const auto& each : board_->workers) {
        cpu += each.cpu_ns;
        all += each.done.load();
    }
    return static_cast<double>(cpu) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

double crowd::slowest_to_fastest() const {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t most = 1;
    for (const auto& each : board_->workers) {
        if (each.cpu_ns == 0) continue;
        least = std::min(least, each.done.load());
        most = std::max(most, each.done.load());
    }
    return static_cast<double>(least) / static_cast<double>(most);
}

namespace {

int open_file(const std::string& path) {
    const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ENSURE(opened >= 0);
    return opened;
}

class flock_locker final : public locker {
public:
    flock_locker(const std::string& path, const std::vector<std::uint64_t>& numbers) {
        for (const std::uint64_t number : numbers)
            files_.push_back(open_file(path + std::to_string(number)));
    }
    void lock_and_unlock() override {
        for (const int file : files_)
            ENSURE(::flock(file, LOCK_EX) == 0);
        for (const int file : files_)
            ENSURE(::flock(file, LOCK_UN) == 0);
    }

private:
    std::vector<int> files_;
};

template <int Command>
class fcntl_locker final : public locker {
public:
    fcntl_locker(const std::string& path, const std::vector<std::uint64_t>& numbers)
        : file_(open_file(path)), numbers_(numbers) {}
    void lock_and_unlock() override {
        for (const std::uint64_t number : numbers_)
            set(number, F_WRLCK);
        for (const std::uint64_t number : numbers_)
            set(number, F_UNLCK);
    }

private:
    void set(std::uint64_t number, short type) const {
        struct flock lock{};
        lock.l_type = type;
        lock.l_whence = SEEK_SET;
        lock.l_start = static_cast<off_t>(number);
        lock.l_len = 1;
        ENSURE(::fcntl(file_, Command, &lock) == 0);
    }
    int file_;
    std::vector<std::uint64_t> numbers_;
};

class lockf_locker final : public locker {
public:
    lockf_locker(const std::string& path, const std::vector<std::uint64_t>& numbers)
        : file_(open_file(path)), numbers_(numbers) {}
    void lock_and_unlock() override {
        for (const int how : {F_LOCK, F_ULOCK})
            for (const std::uint64_t number : numbers_) {
                ENSURE(::lseek(file_, static_cast<off_t>(number), SEEK_SET) >= 0);
                ENSURE(::lockf(file_, how, 1) == 0);
            }
    }

private:
    int file_;
    std::vector<std::uint64_t> numbers_;
};

class created_file_locker final : public locker {
public:
    created_file_locker(const std::string& path, const std::vector<std::uint64_t>& numbers) {
        for (const std::uint64_t number : numbers)
            paths_.push_back(path + std::to_string(number));
    }
    void lock_and_unlock() override {
        for (const std::string& path : paths_) {
            int file = -1;
            while ((file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
                ::sched_yield();
            ::close(file);
        }
        for (const std::string& path : paths_)
            ::unlink(path.c_str());
    }

private:
    std::vector<std::string> paths_;
};

class robust_locker final : public locker {
public:
    robust_locker(const std::string& path, const std::vector<std::uint64_t>& numbers) : numbers_(numbers) {
        constexpr std::size_t bytes = 1024 * sizeof(pthread_mutex_t);
        const int file = open_file(path);
        ENSURE(::flock(file, LOCK_EX) == 0);
        const bool is_new = ::lseek(file, 0, SEEK_END) == 0;
        ENSURE(::ftruncate(file, bytes) == 0);
        mutexes_ = static_cast<pthread_mutex_t*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        for (std::size_t i = 0; is_new and i != 1024; ++i) {
            pthread_mutexattr_t kind;
            ::pthread_mutexattr_init(&kind);
            ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
            ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
            ::pthread_mutex_init(&mutexes_[i], &kind);
        }
        ENSURE(::flock(file, LOCK_UN) == 0);
    }
    void lock_and_unlock() override {
        for (const std::uint64_t number : numbers_)
            ENSURE(::pthread_mutex_lock(&mutexes_[number]) == 0);
        for (const std::uint64_t number : numbers_)
            ENSURE(::pthread_mutex_unlock(&mutexes_[number]) == 0);
    }

private:
    pthread_mutex_t* mutexes_;
    std::vector<std::uint64_t> numbers_;
};

template <class Locker>
std::unique_ptr<locker> make(const std::string& path, const std::vector<std::uint64_t>& numbers) {
    return std::make_unique<Locker>(path, numbers);
}

}  // namespace

const std::vector<peer>& fs_mutex_peers() {
    static const std::vector<peer> all{
        {"flock", make<flock_locker>},
        {"fcntl.ofd", make<fcntl_locker<F_OFD_SETLKW>>},
        {"fcntl.posix", make<fcntl_locker<F_SETLKW>>},
        {"lockf", make<lockf_locker>},
        {"open.excl", make<created_file_locker>},
        {"pthread.robust", make<robust_locker>},
    };
    return all;
}

}  // namespace sluice::bench
