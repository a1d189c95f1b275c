#include "sluice/smb/auth/cipher/nonce_sequence.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth {

nonce_sequence::nonce_sequence(const options& how) noexcept : left_(how.count_max) {
    ENSURE(how.lane < limits::sealers_per_key_max);
    nonce_.counter = le64(how.start);
    for (std::size_t i = 0; i < nonce_.lane.size(); ++i)
        nonce_.lane[i] = static_cast<std::uint8_t>(how.lane >> (8 * i) & 0xff);
}

std::optional<transform_nonce> nonce_sequence::next() noexcept {
    if (left_ == 0) return std::nullopt;
    --left_;
    const transform_nonce given = nonce_;
    nonce_.counter = le64(nonce_.counter.value() + 1);
    return given;
}

}  // namespace sluice::smb::auth
