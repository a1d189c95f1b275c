#include "sluice/cli/serve/secret_digest.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {
namespace {

using digest = std::array<std::byte, 32>;
using smb::auth::hmac_sha256;

[[nodiscard]] hmac_sha256 keyed_hash() noexcept {
    smb::auth::secret_bytes<32> key;
    system_random().fill(key.mutable_view());
    return hmac_sha256(key.view());
}

[[nodiscard]] digest digest_of(const hmac_sha256& hash, std::span<const bytes_view> parts) noexcept {
    const auto code = hash.code(parts);
    digest copy{};
    std::ranges::copy(code.view(), copy.begin());
    return copy;
}

}  // namespace

digest secret_digest(std::string_view key, const setting_value& value) {
    static const hmac_sha256 hash = keyed_hash();
    if (without_secrets(key, value) == value) return {};
    digest all{};
    // Each code covers the one before, so that the limits of the texts count.
    const auto add = [&](std::string_view text) {
        const std::array<bytes_view, 2> parts{bytes_view(all), std::as_bytes(std::span(text))};
        all = digest_of(hash, parts);
    };
    if (const auto* const text = std::get_if<std::string>(&value)) add(*text);
    if (const auto* const source = std::get_if<toml_source>(&value)) add(source->text);
    if (const auto* const list = std::get_if<std::vector<std::string>>(&value))
        for (const std::string& each : *list)
            add(each);
    return all;
}

}  // namespace sluice::cli
