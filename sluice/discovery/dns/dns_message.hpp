#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/discovery/dns/dns_name.hpp"

// Messages of DNS (RFC 1035 section 4) with the two bits of multicast DNS (RFC 6762 section 18).

namespace sluice::discovery {

/// Types of records (RFC 1035, 2782, 3596, 4034). A message may contain any other number.
enum class dns_type : std::uint16_t { a = 1, ptr = 12, txt = 16, aaaa = 28, srv = 33, nsec = 47, any = 255 };

inline constexpr std::uint16_t dns_class_in = 1;
inline constexpr std::uint16_t dns_class_any = 255;

struct dns_question {
    dns_name name{};
    dns_type type{};
    std::uint16_t class_code = dns_class_in;  // 15 bits
    bool wants_unicast = false;               // the highest bit of the class

    [[nodiscard]] friend bool operator==(const dns_question&, const dns_question&) noexcept = default;
};

struct dns_record {
    dns_name name{};
    dns_type type{};
    std::uint16_t class_code = dns_class_in;  // 15 bits
    bool flushes_cache = false;               // the highest bit of the class
    std::uint32_t ttl_seconds = 0;
    /// At most 65,535 bytes. Names in the data of PTR, SRV and similar records are not compressed.
    std::string data{};

    [[nodiscard]] friend bool operator==(const dns_record&, const dns_record&) noexcept = default;
};

struct dns_message {
    static constexpr std::uint16_t is_response = 0x8000;
    static constexpr std::uint16_t is_authoritative = 0x0400;
    static constexpr std::uint16_t is_truncated = 0x0200;
    static constexpr std::uint16_t opcode_mask = 0x7800;
    static constexpr std::uint16_t status_mask = 0x000f;

    std::uint16_t id = 0;
    std::uint16_t flags = 0;
    std::vector<dns_question> questions{};
    std::vector<dns_record> answers{};
    std::vector<dns_record> authorities{};
    std::vector<dns_record> additionals{};

    [[nodiscard]] friend bool operator==(const dns_message&, const dns_message&) noexcept = default;
};

enum class dns_error : std::uint8_t {
    too_long,   // more than limits::dns_message_bytes_max
    truncated,  // ends before what it announces
    // A pointer that does not point backwards, an unknown kind of label, or a long name.
    bad_name,
    bad_data,  // data of a known type that is not valid
    too_many,  // more questions or records than the limits
};

/// Decodes a message. Bytes after the last record are ignored, as resolvers do. A pointer of a
/// compressed name must point before the labels that precede it, so a loop is an error.
/// Errors: dns_error. Allocates: the message. Complexity: at most 255 steps for each name.
[[nodiscard]] std::expected<dns_message, dns_error> decode_dns_message(bytes_view bytes);

/// Encodes a message from front to back, within a limit. Sections are added in their order. An
/// entry that does not fit changes nothing. Compresses the owners of records, but no
/// names in data: RFC 2782 forbids it for SRV, and the others are short. Thread safety: none.
/// Allocates: yes.
class dns_writer {
public:
    dns_writer(std::uint16_t id, std::uint16_t flags, std::size_t bytes_max);

    enum class section : std::uint8_t { questions, answers, authorities, additionals };

    /// Return false if the entry does not fit.
    [[nodiscard]] bool add(const dns_question& question);
    [[nodiscard]] bool add(section where, const dns_record& record);

    [[nodiscard]] bool is_empty() const noexcept { return bytes_.size() == header_bytes; }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
    static constexpr std::size_t header_bytes = 12;

    void put16(std::uint16_t number);
    void put_name(const dns_name& name);
    [[nodiscard]] bool finish(section where, std::size_t begin);

    std::string bytes_;
    std::size_t bytes_max_;
    section last_ = section::questions;
    std::vector<std::uint16_t> suffixes_;  // offsets of names and their parents
};

/// Encodes a whole message. Errors: too_long if it needs more than `bytes_max`.
[[nodiscard]] std::expected<std::string, dns_error> encode_dns_message(const dns_message& message,
                                                                       std::size_t bytes_max);

}  // namespace sluice::discovery
