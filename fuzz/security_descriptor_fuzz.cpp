// Self-relative security descriptors: every accepted one is equal after encoding and decoding. An
// access check divides the requested rights into granted and denied ones, and agrees with
// MAXIMUM_ALLOWED. What new files inherit from it, and become if a client gives it, has concrete
// entries.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/smb/wire/security/access_check.hpp"
#include "sluice/smb/wire/security/inheritance.hpp"

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

void check_entries(const std::optional<acl>& list, const security_descriptor& of) {
    if (!list) return;
    for (const ace& entry : list->entries) {
        if (!entry.understood() or has(entry.flags, ace_flags::inherit_only)) continue;
        ENSURE(entry.rights == mapped_for_files(entry.rights));
        // Also those who are given as the owner or the group may have these names.
        ENSURE(entry.who != sid_creator_owner or of.owner == sid_creator_owner or
               of.group == sid_creator_owner);
        ENSURE(entry.who != sid_creator_group or of.owner == sid_creator_group or
               of.group == sid_creator_group);
    }
}

// The descriptor as that of a directory, as given by a client, and as both.
void check_inheritance(const security_descriptor& descriptor) {
    const object_creator creator{.owner = sid_administrators, .group = sid_administrators};
    for (const security_descriptor* parent :
         {&descriptor, static_cast<const security_descriptor*>(nullptr)}) {
        for (const security_descriptor* given :
             {&descriptor, static_cast<const security_descriptor*>(nullptr)}) {
            for (const bool is_container : {false, true}) {
                const security_descriptor made = descriptor_of_new(
                    {.parent = parent, .given = given, .is_container = is_container}, creator);
                ENSURE(made.owner and made.group and has(made.control, descriptor_control::dacl_present));
                check_entries(made.dacl, made);
                check_entries(made.sacl, made);
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view input(reinterpret_cast<const std::byte*>(data), size);
    auto descriptor = decode_security_descriptor(input);
    if (!descriptor) return 0;
    // Parts may share bytes in the input; encoded, each has its own bytes, and that may be too
    // many.
    std::vector<std::byte> room(encoded_bytes(*descriptor));
    byte_writer writer{mutable_bytes(room)};
    const auto written = encode(writer, *descriptor);
    ENSURE(written.has_value() == (room.size() <= security_descriptor_bytes_max));
    if (!written) return 0;
    const auto bytes = writer.finish();
    ENSURE(bytes.has_value() and bytes->size() == room.size());
    const auto again = decode_security_descriptor(*bytes);
    ENSURE(again.has_value() and *again == *descriptor);
    for (const auto* who : {&descriptor->owner, &descriptor->group})
        if (*who) ENSURE(sid_of(text_of(**who)) == **who);
    check(*descriptor);
    check_inheritance(*descriptor);
    if (descriptor->dacl) {
        make_canonical(*descriptor->dacl);
        ENSURE(is_canonical(*descriptor->dacl));
    }
    return 0;
}
