#include "sluice/io/loop/registered_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "sluice/io/loop/engine.hpp"

namespace sluice::io {

result<registered_buffer> io_multiplexer::allocate_registered_buffer(std::size_t bytes) noexcept {
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes == 0 or bytes > std::numeric_limits<std::size_t>::max() - page_bytes)
        return failure({EINVAL, "allocate a registered buffer"});
    bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return failure(error::last("allocate a registered buffer"));
    registered_buffer made({static_cast<std::byte*>(at), bytes});
    // Fewer pages to pin and to walk; refused where huge pages are not configured.
    (void)::madvise(at, bytes, MADV_HUGEPAGE);
    const entry in(*this);
    if (const auto index = backend_register(made.bytes())) {
        made.registrar_ = this;
        made.index_ = *index;
        ++registered_buffers_;
    }
    return made;
}

void io_multiplexer::forget_registered_buffer(unsigned index) noexcept {
    const entry in(*this);
    ENSURE(registered_buffers_ != 0, "more buffers are forgotten than were registered");
    --registered_buffers_;
    backend_unregister(index);
}

registered_buffer::~registered_buffer() {
    ENSURE(registrar_ == nullptr or not memory_.empty(), "no memory is registered");
    if (registrar_ != nullptr) detail::engine::forget_registered_buffer(*registrar_, index_);
    if (not memory_.empty()) (void)::munmap(memory_.data(), memory_.size());
}

}  // namespace sluice::io
