#pragma once

#include <string>

namespace sluice::cli {

/// The state of one hardening measure in this process.
struct hardening_measure {
    const char* name = "";
    std::string inactive_because{};  ///< empty: active

    [[nodiscard]] bool is_active() const noexcept { return inactive_because.empty(); }
};

}  // namespace sluice::cli
