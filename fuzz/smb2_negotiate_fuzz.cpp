// The first bytes of an unauthenticated client: the input is the body of NEGOTIATE after a valid
// header, so that the fuzzer need not find one.

#include "fuzz/wire_round_trip.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    using namespace sluice::smb::wire;
    if (size > fuzzed_bytes_max) return 0;
    std::vector<std::byte> bytes(header_bytes + size);
    byte_writer writer{mutable_bytes(bytes)};
    encode(writer, header{.command = command::negotiate});
    writer.put_bytes({reinterpret_cast<const std::byte*>(data), size});
    const auto message = message_view::of(bytes);
    ENSURE(message.has_value());
    check_round_trip(*message, decode_negotiate);
    check_round_trip(*message, decode_negotiate_reply);
    return 0;
}
