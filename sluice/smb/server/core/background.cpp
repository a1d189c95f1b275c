#include "sluice/smb/server/core/background.hpp"

#include "sluice/smb/server/core/cross_loop_post.hpp"

namespace sluice::smb::server {

void background_work::spawn(io::task<void> work) noexcept {
    do_on(loop_, [this, given = std::move(work)]() mutable noexcept {
        ENSURE(loop_.is_owner(), "the tasks of the background are those of its loop");
        tasks_.spawn(latched(latch_, loop_, std::move(given)));
    });
}

}  // namespace sluice::smb::server
