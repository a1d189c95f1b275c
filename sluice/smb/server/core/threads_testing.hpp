#pragma once

#include <cstddef>
#include <latch>
#include <thread>
#include <vector>

namespace sluice::smb::server {

/// Test support: runs `work(number)` on `threads` threads, which begin at the same
/// time, and waits for them.
template <class Work>
void run_at_once(std::size_t threads, Work work) {
    std::latch all_are_there(static_cast<std::ptrdiff_t>(threads));
    std::vector<std::jthread> running;
    for (std::size_t number = 0; number != threads; ++number)
        running.emplace_back([&all_are_there, &work, number] {
            all_are_there.arrive_and_wait();
            work(number);
        });
}

}  // namespace sluice::smb::server
