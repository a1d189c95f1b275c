#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"

#include <cstddef>
#include <limits>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct chunks_head_wire {
    resume_key source;  //  0
    le32 count;         // 24
    le32 reserved;      // 28
};
static_assert(sizeof(chunks_head_wire) == 32);

struct chunk_wire {
    le64 source_offset;  //  0
    le64 target_offset;  //  8
    le32 length;         // 16
    le32 reserved;       // 20
};
static_assert(sizeof(chunk_wire) == 24);

struct chunks_reply_wire {
    le32 chunks;       // 0
    le32 chunk_bytes;  // 4
    le32 total_bytes;  // 8
};
static_assert(sizeof(chunks_reply_wire) == 12);

struct extents_wire {
    file_id source;      //  0
    le64 source_offset;  // 16
    le64 target_offset;  // 24
    le64 byte_count;     // 32
};
static_assert(sizeof(extents_wire) == 40 and offsetof(extents_wire, byte_count) == 32);

struct extents_ex_wire {
    le64 structure_size;  //  0  48
    extents_wire range;   //  8
    le32 flags;           // 48
    le32 reserved;        // 52
};
static_assert(sizeof(extents_ex_wire) == 56 and offsetof(extents_ex_wire, flags) == 48);
// clang-format on

// As defined by the specification, without flags.
constexpr std::uint64_t extents_ex_structure_size = 48;

extents_wire wire_of(const duplicate_extents_request& request) noexcept {
    return {.source = request.source,
            .source_offset = le64(request.source_offset),
            .target_offset = le64(request.target_offset),
            .byte_count = le64(request.byte_count)};
}

decoded<duplicate_extents_request> request_of(const extents_wire& wire) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    for (const le64 number : {wire.source_offset, wire.target_offset, wire.byte_count})
        if (number.value() > most) return std::unexpected(decode_error::bad_value);
    return duplicate_extents_request{.source = wire.source,
                                     .source_offset = wire.source_offset.value(),
                                     .target_offset = wire.target_offset.value(),
                                     .byte_count = wire.byte_count.value()};
}

}  // namespace

void encode_resume_key(byte_writer& writer, const resume_key& key) noexcept {
    writer.put(key);
    writer.put(le32());  // length of a context, which is always absent
    writer.put(le32());  // four bytes of context anyway: clients expect 32 in total
}

decoded<resume_key> decode_resume_key(bytes_view bytes) noexcept {
    const auto key = bytes.take<resume_key>();
    if (!key) return std::unexpected(decode_error::truncated);
    return *key;
}

void encode(byte_writer& writer, const copy_chunk_request& request) noexcept {
    writer.put(chunks_head_wire{.source = request.source,
                                .count = le32(static_cast<std::uint32_t>(request.chunks.size())),
                                .reserved = {}});
    for (const copy_chunk& chunk : request.chunks)
        writer.put(chunk_wire{.source_offset = le64(chunk.source_offset),
                              .target_offset = le64(chunk.target_offset),
                              .length = le32(chunk.length),
                              .reserved = {}});
}

decoded<copy_chunk_request> decode_copy_chunk_request(bytes_view bytes,
                                                      const copy_chunk_limits& limits) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<chunks_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->count.value() > limits.chunks_max) return std::unexpected(decode_error::too_many);
    copy_chunk_request request{.source = head->source};
    for (std::uint32_t left = head->count.value(); left != 0; --left) {
        const auto chunk = reader.take<chunk_wire>();
        if (!chunk) return std::unexpected(decode_error::truncated);
        request.chunks.push_back({.source_offset = chunk->source_offset.value(),
                                  .target_offset = chunk->target_offset.value(),
                                  .length = chunk->length.value()});
    }
    return request;
}

void encode(byte_writer& writer, const copy_chunk_response& response) noexcept {
    writer.put(chunks_reply_wire{.chunks = le32(response.chunks_written),
                                 .chunk_bytes = le32(response.chunk_bytes_written),
                                 .total_bytes = le32(response.total_bytes_written)});
}

decoded<copy_chunk_response> decode_copy_chunk_response(bytes_view bytes) noexcept {
    const auto wire = bytes.take<chunks_reply_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return copy_chunk_response{.chunks_written = wire->chunks.value(),
                               .chunk_bytes_written = wire->chunk_bytes.value(),
                               .total_bytes_written = wire->total_bytes.value()};
}

void encode(byte_writer& writer, const duplicate_extents_request& request) noexcept {
    writer.put(wire_of(request));
}

decoded<duplicate_extents_request> decode_duplicate_extents_request(bytes_view bytes) noexcept {
    const auto wire = bytes.take<extents_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return request_of(*wire);
}

void encode(byte_writer& writer, const duplicate_extents_ex_request& request) noexcept {
    writer.put(extents_ex_wire{.structure_size = le64(extents_ex_structure_size),
                               .range = wire_of(request.range),
                               .flags = le32(request.flags),
                               .reserved = {}});
}

decoded<duplicate_extents_ex_request> decode_duplicate_extents_ex_request(bytes_view bytes) noexcept {
    const auto wire = bytes.take<extents_ex_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    if (wire->structure_size.value() != extents_ex_structure_size)
        return std::unexpected(decode_error::bad_structure_size);
    const auto range = request_of(wire->range);
    if (!range) return std::unexpected(range.error());
    return duplicate_extents_ex_request{.range = *range, .flags = wire->flags.value()};
}

}  // namespace sluice::smb::wire
