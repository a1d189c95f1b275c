#pragma once

#include <string_view>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

/// A file is about to get another name: the records of its persistent opens have both until
/// end_rename(), because a kill of the process in between leaves it open which one the file has.
/// The file is marked (rename_marks.hpp), so no open becomes persistent until then.
/// Returns SUCCESS; or, with nothing changed, INSUFFICIENT_RESOURCES if the name is too long for
/// the records, or ACCESS_DENIED if one is of a share with another root, where the name means
/// another file.
[[nodiscard]] wire::nt_status begin_rename(server_context& host, open& by, std::string_view target) noexcept;
/// The rename has succeeded, or failed. The records keep the old name as the second one, because a
/// client that does not get the reply still uses it.
void end_rename(server_context& host, open& by, bool has_succeeded) noexcept;

}  // namespace sluice::smb::server
