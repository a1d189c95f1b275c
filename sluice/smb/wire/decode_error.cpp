#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::wire {

std::string_view name_of(decode_error error) noexcept {
    switch (error) {
        case decode_error::truncated:
            return "truncated";
        case decode_error::bad_protocol_id:
            return "bad_protocol_id";
        case decode_error::bad_structure_size:
            return "bad_structure_size";
        case decode_error::range_outside_message:
            return "range_outside_message";
        case decode_error::misaligned:
            return "misaligned";
        case decode_error::bad_chain:
            return "bad_chain";
        case decode_error::too_long:
            return "too_long";
        case decode_error::too_many:
            return "too_many";
        case decode_error::missing:
            return "missing";
        case decode_error::duplicate:
            return "duplicate";
        case decode_error::bad_value:
            return "bad_value";
        case decode_error::bad_text:
            return "bad_text";
        case decode_error::unsupported:
            return "unsupported";
    }
    return "?";
}

}  // namespace sluice::smb::wire
