#pragma once

#include <thread>
#include <vector>

namespace sluice::bench {

/// A pipe kept full by writers, as in P2052's benchmark: a reader that takes one byte at a time
/// never waits.
///
/// The writers block in write(2) on the last CPU; the reader runs on the first. The read end is
/// blocking unless a subject changes that. Ends in the destructor, whatever the pipe still
/// contains.
class pipe_source {
public:
    explicit pipe_source(int writers = 2);
    pipe_source(const pipe_source&) = delete;
    pipe_source& operator=(const pipe_source&) = delete;
    ~pipe_source();

    [[nodiscard]] int reader() const noexcept { return reader_; }
    void make_nonblocking() const;

    /// Returns the read end, which the caller closes.
    [[nodiscard]] int release() noexcept;

private:
    int reader_ = -1;
    // A duplicate of the read end, closed last, because there is no second description of it.
    int kept_ = -1;
    int writer_ = -1;
    std::vector<std::thread> writers_;
};

/// Pins the calling thread to one CPU; the last one for -1.
void pin_to(int processor);

}  // namespace sluice::bench
