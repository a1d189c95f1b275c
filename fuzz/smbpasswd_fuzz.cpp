// A line of the passwords of Samba that `sluice user import` reads. Only a user that can log on has
// a hash, and a malformed line has no name.

#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/migration/smbpasswd.hpp"

using namespace sluice::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)is_tdb(text);
    const smbpasswd_line line = parse_smbpasswd(text);
    ENSURE(line.hash.has_value() == (line.skip == smbpasswd_skip::none));
    ENSURE(line.skip != smbpasswd_skip::malformed or line.name.empty());
    ENSURE(line.name.find(':') == std::string_view::npos and text.starts_with(line.name));
    return 0;
}
