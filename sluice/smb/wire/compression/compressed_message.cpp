#include "sluice/smb/wire/compression/compressed_message.hpp"

#include <algorithm>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/compression/pattern_v1.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t compressed_id = 0x424d53fc;  // FC 'S' 'M' 'B'
constexpr std::uint16_t unchained_flags = 0;
constexpr std::uint16_t first_of_chain = 1;

// The header of both kinds; in a chain, the part from `algorithm` on is that of the first element.
struct raw_compression_header {
    le32 protocol_id;       //  0
    le32 segment_bytes;     //  4
    le16 algorithm;         //  8
    le16 flags;             // 10
    le32 offset_or_length;  // 12
};
static_assert(sizeof(raw_compression_header) == 16 and wire_type<raw_compression_header>);

struct raw_chain_element {
    le16 algorithm;  // 0
    le16 flags;      // 2
    le32 length;     // 4  of the bytes that follow
};
static_assert(sizeof(raw_chain_element) == 8 and wire_type<raw_chain_element>);
constexpr std::size_t chain_offset = offsetof(raw_compression_header, algorithm);
static_assert(sizeof(raw_compression_header) == chain_offset + sizeof(raw_chain_element));

[[nodiscard]] bool is_codec(compression_algorithm algorithm) noexcept {
    return algorithm == compression_algorithm::lznt1 or algorithm == compression_algorithm::lz77 or
           algorithm == compression_algorithm::lz77_huffman;
}

[[nodiscard]] decoded<void> decompress(compression_algorithm algorithm, bytes_view in,
                                       mutable_bytes out) noexcept {
    if (algorithm == compression_algorithm::lznt1) return lznt1::decompress(in, out);
    if (algorithm == compression_algorithm::lz77) return lz77::decompress(in, out);
    if (algorithm == compression_algorithm::lz77_huffman) return lz77_huffman::decompress(in, out);
    return std::unexpected(decode_error::unsupported);
}

[[nodiscard]] std::optional<std::size_t> compress(compression_algorithm algorithm, bytes_view in,
                                                  mutable_bytes out, compression_work_area& work) noexcept {
    if (algorithm == compression_algorithm::lznt1) return lznt1::compress(in, out, work.lznt1);
    if (algorithm == compression_algorithm::lz77) return lz77::compress(in, out, work.lz77);
    if (algorithm == compression_algorithm::lz77_huffman)
        return lz77_huffman::compress(in, out, work.lz77_huffman);
    return std::nullopt;
}

// Takes a header whose algorithm and flags were negotiated. A chain has them in its first element.
[[nodiscard]] decoded<raw_compression_header> take_header(bytes_view frame,
                                                          const negotiated_compression& agreed) noexcept {
    const auto raw = frame.take<raw_compression_header>();
    if (not raw) return std::unexpected(decode_error::truncated);
    if (raw->protocol_id.value() != compressed_id) return std::unexpected(decode_error::bad_protocol_id);
    const auto algorithm = compression_algorithm(raw->algorithm.value());
    const bool is_chained = raw->flags.value() == first_of_chain;
    if (is_chained ? not agreed.is_chained() : raw->flags.value() != unchained_flags)
        return std::unexpected(decode_error::bad_value);
    // A run needs a chain; and without compression, an unchained message is not of this kind.
    const bool is_known = is_chained ? algorithm == compression_algorithm::none or agreed.contains(algorithm)
                                     : is_codec(algorithm) and agreed.contains(algorithm);
    if (not is_known) return std::unexpected(decode_error::unsupported);
    return *raw;
}

