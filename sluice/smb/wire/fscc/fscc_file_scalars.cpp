#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

#include <limits>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// Sizes and positions are signed 64-bit numbers in Windows file systems.
constexpr std::uint64_t size_max = std::numeric_limits<std::int64_t>::max();

// Decodes the number at the front and constructs a `T` from it.
template <class T, class Wire, class Number = typename Wire::value_type>
decoded<T> number_at_front(bytes_view bytes) noexcept {
    const auto wire = bytes.take<Wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return T{static_cast<Number>(wire->value())};
}

template <class T>
decoded<T> size_at_front(bytes_view bytes) noexcept {
    const auto wire = bytes.take<le64>();
    if (!wire) return std::unexpected(decode_error::truncated);
    if (wire->value() > size_max) return std::unexpected(decode_error::bad_value);
    return T{wire->value()};
}

struct id_wire {
    le64 volume_serial;           // 0
    file_number_128 file_number;  // 8
};
static_assert(sizeof(id_wire) == 24);

}  // namespace

void encode(byte_writer& writer, const internal_information& information) noexcept {
    writer.put(le64(information.file_number));
}
decoded<internal_information> decode_internal_information(bytes_view bytes) noexcept {
    return number_at_front<internal_information, le64>(bytes);
}

void encode(byte_writer& writer, const ea_information& information) noexcept {
    writer.put(le32(information.ea_bytes));
}
decoded<ea_information> decode_ea_information(bytes_view bytes) noexcept {
    return number_at_front<ea_information, le32>(bytes);
}

void encode(byte_writer& writer, const access_information& information) noexcept {
    writer.put(le32(bits_of(information.granted)));
}
decoded<access_information> decode_access_information(bytes_view bytes) noexcept {
    return number_at_front<access_information, le32, access_mask>(bytes);
}

void encode(byte_writer& writer, const position_information& information) noexcept {
    writer.put(le64(information.offset));
}
decoded<position_information> decode_position_information(bytes_view bytes) noexcept {
    return size_at_front<position_information>(bytes);
}

void encode(byte_writer& writer, const mode_information& information) noexcept {
    writer.put(le32(information.mode));
}
decoded<mode_information> decode_mode_information(bytes_view bytes) noexcept {
    return number_at_front<mode_information, le32>(bytes);
}

void encode(byte_writer& writer, const alignment_information& information) noexcept {
    writer.put(le32(information.requirement));
}
decoded<alignment_information> decode_alignment_information(bytes_view bytes) noexcept {
    return number_at_front<alignment_information, le32>(bytes);
}

void encode(byte_writer& writer, const allocation_information& information) noexcept {
    writer.put(le64(information.allocation_bytes));
}
decoded<allocation_information> decode_allocation_information(bytes_view bytes) noexcept {
    return size_at_front<allocation_information>(bytes);
}

void encode(byte_writer& writer, const end_of_file_information& information) noexcept {
    writer.put(le64(information.end_of_file));
}
decoded<end_of_file_information> decode_end_of_file_information(bytes_view bytes) noexcept {
    return size_at_front<end_of_file_information>(bytes);
}

void encode(byte_writer& writer, const valid_data_length_information& information) noexcept {
    writer.put(le64(information.valid_bytes));
}
decoded<valid_data_length_information> decode_valid_data_length_information(bytes_view bytes) noexcept {
    return size_at_front<valid_data_length_information>(bytes);
}

void encode(byte_writer& writer, const disposition_information& information) noexcept {
    writer.put(le8(information.delete_on_close));
}
decoded<disposition_information> decode_disposition_information(bytes_view bytes) noexcept {
    return number_at_front<disposition_information, le8, bool>(bytes);
}

void encode(byte_writer& writer, const disposition_information_ex& information) noexcept {
    writer.put(le32(bits_of(information.flags)));
}
decoded<disposition_information_ex> decode_disposition_information_ex(bytes_view bytes) noexcept {
    return number_at_front<disposition_information_ex, le32, disposition_flags>(bytes);
}

void encode(byte_writer& writer, const id_information& information) noexcept {
    writer.put(
        id_wire{.volume_serial = le64(information.volume_serial), .file_number = information.file_number});
}
decoded<id_information> decode_id_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<id_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return id_information{.volume_serial = wire->volume_serial.value(), .file_number = wire->file_number};
}

}  // namespace sluice::smb::wire
