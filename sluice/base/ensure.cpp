#include "sluice/base/ensure.hpp"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void ensure_failed(const char* condition, const char* why, const char* file, int line) noexcept {
    // One call, so that lines of several threads do not mix.
    std::fprintf(stderr, "sluice: %s:%d: broken invariant: %s%s%s\n", file, line, condition,
                 why[0] != '\0' ? ": " : "", why);
    std::abort();
}

}  // namespace sluice