// Decompresses the data of one element to the front of `room`. Returns how many bytes it gives.
[[nodiscard]] decoded<std::size_t> take_element(compression_algorithm algorithm, bytes_view data,
                                                mutable_bytes room) noexcept {
    if (algorithm == compression_algorithm::none) {
        if (data.size() > room.size()) return std::unexpected(decode_error::too_long);
        if (not data.empty()) std::memcpy(room.data(), data.data(), data.size());
        return data.size();
    }
    byte_reader reader(data);
    if (algorithm == compression_algorithm::pattern_v1) {
        const auto run = reader.take<pattern_payload>();
        if (not run) return std::unexpected(decode_error::truncated);
        const auto bytes = room.first(run->repetitions.value());
        if (not bytes or reader.remaining() != 0) return std::unexpected(decode_error::too_long);
        std::fill(bytes->begin(), bytes->end(), std::byte{run->pattern.value()});
        return bytes->size();
    }
    const auto original_bytes = reader.take<le32>();
    if (not original_bytes) return std::unexpected(decode_error::truncated);
    const auto out = room.first(original_bytes->value());
    if (not out) return std::unexpected(decode_error::too_long);
    const auto done = decompress(algorithm, reader.rest(), *out);
    if (not done) return std::unexpected(done.error());
    return out->size();
}

[[nodiscard]] decoded<void> take_chain(bytes_view chain, const negotiated_compression& agreed,
                                       mutable_bytes message) noexcept {
    byte_reader reader(chain);
    std::size_t written = 0;
    for (bool is_first = true; written != message.size(); is_first = false) {
        const auto raw = reader.take<raw_chain_element>();
        if (not raw) return std::unexpected(decode_error::truncated);
        // Windows leaves arbitrary bits in the flags of later elements.
        if ((raw->flags.value() == first_of_chain) != is_first)
            return std::unexpected(decode_error::bad_chain);
        const auto algorithm = compression_algorithm(raw->algorithm.value());
        if (algorithm != compression_algorithm::none and not agreed.contains(algorithm))
            return std::unexpected(decode_error::unsupported);
        const auto data = reader.take_bytes(raw->length.value());
        if (not data) return std::unexpected(decode_error::truncated);
        const auto given = take_element(algorithm, *data, *message.from(written));
        if (not given) return std::unexpected(given.error());
        if (*given == 0) return std::unexpected(decode_error::bad_chain);
        written += *given;
    }
    if (reader.remaining() != 0) return std::unexpected(decode_error::too_long);
    return {};
}

// Returns whether compression is probably useful: three samples of 4 KiB shrink by an eighth in
// all. Small data are compressed at once. Huffman codes also shrink data without repetitions, which
// the frequencies of bytes show. Their tables would distort small samples.
[[nodiscard]] bool shrinks(compression_algorithm algorithm, bytes_view data,
                           compression_work_area& work) noexcept {
    constexpr std::size_t sample = compression_work_area::sample_bytes;
    constexpr std::size_t samples = 3;
    if (data.size() < 2 * samples * sample) return true;
    const bool has_codes = algorithm == compression_algorithm::lz77_huffman;
    const auto quick = has_codes ? compression_algorithm::lz77 : algorithm;
    std::array<std::uint32_t, 256> counts{};
    std::size_t saved = 0;
    for (std::size_t i = 0; i != samples; ++i) {
        const std::size_t at = (data.size() - sample) / (samples - 1) * i;
        const bytes_view part = *data.slice({.offset = at, .length = sample});
        saved += sample - compress(quick, part, work.sample, work).value_or(sample);
        for (const std::byte each : part)
            ++counts[std::to_integer<std::size_t>(each)];
    }
    if (saved >= samples * sample / 8) return true;
    if (not has_codes) return false;
    // Uniformly distributed bytes have the fewest pairs of equal ones. Twice as many pairs are
    // worth about one bit of each byte.
    std::uint64_t pairs = 0;
    for (const std::uint64_t count : counts)
        pairs += count * count;
    constexpr std::uint64_t all = samples * sample;
    return pairs >= 2 * all * all / counts.size();
}

// The elements of a chain, appended while they fit.
class chain_writer {
public:
    explicit chain_writer(byte_writer& writer) noexcept : writer_(writer) {}

