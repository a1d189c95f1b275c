#include "sluice/smb/auth/logon/nt_hash.hpp"

#include "sluice/smb/auth/logon/md4.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::auth {

wire::decoded<nt_hash> nt_hash::of_password(std::string_view utf8) noexcept {
    auto utf16 = wire::utf16_of(utf8);
    if (!utf16) return std::unexpected(utf16.error());
    const mutable_bytes spelled(reinterpret_cast<std::byte*>(utf16->data()), utf16->size());
    auto digest = md4(spelled);
    wipe(spelled);
    nt_hash hash{secret_bytes<16>(digest)};
    wipe(digest);
    return hash;
}

}  // namespace sluice::smb::auth
