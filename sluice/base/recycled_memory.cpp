#include "sluice/base/recycled_memory.hpp"

#include <new>

namespace sluice {

recycled_memory::~recycled_memory() {
    ENSURE(in_use_ == 0, "memory destroyed while blocks are in use");
    for (block* first : kept_)
        while (first != nullptr) {
            block* const next = first->next;
            ::operator delete(first);
            first = next;
        }
}

void* recycled_memory::do_allocate(std::size_t bytes, std::size_t alignment) {
    ++in_use_;
    if (not is_kept(bytes, alignment)) return ::operator new(bytes, std::align_val_t(alignment));
    const std::size_t size_class = class_of(bytes);
    block* const reused = kept_[size_class];
    if (reused == nullptr) return ::operator new(size_class * step_bytes);
    kept_[size_class] = reused->next;
    kept_bytes_ -= size_class * step_bytes;
    return reused;
}

void recycled_memory::do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) {
    ENSURE(in_use_ != 0, "more blocks released than allocated");
    --in_use_;
    if (not is_kept(bytes, alignment)) {
        ::operator delete(memory, std::align_val_t(alignment));
        return;
    }
    const std::size_t size_class = class_of(bytes);
    if (size_class * step_bytes > kept_bytes_max_ - kept_bytes_) {
        ::operator delete(memory);
        return;
    }
    kept_[size_class] = new (memory) block{.next = kept_[size_class]};
    kept_bytes_ += size_class * step_bytes;
}

}  // namespace sluice
