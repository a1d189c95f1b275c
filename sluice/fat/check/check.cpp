#include "sluice/fat/check/check.hpp"

#include "sluice/fat/check/boot_choice.hpp"

namespace sluice::fat {

result<check_report> check(device& image, const check_options& options) {
    return boot_choice(image, options).check();
}

}  // namespace sluice::fat
