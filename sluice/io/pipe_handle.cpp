#include "sluice/io/pipe_handle.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace sluice::io {

result<pipe_handle::pair> pipe_handle::anonymous(std::size_t capacity_bytes) noexcept {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return failure(error::last("pipe2"));
    pair made{.reader = pipe_handle(native_handle{.descriptor = ends[0],
                                                  .kind = handle_kind::pipe,
                                                  .readable = true,
                                                  .nonblocking = true,
                                                  .stream = true}),
              .writer = pipe_handle(native_handle{.descriptor = ends[1],
                                                  .kind = handle_kind::pipe,
                                                  .writable = true,
                                                  .nonblocking = true,
                                                  .stream = true})};
    if (capacity_bytes != 0 and ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(capacity_bytes)) < 0) {
        return failure(error::last("set the pipe's capacity", ends[1]));
    }
    return made;
}

}  // namespace sluice::io
