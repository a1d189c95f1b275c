#include "sluice/smb/server/core/background.hpp"

#include "sluice/smb/server/core/cross_loop_post.hpp"

namespace sluice::smb::server {

void background_work::spawn(io::task<void> work) noexcept {
    do_on(loop_, [this, given = std::move(work)]() mutable noexcept {
        tasks_.spawn(latched(latch_, loop_, std::move(given)));
    });
}

}  // namespace sluice::smb::server
