// The documents that `sluice status` reads and shows, and documents that contain any text.

#include <string>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/base/json_string.hpp"
#include "sluice/cli/status/json_value.hpp"
#include "sluice/cli/status/status_text.hpp"

using namespace sluice;
using namespace sluice::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto document = json_value::parse(text)) (void)status_text(*document);

    std::string written;
    append_json_string(written, text);
    const auto read = json_value::parse(written);
    ENSURE(read.has_value(), "a written string can be read");
    std::string again;
    append_json_string(again, read->text());
    ENSURE(again == written);
    return 0;
}