    void put_plain(bytes_view data) noexcept {
        if (data.empty()) return;
        begin(compression_algorithm::none, data.size());
        writer_.put_bytes(data);
    }
    void put_run(bytes_view run) noexcept {
        if (run.empty()) return;
        begin(compression_algorithm::pattern_v1, sizeof(pattern_payload));
        writer_.put(pattern_payload{.pattern = le8(std::to_integer<std::uint8_t>(run[0])),
                                    .reserved1 = {},
                                    .reserved2 = {},
                                    .repetitions = le32(static_cast<std::uint32_t>(run.size()))});
    }
    void put_compressed(compression_algorithm algorithm, bytes_view data, bytes_view compressed) noexcept {
        begin(algorithm, sizeof(le32) + compressed.size());
        writer_.put(le32(static_cast<std::uint32_t>(data.size())));
        writer_.put_bytes(compressed);
    }

private:
    void begin(compression_algorithm algorithm, std::size_t length) noexcept {
        writer_.put(raw_chain_element{.algorithm = le16(static_cast<std::uint16_t>(algorithm)),
                                      .flags = le16(is_first_ ? first_of_chain : unchained_flags),
                                      .length = le32(static_cast<std::uint32_t>(length))});
        is_first_ = false;
    }
    byte_writer& writer_;
    bool is_first_ = true;
};

[[nodiscard]] std::optional<std::size_t> write_chain(const uncompressed_message& message,
                                                     const negotiated_compression& agreed, mutable_bytes out,
                                                     compression_work_area& work) noexcept {
    byte_writer writer(out);
    writer.put(le32(compressed_id));
    writer.put(le32(static_cast<std::uint32_t>(message.head.size() + message.data.size())));
    chain_writer chain(writer);
    chain.put_plain(message.head);
    const bool finds_runs = agreed.contains(compression_algorithm::pattern_v1);
    const byte_runs runs = finds_runs ? runs_of(message.data) : byte_runs{};
    const std::size_t inner_bytes = message.data.size() - runs.front - runs.back;
    const bytes_view inner = *message.data.slice({.offset = runs.front, .length = inner_bytes});
    chain.put_run(*message.data.first(runs.front));
    const compression_algorithm algorithm = agreed.preferred();
    constexpr std::size_t before = sizeof(raw_chain_element) + sizeof(le32);
    std::optional<std::size_t> size;
    const auto room = out.from(writer.position() + before);
    if (room and not inner.empty() and algorithm != compression_algorithm::none and
        shrinks(algorithm, inner, work)) {
        const std::size_t useful = std::min(room->size(), inner.size() - 1);
        size = compress(algorithm, inner, *room->first(useful), work);
        if (size) chain.put_compressed(algorithm, inner, *room->first(*size));
    }
    if (not size) {
        if (runs.front + runs.back == 0) return std::nullopt;
        chain.put_plain(inner);
    }
    chain.put_run(*message.data.from(message.data.size() - runs.back));
    const auto written = writer.finish();
    if (not written) return std::nullopt;
    return written->size();
}

[[nodiscard]] std::optional<std::size_t> write_unchained(const uncompressed_message& message,
                                                         const negotiated_compression& agreed,
                                                         mutable_bytes out,
                                                         compression_work_area& work) noexcept {
    const compression_algorithm algorithm = agreed.preferred();
    if (algorithm == compression_algorithm::none) return std::nullopt;
    byte_writer writer(out);
    writer.put(
        raw_compression_header{.protocol_id = le32(compressed_id),
                               .segment_bytes = le32(static_cast<std::uint32_t>(message.data.size())),
                               .algorithm = le16(static_cast<std::uint16_t>(algorithm)),
                               .flags = le16(unchained_flags),
                               .offset_or_length = le32(static_cast<std::uint32_t>(message.head.size()))});
    writer.put_bytes(message.head);
    if (writer.overflowed() or not shrinks(algorithm, message.data, work)) return std::nullopt;
    const auto size = compress(algorithm, message.data, *out.from(writer.position()), work);
    if (not size) return std::nullopt;
    return writer.position() + *size;
}

}  // namespace

