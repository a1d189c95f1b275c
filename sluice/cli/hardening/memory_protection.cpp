#include "sluice/cli/hardening/memory_protection.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace sluice::cli {

bool is_sanitizer_build() noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

hardening_measure protect_memory() noexcept {
    hardening_measure made{.name = "no core dumps"};
    if (is_sanitizer_build()) {
        made.inactive_because = "this is a sanitizer's build";
        return made;
    }
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    if (::setrlimit(RLIMIT_CORE, &none) != 0 or ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        made.inactive_because = std::strerror(errno);
    return made;
}

}  // namespace sluice::cli
