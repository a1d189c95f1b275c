#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/lock_benchmark/benchmark_subjects.hpp"

namespace sluice::lock_benchmark {
namespace {

int open_file(const std::string& path) {
    const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ENSURE(opened >= 0);
    return opened;
}

class flock_locker final : public locker {
public:
    explicit flock_locker(const lock_setup& here) {
        for (const std::uint64_t number : here.numbers)
            files_.push_back(open_file(here.directory + "/" + std::to_string(number)));
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
    explicit fcntl_locker(const lock_setup& here)
        : file_(open_file(here.directory + "/file")), numbers_(here.numbers) {}
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
    explicit lockf_locker(const lock_setup& here)
        : file_(open_file(here.directory + "/file")), numbers_(here.numbers) {}
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
    explicit created_file_locker(const lock_setup& here) {
        for (const std::uint64_t number : here.numbers)
            paths_.push_back(here.directory + "/" + std::to_string(number));
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
    explicit robust_locker(const lock_setup& here) : numbers_(here.numbers) {
        const std::size_t count = 100 * processes_max;
        const std::size_t bytes = count * sizeof(pthread_mutex_t);
        const int file = open_file(here.directory + "/file");
        ENSURE(::flock(file, LOCK_EX) == 0);
        const bool is_new = ::lseek(file, 0, SEEK_END) == 0;
        ENSURE(::ftruncate(file, static_cast<off_t>(bytes)) == 0);
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ENSURE(memory != MAP_FAILED);
        mutexes_ = static_cast<pthread_mutex_t*>(memory);
        for (std::size_t i = 0; is_new and i != count; ++i) {
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

}  // namespace

std::vector<benchmark_subject> peers() {
    return {
        {.name = "flock", .make = make_locker<flock_locker>},
        {.name = "fcntl.ofd", .make = make_locker<fcntl_locker<F_OFD_SETLKW>>},
        {.name = "fcntl.posix", .make = make_locker<fcntl_locker<F_SETLKW>>},
        {.name = "lockf", .make = make_locker<lockf_locker>},
        {.name = "open.excl", .make = make_locker<created_file_locker>},
        {.name = "pthread.robust", .make = make_locker<robust_locker>},
    };
}

}  // namespace sluice::lock_benchmark
