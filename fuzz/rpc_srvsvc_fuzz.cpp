// The calls of srvsvc with arbitrary arguments, in any order.

#include "fuzz/rpc_calls.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    fuzzing::execute_rpc_calls(smb::wire::rpc_service::srvsvc,
                               bytes_view(reinterpret_cast<const std::byte*>(data), size));
    return 0;
}
