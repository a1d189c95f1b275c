#include "sluice/smb/server/open.hpp"

#include "sluice/smb/server/session.hpp"

namespace sluice::smb::server {

open::open() noexcept = default;

open::~open() {
    ENSURE(is_closed or file == nullptr, "an open is ended before it goes");
}

}  // namespace sluice::smb::server
