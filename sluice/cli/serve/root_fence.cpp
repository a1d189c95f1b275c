#include "sluice/cli/serve/root_fence.hpp"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {

namespace {

constexpr std::chrono::milliseconds pause{50};

enum class outcome : std::uint8_t { locked, busy, impossible };

[[nodiscard]] outcome try_lock(const io::directory_handle& directory, int kind) noexcept {
    ENSURE(kind == LOCK_EX or kind == LOCK_SH, "a lock is exclusive or shared");
    while (::flock(directory.descriptor(), kind | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        return errno == EWOULDBLOCK ? outcome::busy : outcome::impossible;
    }
    return outcome::locked;
}

}  // namespace

result<std::optional<root_fence>> root_fence::claim(const std::string& path,
                                                    std::chrono::steady_clock::time_point end) noexcept {
    auto directory = io::directory_handle::open({}, path);
    if (not directory) return failure(directory.error());
    for (;;) {
        if (try_lock(*directory, LOCK_EX) != outcome::busy) return root_fence(*std::move(directory));
        if (std::chrono::steady_clock::now() >= end) return std::nullopt;
        std::this_thread::sleep_for(pause);
    }
}

bool root_fence::is_claimed(const std::string& path) noexcept {
    const auto directory = io::directory_handle::open({}, path);
    // Closing the directory ends the lock that this takes if no other process has one.
    return directory and try_lock(*directory, LOCK_SH) == outcome::busy;
}

}  // namespace sluice::cli
