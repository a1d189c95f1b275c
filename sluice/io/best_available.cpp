#include <cstdlib>
#include <memory>
#include <string>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io {
namespace {

constexpr const char* variable = "SLUICE_MULTIPLEXER";

enum class back_end : unsigned char { none, io_uring, epoll };

struct choice {
    back_end which;
    std::string reason;
    error refusal{0, ""};
};

choice choose() noexcept {
    const char* const forced = std::getenv(variable);
    if (forced != nullptr and forced[0] != '\0') {
        const std::string_view name = forced;
        if (name == "io_uring") return {back_end::io_uring, "io_uring: SLUICE_MULTIPLEXER=io_uring"};
        if (name == "epoll") return {back_end::epoll, "epoll: SLUICE_MULTIPLEXER=epoll"};
        const error unknown =
            error::with_path(EINVAL, "SLUICE_MULTIPLEXER is neither io_uring nor epoll but", name);
        return {back_end::none, "none: " + unknown.message(), unknown};
    }
    const auto tried = try_uring();
    if (tried) return {back_end::io_uring, "io_uring"};
    return {back_end::epoll, "epoll: " + tried.error().message()};
}

// Once for each process, and silently: a sandbox that logs what it denies logs one line.
const choice& chosen_back_end() noexcept {
    static const choice made = choose();
    return made;
}

}  // namespace

result<std::unique_ptr<io_multiplexer>> best_available(std::size_t threads) noexcept {
    const choice& made = chosen_back_end();
    switch (made.which) {
        case back_end::io_uring:
            return make_uring_multiplexer();
        case back_end::epoll:
            return make_epoll_multiplexer(threads);
        case back_end::none:
            break;
    }
    return failure(made.refusal);
}

std::string_view best_available_reason() noexcept {
    return chosen_back_end().reason;
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
