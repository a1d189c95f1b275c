#include "sluice/cli/hardening/openat2.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::cli {

int openat2_problem() noexcept {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    for (;;) {
        const long descriptor = ::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
        if (descriptor < 0 and errno == EINTR) continue;
        if (descriptor < 0) return errno;
        ::close(static_cast<int>(descriptor));
        return 0;
    }
}

bool is_for_lack_of_openat2(const error& why) noexcept {
    if (why.code() == ENOSYS) return true;
    return why.code() == EPERM and openat2_problem() == EPERM;
}

}  // namespace sluice::cli
