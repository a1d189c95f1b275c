#include "sluice/fsmutex/process/fork_mark.hpp"

#include <sys/mman.h>

namespace sluice::fsmutex {
namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

result<fork_mark> fork_mark::of_this_process() noexcept {
    void* const page =
        ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return failure(error::last("map a page"));
    fork_mark made(static_cast<std::uint32_t*>(page));
    if (::madvise(page, page_bytes, MADV_WIPEONFORK) != 0)
        return failure(error::last("mark a page as zeroed on fork"));
    *made.page_ = 1;
    return made;
}

fork_mark::~fork_mark() {
    if (page_ != nullptr) ::munmap(page_, page_bytes);
}

}  // namespace sluice::fsmutex
