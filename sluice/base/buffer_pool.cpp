#include "sluice/base/buffer_pool.hpp"

namespace sluice {

void pool_buffer::release() noexcept {
    pool_->put_back(aligned_memory(std::exchange(memory_, nullptr)), class_,
                    std::exchange(account_, nullptr));
}

}  // namespace sluice
