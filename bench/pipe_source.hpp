#pragma once

#include <thread>
#include <vector>

namespace sluice::bench {

/// A pipe kept full by writers, as in P2052's benchmark: a reader that takes one byte at a time never has to
/// wait.
///
/// The writers block in write(2) on the last processor; the reader runs on the first. The read end is
/// blocking until a subject says otherwise. Ends in the destructor, with what is left in the pipe.
class pipe_source {
public:
    explicit pipe_source(int writers = 2);
    pipe_source(const pipe_source&) = delete;
    pipe_source& operator=(const pipe_source&) = delete;
    ~pipe_source();

    [[nodiscard]] int reader() const noexcept { return reader_; }
    void make_nonblocking() const;

    /// Gives the read end to somebody who will close it.
    [[nodiscard]] int release() noexcept;

private:
    int reader_ = -1;
    int kept_ = -1;  // a second description of the read end is not to be had, so a duplicate, closed last
    int writer_ = -1;
    std::vector<std::thread> writers_;
};

/// Keeps the calling thread on one processor; the last one for -1.
void pin_to(int processor);

}  // namespace sluice::bench
