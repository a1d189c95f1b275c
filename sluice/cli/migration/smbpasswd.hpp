#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/smb/auth/logon/nt_hash.hpp"

namespace sluice::cli {

/// Why a line of an smbpasswd file names no user that can log on.
enum class smbpasswd_skip : std::uint8_t {
    none,         // it names one
    blank,        // an empty line or a remark
    malformed,    // not NAME:UID:LM:NT:[FLAGS]:LCT
    machine,      // a computer or a trusted domain, not a person
    disabled,     // the flag D
    no_password,  // the flag N, or no hash
};

/// A line of the file that smbpasswd(5) describes, which `pdbedit -L -w` prints, too. The hash of
/// LM is never used.
struct smbpasswd_line {
    smbpasswd_skip skip = smbpasswd_skip::malformed;
    std::string name{};  // as in the line; not checked, and empty if the line is malformed
    std::optional<smb::auth::nt_hash> hash{};  // present if `skip` is none
};

/// Parses one line without its line feed. Lines of more than 4096 bytes are malformed. Allocates:
/// the name. Blocks: nothing. Thread safety: any thread.
[[nodiscard]] smbpasswd_line parse_smbpasswd(std::string_view line);

/// Returns the clause for a message: "the account is disabled".
[[nodiscard]] std::string_view text_of(smbpasswd_skip skip) noexcept;

/// Returns whether the beginning of a file shows that it is a database of tdb(3), or the text that
/// tdbdump(8) prints of one. Their records are packed structures.
[[nodiscard]] bool is_tdb(std::string_view beginning) noexcept;

}  // namespace sluice::cli
