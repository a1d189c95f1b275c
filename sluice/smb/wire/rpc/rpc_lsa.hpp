#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/rpc/rpc_service.hpp"

// The parts of lsarpc that its calls share, and that samr uses, too.

namespace sluice::smb::wire {

/// Rights to a policy, [MS-LSAD] 2.2.1.1.2.
inline constexpr std::uint32_t policy_view_local_information = 0x00000001;
inline constexpr std::uint32_t policy_lookup_names = 0x00000800;

// The forms of the two lookups. They differ in what the results say about each name.

/// LsarLookupSids and LsarLookupSids2, [MS-LSAT] 3.1.4.10 and 3.1.4.9.
enum class sid_lookup : std::uint8_t { plain, with_flags };
/// LsarLookupNames, LsarLookupNames2 and LsarLookupNames3, 3.1.4.8, 3.1.4.7 and 3.1.4.6.
enum class name_lookup : std::uint8_t { plain, with_flags, with_sids };

/// Consumes, and writes, a handle.
[[nodiscard]] std::optional<rpc_handle> take_rpc_handle(ndr_reader& in) noexcept;
void put_rpc_handle(ndr_writer& out, const rpc_handle& one);
/// Executes the call that closes an object.
[[nodiscard]] rpc_fault close_rpc_handle(rpc_handle_table& open, ndr_reader& in, ndr_writer& out);
void put_status(ndr_writer& out, nt_status status);

/// Returns whether the policy with that handle grants one of these rights: success, or
/// access_denied; std::nullopt for any other handle.
[[nodiscard]] std::optional<nt_status> use_of_policy(const rpc_handle_table& policies,
                                                     const rpc_handle& policy, std::uint32_t right) noexcept;

/// Consumes the elements of an array of RPC_UNICODE_STRINGs, after their number. Allocates: the
/// texts.
[[nodiscard]] std::optional<std::vector<std::string>> take_counted_texts(ndr_reader& in, std::uint32_t count);

/// Consumes LSAPR_SID_ENUM_BUFFER, which samr calls SAMPR_PSID_ARRAY: pointers to SIDs, none of
/// them null. Allocates: the SIDs.
[[nodiscard]] std::optional<std::vector<sid>> take_sid_array(ndr_reader& in);

/// Execute a lookup: of at most 1000 names or SIDs (ndr_limits::elements_max). Complexity: one
/// search of the host for each of them, and logarithmic in their domains. Allocate: the names and
/// SIDs.
[[nodiscard]] rpc_fault look_up_sids(rpc_host& host, const rpc_handle_table& policies, sid_lookup form,
                                     ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault look_up_names(rpc_host& host, const rpc_handle_table& policies, name_lookup form,
                                      ndr_reader& in, ndr_writer& out);

}  // namespace sluice::smb::wire
