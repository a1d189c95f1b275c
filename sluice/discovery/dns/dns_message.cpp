#include "sluice/discovery/dns/dns_message.hpp"

#include <utility>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"

namespace sluice::discovery {

namespace {

constexpr std::uint16_t high_bit = 0x8000;
constexpr unsigned pointer_bits = 0xc0;

struct message_header {
    be16 id;
    be16 flags;
    be16 questions;
    be16 answers;
    be16 authorities;
    be16 additionals;
};
static_assert(sizeof(message_header) == 12 and wire_type<message_header>);

struct record_head {
    be16 type;
    be16 class_code;
    be32 ttl_seconds;
    be16 data_bytes;
};
static_assert(sizeof(record_head) == 10 and wire_type<record_head>);

[[nodiscard]] std::string_view text_of(bytes_view bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class decoder {
public:
    explicit decoder(bytes_view message) noexcept : message_(message) {}

    [[nodiscard]] std::expected<dns_message, dns_error> decode() {
        const auto header = message_.take<message_header>();
        if (not header) return std::unexpected(dns_error::truncated);
        position_ = sizeof(message_header);
        const std::size_t records =
            std::size_t{header->answers.value()} + header->authorities.value() + header->additionals.value();
        if (header->questions.value() > limits::dns_questions_max or records > limits::dns_records_max)
            return std::unexpected(dns_error::too_many);
        dns_message decoded{.id = header->id.value(), .flags = header->flags.value()};
        const bool is_complete = take_questions(header->questions.value(), decoded.questions) and
                                 take_records(header->answers.value(), decoded.answers) and
                                 take_records(header->authorities.value(), decoded.authorities) and
                                 take_records(header->additionals.value(), decoded.additionals);
        if (not is_complete) return std::unexpected(problem_);
        return decoded;
    }

private:
    [[nodiscard]] bool refuse(dns_error why) noexcept {
        problem_ = why;
        return false;
    }

    template <class T>
    [[nodiscard]] bool take(T& into) noexcept {
        const auto taken = message_.take_at<T>(position_);
        if (not taken) return refuse(dns_error::truncated);
        into = *taken;
        position_ += sizeof(T);
        return true;
    }

    // Reads a name at `position`, which advances beyond it. Each pointer must point before all
    // labels read so far, so the loop ends. Many names may share pointers: their number is limited.
    [[nodiscard]] bool take_name(std::size_t& position, dns_name& into) {
        std::size_t at = position;
        std::size_t lowest = position;
        bool is_compressed = false;
        std::size_t pointers = 0;
        for (;;) {
            const auto length = message_.take_at<le8>(at);
            if (not length) return refuse(dns_error::truncated);
            const unsigned size = length->value();
            if ((size & pointer_bits) == pointer_bits) {
                const auto pointer = message_.take_at<be16>(at);
                if (not pointer) return refuse(dns_error::truncated);
                if (not is_compressed) position = at + sizeof(be16);
                is_compressed = true;
                at = pointer->value() & 0x3fffU;
                if (at >= lowest or ++pointers > limits::dns_pointers_max) return refuse(dns_error::bad_name);
                lowest = at;
                continue;
            }
            if ((size & pointer_bits) != 0) return refuse(dns_error::bad_name);
            ++at;
            if (size == 0) break;
            const auto label = message_.slice({.offset = at, .length = size});
            if (not label) return refuse(dns_error::truncated);
            if (not into.append(text_of(*label))) return refuse(dns_error::bad_name);
            at += size;
        }
        if (not is_compressed) position = at;
        return true;
    }

    [[nodiscard]] bool take_questions(std::size_t count, std::vector<dns_question>& into) {
        for (std::size_t i = 0; i != count; ++i) {
            dns_question question;
            be16 type;
            be16 class_code;
            if (not take_name(position_, question.name) or not take(type) or not take(class_code))
                return false;
            question.type = static_cast<dns_type>(type.value());
            question.class_code = class_code.value() & static_cast<std::uint16_t>(~high_bit);
            question.wants_unicast = (class_code.value() & high_bit) != 0;
            into.push_back(std::move(question));
        }
        return true;
    }

    // Returns the number of bytes before a compressed name in data of this type, or -1 if the data
    // has none.
    [[nodiscard]] static int bytes_before_name(std::uint16_t type) noexcept {
        constexpr std::uint16_t ns = 2;
        constexpr std::uint16_t cname = 5;
        constexpr std::uint16_t mx = 15;
        constexpr std::uint16_t dname = 39;
        if (type == mx) return 2;
        if (type == static_cast<std::uint16_t>(dns_type::srv)) return 6;
        const bool is_name =
            type == ns or type == cname or type == dname or type == static_cast<std::uint16_t>(dns_type::ptr);
        return is_name ? 0 : -1;
    }

    [[nodiscard]] bool take_data(const record_head& head, std::string& into) {
        const auto data = message_.slice({.offset = position_, .length = head.data_bytes.value()});
        if (not data) return refuse(dns_error::truncated);
        const std::size_t end = position_ + data->size();
        const int before = bytes_before_name(head.type.value());
        if (before < 0 or data->empty()) {  // without data: only deleted or requested
            into = text_of(*data);
        } else {
            const auto fixed = data->first(static_cast<std::uint64_t>(before));
            if (not fixed) return refuse(dns_error::bad_data);
            std::size_t at = position_ + fixed->size();
            dns_name name;
            if (not take_name(at, name)) return false;
            if (at != end) return refuse(dns_error::bad_data);
            into = std::string(text_of(*fixed)) + name.wire();
        }
        position_ = end;
        return true;
    }

    [[nodiscard]] bool take_records(std::size_t count, std::vector<dns_record>& into) {
        for (std::size_t i = 0; i != count; ++i) {
            dns_record record;
            record_head head;
            if (not take_name(position_, record.name) or not take(head) or not take_data(head, record.data))
                return false;
            record.type = static_cast<dns_type>(head.type.value());
            record.class_code = head.class_code.value() & static_cast<std::uint16_t>(~high_bit);
            record.flushes_cache = (head.class_code.value() & high_bit) != 0;
            record.ttl_seconds = head.ttl_seconds.value();
            into.push_back(std::move(record));
        }
        return true;
    }

    bytes_view message_;
    std::size_t position_ = 0;
    dns_error problem_ = dns_error::truncated;
};

[[nodiscard]] std::uint16_t class_bits(std::uint16_t class_code, bool has_high_bit) noexcept {
    return static_cast<std::uint16_t>(class_code | (has_high_bit ? high_bit : 0));
}

}  // namespace

std::expected<dns_message, dns_error> decode_dns_message(bytes_view bytes) {
    if (bytes.size() > limits::dns_message_bytes_max) return std::unexpected(dns_error::too_long);
    return decoder(bytes).decode();
}

dns_writer::dns_writer(std::uint16_t id, std::uint16_t flags, std::size_t bytes_max) : bytes_max_(bytes_max) {
    ENSURE(bytes_max >= header_bytes and bytes_max <= limits::dns_message_bytes_max);
    put16(id);
    put16(flags);
    bytes_.resize(header_bytes, '\0');
}

void dns_writer::put16(std::uint16_t number) {
    bytes_ += static_cast<char>(number >> 8);
    bytes_ += static_cast<char>(number & 0xff);
}

void dns_writer::put_name(const dns_name& name) {
    std::string_view rest = name.labels();
    while (not rest.empty()) {
        for (const std::uint16_t offset : suffixes_) {
            std::size_t at = offset;
            std::string_view left = rest;
            // Compares label by label, and follows the pointers that this encoder has written.
            while (true) {
                const auto size = static_cast<unsigned char>(bytes_[at]);
                if ((size & pointer_bits) == pointer_bits) {
                    at = (size & ~pointer_bits) << 8 | static_cast<unsigned char>(bytes_[at + 1]);
                    continue;
                }
                if (size == 0 or left.empty()) break;
                const std::string_view label = std::string_view(bytes_).substr(at, size + 1U);
                if (not left.starts_with(label)) break;
                left.remove_prefix(label.size());
                at += label.size();
            }
            if (left.empty() and bytes_[at] == '\0')
                return put16(static_cast<std::uint16_t>(0xc000U | offset));
        }
        // Only complete names may be compared, so the offset is recorded in finish().
        const std::size_t size = static_cast<unsigned char>(rest.front()) + 1U;
        bytes_ += rest.substr(0, size);
        rest.remove_prefix(size);
    }
    bytes_ += '\0';
}

bool dns_writer::finish(section where, std::size_t begin) {
    ENSURE(where >= last_, "sections are added in their order");
    constexpr std::size_t counts_at = 4;
    if (bytes_.size() > bytes_max_) {
        bytes_.resize(begin);
        return false;
    }
    last_ = where;
    const std::size_t at = counts_at + 2 * static_cast<std::size_t>(where);
    const unsigned count =
        static_cast<unsigned char>(bytes_[at]) << 8 | static_cast<unsigned char>(bytes_[at + 1]);
    bytes_[at] = static_cast<char>((count + 1) >> 8);
    bytes_[at + 1] = static_cast<char>((count + 1) & 0xff);
    // Records the name at the front of the entry, and its parents.
    for (std::size_t position = begin; suffixes_.size() < limits::dns_compressed_suffixes_max;) {
        const auto size = static_cast<unsigned char>(bytes_[position]);
        if (size == 0 or (size & pointer_bits) != 0 or position > 0x3fff) break;
        suffixes_.push_back(static_cast<std::uint16_t>(position));
        position += size + 1U;
    }
    return true;
}

bool dns_writer::add(const dns_question& question) {
    const std::size_t begin = bytes_.size();
    put_name(question.name);
    put16(static_cast<std::uint16_t>(question.type));
    put16(class_bits(question.class_code, question.wants_unicast));
    return finish(section::questions, begin);
}

bool dns_writer::add(section where, const dns_record& record) {
    ENSURE(where != section::questions and record.data.size() <= 0xffff);
    const std::size_t begin = bytes_.size();
    put_name(record.name);
    put16(static_cast<std::uint16_t>(record.type));
    put16(class_bits(record.class_code, record.flushes_cache));
    put16(static_cast<std::uint16_t>(record.ttl_seconds >> 16));
    put16(static_cast<std::uint16_t>(record.ttl_seconds & 0xffff));
    const std::size_t length_at = bytes_.size();
    put16(static_cast<std::uint16_t>(record.data.size()));
    bytes_ += record.data;
    ENSURE(bytes_.size() == length_at + 2 + record.data.size());
    return finish(where, begin);
}

std::expected<std::string, dns_error> encode_dns_message(const dns_message& message, std::size_t bytes_max) {
    using section = dns_writer::section;
    dns_writer writer(message.id, message.flags, bytes_max);
    for (const dns_question& each : message.questions)
        if (not writer.add(each)) return std::unexpected(dns_error::too_long);
    const std::pair<section, const std::vector<dns_record>*> sections[] = {
        {section::answers, &message.answers},
        {section::authorities, &message.authorities},
        {section::additionals, &message.additionals}};
    for (const auto& [where, records] : sections)
        for (const dns_record& each : *records)
            if (not writer.add(where, each)) return std::unexpected(dns_error::too_long);
    return writer.bytes();
}

}  // namespace sluice::discovery
