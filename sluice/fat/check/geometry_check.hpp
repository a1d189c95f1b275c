#pragma once

#include "sluice/fat/check/check_options.hpp"
#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// Checks the volume as if its boot sector had this geometry. Errors, Allocates, Blocks: as check()
/// (check.hpp).
[[nodiscard]] result<check_report> check_as(device& image, const geometry& shape,
                                            const check_options& options = {});

}  // namespace sluice::fat
