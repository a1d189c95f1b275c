#include <memory>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {

result<std::unique_ptr<io_multiplexer>> best_available(std::size_t threads) noexcept {
    return make_epoll_multiplexer(threads);
}

std::string_view best_available_reason() noexcept {
    return "epoll: the io_uring back end is not built";
}

namespace this_thread {
namespace {

thread_local std::unique_ptr<io_multiplexer> own;
thread_local io_multiplexer* chosen = nullptr;

}  // namespace

result<io_multiplexer*> multiplexer() noexcept {
    if (chosen != nullptr) return chosen;
    if (own == nullptr) {
        auto made = best_available();
        if (not made) return failure(made.error());
        own = std::move(*made);
    }
    return own.get();
}

void set_multiplexer(io_multiplexer* multiplexer) noexcept {
    chosen = multiplexer;
}

}  // namespace this_thread
}  // namespace sluice::io
