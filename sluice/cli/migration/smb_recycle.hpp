#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// The parameters of Samba's module "recycle" for a share. Empty: not given.
struct smb_recycle_values {
    std::string_view repository{};
    std::string_view keeptree{};
    std::string_view versions{};
    std::string_view exclude{};
    std::string_view exclude_dir{};
};

/// The value of the setting `recycle`, and what it cannot express.
struct smb_recycle {
    struct remark {
        std::string_view parameter;  // canonical: "recycle:exclude"; empty: the module
        bool differs = false;        // otherwise it has no equivalent
        std::string text;
    };
    setting_value value{};
    std::vector<remark> remarks{};
};

/// Converts them. Where Samba has another default, the result has its value. Allocates: the result.
/// Pure. Source: the manual page of the module, vfs_recycle(8).
[[nodiscard]] smb_recycle converted_smb_recycle(const smb_recycle_values& from);

}  // namespace sluice::cli
