#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"

#include <cstddef>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

struct pipe_wire {
    le32 read_mode;        // 0
    le32 completion_mode;  // 4
};
static_assert(sizeof(pipe_wire) == 8);

// clang-format off
struct pipe_local_wire {
    le32 type;                //  0
    le32 configuration;       //  4
    le32 instances_max;       //  8
    le32 instances;           // 12
    le32 inbound_quota;       // 16
    le32 readable;            // 20
    le32 outbound_quota;      // 24
    le32 writable;            // 28
    le32 state;               // 32
    le32 end;                 // 36
};
static_assert(sizeof(pipe_local_wire) == 40 and offsetof(pipe_local_wire, state) == 32);
// clang-format on

}  // namespace

void encode(byte_writer& writer, const pipe_information& information) noexcept {
    writer.put(pipe_wire{.read_mode = le32(static_cast<std::uint32_t>(information.reads)),
                         .completion_mode = le32(static_cast<std::uint32_t>(information.completion))});
}

decoded<pipe_information> decode_pipe_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<pipe_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    if (wire->read_mode.value() > 1 or wire->completion_mode.value() > 1)
        return std::unexpected(decode_error::bad_value);
    return pipe_information{.reads = pipe_information::read_mode(wire->read_mode.value()),
                            .completion = pipe_information::completion_mode(wire->completion_mode.value())};
}

void encode(byte_writer& writer, const pipe_local_information& information) noexcept {
    writer.put(pipe_local_wire{.type = le32(information.type),
                               .configuration = le32(information.configuration),
                               .instances_max = le32(information.instances_max),
                               .instances = le32(information.instances),
                               .inbound_quota = le32(information.inbound_quota_bytes),
                               .readable = le32(information.readable_bytes),
                               .outbound_quota = le32(information.outbound_quota_bytes),
                               .writable = le32(information.writable_bytes),
                               .state = le32(information.state),
                               .end = le32(information.end)});
}

decoded<pipe_local_information> decode_pipe_local_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<pipe_local_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return pipe_local_information{.type = wire->type.value(),
                                  .configuration = wire->configuration.value(),
                                  .instances_max = wire->instances_max.value(),
                                  .instances = wire->instances.value(),
                                  .inbound_quota_bytes = wire->inbound_quota.value(),
                                  .readable_bytes = wire->readable.value(),
                                  .outbound_quota_bytes = wire->outbound_quota.value(),
                                  .writable_bytes = wire->writable.value(),
                                  .state = wire->state.value(),
                                  .end = wire->end.value()};
}

}  // namespace sluice::smb::wire
