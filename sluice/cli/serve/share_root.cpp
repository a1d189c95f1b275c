#include "sluice/cli/serve/share_root.hpp"

#include <sys/stat.h>

namespace sluice::cli {

std::optional<share_root> find_share_root(const std::string& path) noexcept {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return share_root{
        .device = status.st_dev, .inode = status.st_ino, .is_directory = S_ISDIR(status.st_mode)};
}

}  // namespace sluice::cli