negotiated_compression negotiated_compression::choose(const compression_capabilities& offered) noexcept {
    negotiated_compression chosen;
    for (std::size_t i = 0; i != offered.algorithms.size(); ++i) {
        const compression_algorithm one = offered.algorithms[i];
        const bool is_supported = is_codec(one) or one == compression_algorithm::pattern_v1;
        if (not is_supported or chosen.contains(one)) continue;
        ENSURE(chosen.count_ < chosen.codes_.size(), "there is room for each algorithm once");
        chosen.codes_[chosen.count_++] = le16(static_cast<std::uint16_t>(one));
    }
    chosen.is_chained_ = chosen.is_on() and (offered.flags & compression_chained) != 0;
    return chosen;
}

bool negotiated_compression::contains(compression_algorithm algorithm) const noexcept {
    const auto end = codes_.begin() + static_cast<std::ptrdiff_t>(count_);
    return std::find(codes_.begin(), end, le16(static_cast<std::uint16_t>(algorithm))) != end;
}

compression_algorithm negotiated_compression::preferred() const noexcept {
    for (std::size_t i = 0; i != count_; ++i) {
        const auto one = compression_algorithm(codes_[i].value());
        if (is_codec(one)) return one;
    }
    return compression_algorithm::none;
}

compression_capabilities negotiated_compression::capabilities() const noexcept {
    const std::size_t listed = std::max(count_, std::size_t{1});
    return {.flags = is_chained_ ? compression_chained : 0,
            .algorithms = code_list<compression_algorithm>(std::span(codes_).first(listed))};
}

decoded<std::size_t> decompressed_bytes(bytes_view frame, const negotiated_compression& agreed,
                                        const compression_limits& limits) noexcept {
    const auto header = take_header(frame, agreed);
    if (not header) return std::unexpected(header.error());
    const std::uint64_t segment_bytes = header->segment_bytes.value();
    if (segment_bytes > limits.segment_bytes_max) return std::unexpected(decode_error::too_long);
    const bool is_chained = header->flags.value() == first_of_chain;
    const std::uint64_t offset = is_chained ? 0 : header->offset_or_length.value();
    if (offset > frame.size() - sizeof(raw_compression_header))
        return std::unexpected(decode_error::truncated);
    const std::uint64_t message_bytes = offset + segment_bytes;  // neither is more than 32 bits
    if (message_bytes > limits.message_bytes_max) return std::unexpected(decode_error::too_long);
    return static_cast<std::size_t>(message_bytes);
}

decoded<void> decompress_message(bytes_view frame, const negotiated_compression& agreed,
                                 mutable_bytes message) noexcept {
    const auto header = take_header(frame, agreed);
    if (not header) return std::unexpected(header.error());
    if (header->flags.value() == first_of_chain) {
        if (message.size() != header->segment_bytes.value()) return std::unexpected(decode_error::bad_value);
        return take_chain(*frame.from(chain_offset), agreed, message);
    }
    byte_reader reader(*frame.from(sizeof(raw_compression_header)));
    const auto plain = reader.take_bytes(header->offset_or_length.value());
    if (not plain) return std::unexpected(decode_error::truncated);
    const auto segment = message.from(plain->size());
    if (not segment or segment->size() != header->segment_bytes.value())
        return std::unexpected(decode_error::bad_value);
    if (not plain->empty()) std::memcpy(message.data(), plain->data(), plain->size());
    return decompress(compression_algorithm(header->algorithm.value()), reader.rest(), *segment);
}

std::optional<std::size_t> compress_message(const uncompressed_message& message,
                                            const negotiated_compression& agreed, mutable_bytes out,
                                            compression_work_area& work) noexcept {
    ENSURE(agreed.is_on(), "a message is compressed after an agreement");
    if (message.data.empty()) return std::nullopt;
    return agreed.is_chained() ? write_chain(message, agreed, out, work)
                               : write_unchained(message, agreed, out, work);
}

}  // namespace sluice::smb::wire
