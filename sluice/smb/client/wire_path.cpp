#include "sluice/smb/client/wire_path.hpp"

#include <algorithm>

#include "sluice/smb/client/limits.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::client {

outcome<std::string> wire_path_of(std::string_view path, const char* step) {
    std::string spelled(path);
    std::ranges::replace(spelled, '/', '\\');
    const std::size_t first = spelled.find_first_not_of('\\');
    if (first == std::string::npos) return std::string();
    const std::size_t last = spelled.find_last_not_of('\\');
    spelled = spelled.substr(first, last + 1 - first);
    if (spelled.size() > limits::path_bytes_max)
        return failed(client_error::of_policy(step, "the path is too long for SMB"));
    if (spelled.find('\0') != std::string::npos)
        return failed(client_error::of_policy(step, "the path contains a NUL"));
    auto utf16 = wire::utf16_of(spelled);
    if (not utf16) return failed(client_error::of_policy(step, "the path is not UTF-8, which SMB requires"));
    return std::move(*utf16);
}

}  // namespace sluice::smb::client
