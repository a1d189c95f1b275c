// Self-relative security descriptors: every accepted one is equal after encoding and
// decoding. An access check divides the requested rights into granted and denied ones, and
// agrees with MAXIMUM_ALLOWED.

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/smb/wire/security/access_check.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

void check(const security_descriptor& descriptor) {
    std::vector<sid> token = {sid_everyone};
    if (descriptor.dacl and !descriptor.dacl->entries.empty())
        token.push_back(descriptor.dacl->entries.back().who);
    const access_mask most = access_check(descriptor, token, access_mask::maximum_allowed).granted;
    for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
        const auto asked = access_mask(bit);
        if (asked == access_mask::maximum_allowed) continue;
        const access_decision decision = access_check(descriptor, token, asked);
        const access_mask meant = mapped_for_files(asked);
        ENSURE((decision.granted | decision.denied) == meant and !has_any(decision.granted, decision.denied));
        ENSURE(decision.granted == (meant & most));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view input(reinterpret_cast<const std::byte*>(data), size);
    auto descriptor = decode_security_descriptor(input);
    if (!descriptor) return 0;
    // Parts may share bytes in the input; encoded, each has its own bytes.
    std::vector<std::byte> room(2 * size + 1024);
    byte_writer writer{mutable_bytes(room)};
    ENSURE(encode(writer, *descriptor).has_value());
    const auto bytes = writer.finish();
    ENSURE(bytes.has_value());
    const auto again = decode_security_descriptor(*bytes);
    ENSURE(again.has_value() and *again == *descriptor);
    for (const auto* who : {&descriptor->owner, &descriptor->group})
        if (*who) ENSURE(sid_of(text_of(**who)) == **who);
    check(*descriptor);
    if (descriptor->dacl) {
        make_canonical(*descriptor->dacl);
        ENSURE(is_canonical(*descriptor->dacl));
    }
    return 0;
}
