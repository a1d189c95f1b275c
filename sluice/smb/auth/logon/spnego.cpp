#include "sluice/smb/auth/logon/spnego.hpp"

#include <algorithm>
#include <string_view>

#include "sluice/base/endian.hpp"
#include "sluice/smb/auth/logon/der.hpp"

namespace sluice::smb::auth::spnego {
namespace {

using der::tag;

// Encoded object identifiers.
constexpr std::string_view spnego_oid("\x2b\x06\x01\x05\x05\x02", 6);
struct named_oid {
    mechanism which;
    std::string_view oid;
};
constexpr named_oid mechanism_oids[] = {
    {mechanism::ntlm, {"\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a", 10}},
    {mechanism::kerberos, {"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", 9}},
    {mechanism::kerberos_as_by_2k, {"\x2a\x86\x48\x82\xf7\x12\x01\x02\x02", 9}},
    {mechanism::negoex, {"\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x1e", 10}},
};

// [MS-SPNG] 2.2.1: the placeholder for a server's name.
constexpr std::string_view no_hint = "not_defined_in_RFC4178@please_ignore";
constexpr tag general_string{0x1b};

bytes_view bytes_of_text(std::string_view text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool is_oid(bytes_view found, std::string_view oid) noexcept {
    return std::ranges::equal(found, bytes_of_text(oid));
}

mechanism mechanism_of(bytes_view oid) noexcept {
    const auto* const found =
        std::ranges::find_if(mechanism_oids, [oid](const named_oid& each) { return is_oid(oid, each.oid); });
    return found == std::end(mechanism_oids) ? mechanism::unknown : found->which;
}

std::vector<std::byte> encode_mechanism(mechanism which) {
    const auto* const found =
        std::ranges::find_if(mechanism_oids, [which](const named_oid& each) { return each.which == which; });
    ENSURE(found != std::end(mechanism_oids), "mechanism without an object identifier");
    return der::make(tag::object_identifier, {bytes_of_text(found->oid)});
}

std::optional<mechanism_list> decode_mechanism_list(bytes_view list_der) noexcept {
    const auto list = der::only(list_der, tag::sequence);
    if (!list) return std::nullopt;
    mechanism_list mechanisms;
    for (der::reader oids(*list); !oids.at_end();) {
        const auto oid = oids.take(tag::object_identifier);
        if (!oid or !mechanisms.add(mechanism_of(*oid))) return std::nullopt;
    }
    if (mechanisms.all().empty()) return std::nullopt;
    return mechanisms;
}

// Consumes an optional member [number] OCTET STRING. Returns false if it is present and malformed.
bool take_octets(der::reader& members, tag number, std::optional<bytes_view>& octets) noexcept {
    if (!members.next_is(number)) return true;
    const auto member = members.take(number);
    if (!member) return false;
    octets = der::only(*member, tag::octet_string);
    return octets.has_value();
}

// Consumes the byte of an optional [number] ENUMERATED.
bool take_state(der::reader& members, std::optional<state>& found) noexcept {
    if (!members.next_is(tag::context_0)) return true;
    const auto member = members.take(tag::context_0);
    const auto value = member ? der::only(*member, tag::enumerated) : std::nullopt;
    if (!value or value->size() != 1) return false;
    const std::uint8_t number = value->take<le8>()->value();
    if (number > static_cast<std::uint8_t>(state::request_mic)) return false;
    found = static_cast<state>(number);
    return true;
}

// Returns the SEQUENCE within the GSS-API frame of a first token.
std::optional<bytes_view> init_members(bytes_view token) noexcept {
    const auto framed = der::only(token, tag::application_0);
    if (!framed) return std::nullopt;
    der::reader inner(*framed);
    const auto oid = inner.take(tag::object_identifier);
    if (!oid or !is_oid(*oid, spnego_oid)) return std::nullopt;
    const auto choice = inner.take(tag::context_0);
    if (!choice or !inner.at_end()) return std::nullopt;
    return der::only(*choice, tag::sequence);
}

std::vector<std::byte> frame_init(std::initializer_list<bytes_view> members) {
    const auto sequence = der::make(tag::sequence, members);
    const auto choice = der::make(tag::context_0, {sequence});
    const auto oid = der::make(tag::object_identifier, {bytes_of_text(spnego_oid)});
    return der::make(tag::application_0, {oid, choice});
}

// Encodes an optional [number] OCTET STRING, or nothing.
std::vector<std::byte> encode_octets(tag number, const std::optional<bytes_view>& octets) {
    if (!octets) return {};
    return der::make(number, {der::make(tag::octet_string, {*octets})});
}

}  // namespace

bool mechanism_list::add(mechanism which) noexcept {
    if (size_ == which_.size()) return false;
    which_[size_++] = which;
    return true;
}

bool mechanism_list::contains(mechanism which) const noexcept {
    return std::ranges::find(all(), which) != all().end();
}

bool is_init(bytes_view token) noexcept {
    return der::reader(token).next_is(tag::application_0);
}

bool is_resp(bytes_view token) noexcept {
    return der::reader(token).next_is(tag::context_1);
}

std::optional<neg_token_init> decode_init(bytes_view token) noexcept {
    const auto sequence = init_members(token);
    if (!sequence) return std::nullopt;
    der::reader members(*sequence);
    const auto list = members.take(tag::context_0);
    const auto mechanisms = list ? decode_mechanism_list(*list) : std::nullopt;
    if (!mechanisms) return std::nullopt;

    neg_token_init decoded{
        .mechanisms = *mechanisms, .mechanism_list_der = *list, .mech_token = {}, .mech_list_mic = {}};
    // reqFlags.
    if (members.next_is(tag::context_1) and !members.take(tag::context_1)) return std::nullopt;
    if (!take_octets(members, tag::context_2, decoded.mech_token)) return std::nullopt;
    // [3] is the MIC in a NegTokenInit. In a NegTokenInit2 it is the hints, and the MIC follows.
    if (members.next_is(tag::context_3)) {
        const auto member = members.take(tag::context_3);
        if (!member) return std::nullopt;
        if (const auto mic = der::only(*member, tag::octet_string)) {
            decoded.mech_list_mic = mic;
        } else if (!der::only(*member, tag::sequence)) {
            return std::nullopt;
        }
    }
    if (!take_octets(members, tag::context_4, decoded.mech_list_mic)) return std::nullopt;
    if (!members.at_end()) return std::nullopt;
    return decoded;
}

std::optional<neg_token_resp> decode_resp(bytes_view token) noexcept {
    const auto choice = der::only(token, tag::context_1);
    const auto sequence = choice ? der::only(*choice, tag::sequence) : std::nullopt;
    if (!sequence) return std::nullopt;
    der::reader members(*sequence);
    neg_token_resp decoded;
    if (!take_state(members, decoded.negotiation_state)) return std::nullopt;
    if (members.next_is(tag::context_1)) {
        const auto member = members.take(tag::context_1);
        const auto oid = member ? der::only(*member, tag::object_identifier) : std::nullopt;
        if (!oid) return std::nullopt;
        decoded.supported_mechanism = mechanism_of(*oid);
    }
    if (!take_octets(members, tag::context_2, decoded.response_token)) return std::nullopt;
    if (!take_octets(members, tag::context_3, decoded.mech_list_mic)) return std::nullopt;
    if (!members.at_end()) return std::nullopt;
    return decoded;
}

std::vector<std::byte> encode_mechanism_list(std::span<const mechanism> mechanisms) {
    std::vector<std::byte> oids;
    for (const mechanism each : mechanisms) {
        const auto oid = encode_mechanism(each);
        oids.insert(oids.end(), oid.begin(), oid.end());
    }
    return der::make(tag::sequence, {oids});
}

std::vector<std::byte> encode(const neg_token_init& token) {
    return frame_init({der::make(tag::context_0, {token.mechanism_list_der}),
                       encode_octets(tag::context_2, token.mech_token),
                       encode_octets(tag::context_3, token.mech_list_mic)});
}

std::vector<std::byte> encode(const neg_token_resp& token) {
    std::vector<std::byte> negotiation_state;
    if (token.negotiation_state) {
        const le8 number(static_cast<std::uint8_t>(*token.negotiation_state));
        negotiation_state = der::make(tag::context_0, {der::make(tag::enumerated, {bytes_of(number)})});
    }
    std::vector<std::byte> mechanism_member;
    if (token.supported_mechanism) {
        mechanism_member = der::make(tag::context_1, {encode_mechanism(*token.supported_mechanism)});
    }
    const auto sequence = der::make(tag::sequence, {negotiation_state, mechanism_member,
                                                    encode_octets(tag::context_2, token.response_token),
                                                    encode_octets(tag::context_3, token.mech_list_mic)});
    return der::make(tag::context_1, {sequence});
}

std::vector<std::byte> encode_server_offer(std::span<const mechanism> mechanisms) {
    const auto hint = der::make(tag::context_0, {der::make(general_string, {bytes_of_text(no_hint)})});
    return frame_init({der::make(tag::context_0, {encode_mechanism_list(mechanisms)}),
                       der::make(tag::context_3, {der::make(tag::sequence, {hint})})});
}

}  // namespace sluice::smb::auth::spnego
