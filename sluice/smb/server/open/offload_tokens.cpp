#include "sluice/smb/server/open/offload_tokens.hpp"

#include <algorithm>
#include <array>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::uint32_t token_type = 0x5343;  // any below types_reserved
static_assert(token_type < wire::offload_token::types_reserved);

struct raw_source {
    wire::file_id file;  //  0
    le64 offset;         // 16
    le64 length;         // 24
    le64 changes;        // 32
    le64 modified;       // 40
    le64 ends_at;        // 48  nanoseconds of the steady clock
};
static_assert(sizeof(raw_source) == 56 and wire_type<raw_source>);

[[nodiscard]] auth::hmac_sha256 keyed_by(secret_random_source& random) noexcept {
    auth::secret_bytes<32> key;
    random.fill(key.mutable_view().span());
    return auth::hmac_sha256(key.view());
}

using std::chrono::nanoseconds;

[[nodiscard]] le64 encoded(clock_source::steady_time when) noexcept {
    return le64(
        static_cast<std::uint64_t>(std::chrono::duration_cast<nanoseconds>(when.time_since_epoch()).count()));
}
[[nodiscard]] clock_source::steady_time decoded(le64 when) noexcept {
    return clock_source::steady_time(nanoseconds(static_cast<std::int64_t>(when.value())));
}

}  // namespace

offload_tokens::offload_tokens(secret_random_source& random) noexcept : code_(keyed_by(random)) {}

wire::offload_token offload_tokens::make(const offload_source& of) const noexcept {
    const raw_source raw{.file = of.file,
                         .offset = le64(of.offset),
                         .length = le64(of.length),
                         .changes = le64(of.changes),
                         .modified = le64(of.modified),
                         .ends_at = encoded(of.ends_at)};
    const bytes_view bytes = std::as_bytes(std::span(&raw, 1));
    const auth::secret_bytes<32> code = code_.code(std::span(&bytes, 1));
    wire::offload_token token{.type = token_type};
    static_assert(sizeof raw + 32 <= sizeof token.id);
    std::ranges::copy(bytes, token.id.begin());
    std::ranges::copy(code.view(), token.id.begin() + sizeof raw);
    return token;
}

std::optional<offload_source> offload_tokens::read(const wire::offload_token& token,
                                                   clock_source::steady_time now) const noexcept {
    const auto raw = bytes_view(token.id).take<raw_source>();
    ENSURE(raw.has_value(), "a source fits into a token");
    const offload_source of{.file = raw->file,
                            .offset = raw->offset.value(),
                            .length = raw->length.value(),
                            .changes = raw->changes.value(),
                            .modified = raw->modified.value(),
                            .ends_at = decoded(raw->ends_at)};
    const wire::offload_token ours = make(of);
    if (token.type != ours.type or not auth::equal_in_constant_time(token.id, ours.id)) return std::nullopt;
    if (now >= of.ends_at) return std::nullopt;
    return of;
}

}  // namespace sluice::smb::server
