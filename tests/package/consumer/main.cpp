// Uses a little of every installed component: building it shows whether the package is complete.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "sluice/base/error.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

int main() {
    using namespace sluice;
    if (error(ENOENT, "open").message().empty()) return 1;

    fat::memory_device image(1024);
    if (fat::read_geometry(image)) return 5;

    auto pipe = io::pipe_handle::anonymous();
    if (!pipe) return 2;
    const std::string_view sent = "hello";
    if (!pipe->writer.write({.buffers = std::as_bytes(std::span(sent))})) return 3;
    std::array<std::byte, 16> room{};
    const auto received = pipe->reader.read(io::io_request<io::bytes_type>{room});
    return received.has_value() and received.bytes_transferred() == sent.size() ? 0 : 4;
}
