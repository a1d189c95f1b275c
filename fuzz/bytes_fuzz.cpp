// Slices, readers and writers against a naive model: a copy of the bytes and 128-bit arithmetic, in
// which no sum of two 64-bit numbers wraps. The input is a script: one byte for the size of the
// buffer, the buffer, then steps of an operation and two numbers, 17 bytes each.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"

namespace {

using namespace sluice;
__extension__ using wide = unsigned __int128;

struct step {
    le8 operation;
    le64 a;
    le64 b;
};
static_assert(sizeof(step) == 17);

// The expected behaviour of the operations, on vectors.
struct model {
    std::vector<std::byte> bytes;
    std::size_t read = 0;
    std::vector<std::byte> written;
    bool overflowed = false;

    [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t length) const {
        return wide(offset) + length <= bytes.size();
    }
    [[nodiscard]] std::size_t padding(std::size_t position, std::size_t alignment) const {
        return (alignment - position % alignment) % alignment;
    }
    void write(const std::vector<std::byte>& more) {
        overflowed = overflowed or wide(written.size()) + more.size() > bytes.size();
        if (!overflowed) written.insert(written.end(), more.begin(), more.end());
    }
};

bool same(bytes_view found, const std::byte* expected, std::size_t size) {
    return std::equal(found.begin(), found.end(), expected, expected + size);
}

void check_slices(const model& expected, std::uint64_t offset, std::uint64_t length) {
    const bytes_view all = expected.bytes;
    const auto part = all.slice({.offset = offset, .length = length});
    ENSURE(part.has_value() == expected.holds(offset, length));
    if (part) ENSURE(same(*part, expected.bytes.data() + offset, length));
    ENSURE(all.first(length).has_value() == expected.holds(0, length));
    ENSURE(all.from(offset).has_value() == expected.holds(offset, 0));
    const auto field = all.take_at<be32>(offset);
    ENSURE(field.has_value() == expected.holds(offset, 4));
    if (field) ENSURE(same(bytes_of(*field), expected.bytes.data() + offset, 4));

    const auto sum = checked_add(offset, length);
    ENSURE(sum ? *sum == wide(offset) + length : (wide(offset) + length) >> 64 != 0);
    const auto product = checked_mul(offset, length);
    ENSURE(product ? *product == wide(offset) * length : (wide(offset) * length) >> 64 != 0);
}

void check_read(byte_reader& reader, model& expected, unsigned operation, std::uint64_t length) {
    const std::byte* const next = expected.bytes.data() + expected.read;
    std::size_t consumed = 0;
    if (operation == 0) {
        const bool fits = expected.holds(expected.read, length);
        ENSURE(reader.skip(length) == fits);
        consumed = fits ? length : 0;
    } else if (operation == 1) {
        const auto taken = reader.take_bytes(length);
        ENSURE(taken.has_value() == expected.holds(expected.read, length));
        if (taken) ENSURE(same(*taken, next, length));
        consumed = taken ? length : 0;
    } else if (operation == 2) {
        const auto taken = reader.take<le64>();
        ENSURE(taken.has_value() == expected.holds(expected.read, 8));
        if (taken) ENSURE(same(bytes_of(*taken), next, 8));
        consumed = taken ? 8 : 0;
    } else {
        const std::size_t alignment = std::size_t{1} << length % 8;
        const std::size_t padding = expected.padding(expected.read, alignment);
        const bool fits = expected.holds(expected.read, padding);
        ENSURE(reader.align_to(alignment) == fits);
        consumed = fits ? padding : 0;
    }
    expected.read += consumed;
    ENSURE(reader.position() == expected.read and
           reader.remaining() == expected.bytes.size() - expected.read);
}

void check_write(byte_writer& writer, model& expected, unsigned operation, const step& script) {
    const std::uint64_t length = script.a.value();
    if (operation == 0) {
        writer.put(script.b);
        const bytes_view wire = bytes_of(script.b);
        expected.write({wire.begin(), wire.end()});
    } else if (operation == 1) {
        const std::size_t start = std::min<std::size_t>(length, expected.bytes.size());
        const bytes_view tail = *bytes_view(expected.bytes).from(start);
        writer.put_bytes(tail);
        expected.write({tail.begin(), tail.end()});
    } else if (operation == 2) {
        writer.put_zeros(length);
        expected.write(std::vector<std::byte>(std::min<std::uint64_t>(length, expected.bytes.size() + 1)));
    } else if (operation == 3) {
        const std::size_t alignment = std::size_t{1} << length % 8;
        writer.align_to(alignment);
        expected.write(std::vector<std::byte>(expected.padding(expected.written.size(), alignment)));
    } else {
        const auto field = writer.reserve<le64>();
        writer.put(le8(1));
        writer.patch(field, script.b);
        const bytes_view wire = bytes_of(script.b);
        expected.write({wire.begin(), wire.end()});
        expected.write({std::byte{1}});
    }
    ENSURE(writer.overflowed() == expected.overflowed and writer.finish().has_value() != expected.overflowed);
    if (expected.overflowed) return;
    ENSURE(same(*writer.finish(), expected.written.data(), expected.written.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    byte_reader input(bytes_view(reinterpret_cast<const std::byte*>(data), size));
    const auto buffer_size = input.take<le8>();
    if (!buffer_size) return 0;
    const auto buffer = input.take_bytes(buffer_size->value());
    if (!buffer) return 0;

    model expected{.bytes = {buffer->begin(), buffer->end()}, .written = {}};
    std::vector<std::byte> room(expected.bytes.size());
    byte_reader reader{bytes_view(expected.bytes)};
    byte_writer writer{mutable_bytes(room)};
    while (const auto script = input.take<step>()) {
        const unsigned operation = script->operation.value() % 10;
        if (operation == 0) {
            check_slices(expected, script->a.value(), script->b.value());
        } else if (operation <= 4) {
            check_read(reader, expected, operation - 1, script->a.value());
        } else {
            check_write(writer, expected, operation - 5, *script);
        }
    }
    return 0;
}
