#include "sluice/cli/name_services.hpp"

namespace sluice::cli {

void choose_name_services() {}

}  // namespace sluice::cli
