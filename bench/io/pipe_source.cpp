#include "bench/io/pipe_source.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "sluice/base/ensure.hpp"

namespace sluice::bench {

void pin_to(int processor) {
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(processor < 0 ? count - 1 : processor), &set);
    // Refused in some containers: then the scheduler decides.
    (void)sched_setaffinity(0, sizeof set, &set);
}

pipe_source::pipe_source(int writers) {
    (void)signal(SIGPIPE, SIG_IGN);  // the writers end with EPIPE
    std::array<int, 2> ends{};
    ENSURE(pipe2(ends.data(), O_CLOEXEC) == 0);
    reader_ = ends[0];
    writer_ = ends[1];
    kept_ = fcntl(reader_, F_DUPFD_CLOEXEC, 0);
    constexpr int capacity_bytes = 1 << 20;
    (void)fcntl(writer_, F_SETPIPE_SZ,
                capacity_bytes);  // refused above pipe-max-size: the pipe is then smaller
    for (int i = 0; i < writers; ++i) {
        writers_.emplace_back([writer = writer_] {
            pin_to(-1);
            static constexpr std::array<char, 65536> block{};
            while (write(writer, block.data(), block.size()) > 0) {}
        });
    }
    pin_to(0);
    // The measurement begins with a full pipe.
    std::array<char, 1> first{};
    ENSURE(read(reader_, first.data(), 1) == 1);
}

pipe_source::~pipe_source() {
    if (reader_ >= 0) (void)close(reader_);
    (void)close(kept_);  // the last read end: the writers get EPIPE
    for (auto& each : writers_)
        each.join();
    (void)close(writer_);
}

void pipe_source::make_nonblocking() const {
    ENSURE(fcntl(reader_, F_SETFL, O_NONBLOCK) == 0);
}

int pipe_source::release() noexcept {
    const int released = reader_;
    reader_ = -1;
    return released;
}

}  // namespace sluice::bench
