// The cost of compressing SMB messages per byte, for each algorithm, and how much data shrink. The
// limit is memcpy: the cost of data that are not compressed but copied once. The name of a workload
// has the algorithm, the kind of data and what percentage of their size is left.

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::smb::wire;

constexpr std::size_t data_bytes = 1U << 20;  // the largest compressed reply of the server

using byte_vector = std::vector<std::byte>;

// Words of a vocabulary whose frequencies fall as in a language.
byte_vector text_data() {
    std::mt19937 random(1);
    std::vector<std::string> words;
    for (int i = 0; i != 4000; ++i) {
        std::string word;
        for (std::size_t length = 2 + random() % 8; length != 0; --length)
            word += "etaoinshrdlucmfwypvbgkqjxz"[std::min(random() % 26, random() % 26)];
        words.push_back(word + " ");
    }
    std::string text;
    while (text.size() < data_bytes) {
        const double rank = static_cast<double>(random() % 100'000) / 100'000;
        text += words[static_cast<std::size_t>(rank * rank * rank * 4000)];
        if (random() % 12 == 0) text += "\n";
    }
    const auto all = std::as_bytes(std::span(text)).first(data_bytes);
    return {all.begin(), all.end()};
}

// Records with numbers, as in databases and images of machines.
byte_vector record_data() {
    std::mt19937 random(1);
    byte_vector data(data_bytes);
    for (std::size_t i = 0; i + 32 <= data.size(); i += 32) {
        const std::uint64_t number = i;
        const std::uint64_t value = random() % 5000;
        std::memcpy(data.data() + i, &number, sizeof number);
        std::memcpy(data.data() + i + 8, &value, sizeof value);
    }
    return data;
}

byte_vector random_bytes() {
    std::mt19937 random(1);
    byte_vector data(data_bytes);
    for (std::byte& each : data)
        each = std::byte(random() & 0xff);
    return data;
}

struct input {
    const char* name;
    byte_vector data;
};

struct codec {
    const char* name;
    std::optional<std::size_t> (*compress)(bytes_view, mutable_bytes, compression_work_area&);
    decoded<void> (*decompress)(bytes_view, mutable_bytes);
    double gigabytes_per_second;  // about
};

const codec codecs[] = {
    {"lznt1",
     [](bytes_view in, mutable_bytes out, compression_work_area& work) {
         return lznt1::compress(in, out, work.lznt1);
     },
     lznt1::decompress, 0.2},
    {"lz77",
     [](bytes_view in, mutable_bytes out, compression_work_area& work) {
         return lz77::compress(in, out, work.lz77);
     },
     lz77::decompress, 0.3},
    {"lz77_huffman",
     [](bytes_view in, mutable_bytes out, compression_work_area& work) {
         return lz77_huffman::compress(in, out, work.lz77_huffman);
     },
     lz77_huffman::decompress, 0.15},
};

template <class Work>
void measure(run& repeat, Work work) {
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            work();
    });
}

void copy(run& repeat, const byte_vector& data) {
    byte_vector to(data.size());
    measure(repeat, [&] { std::memcpy(to.data(), data.data(), data.size()); });
    ENSURE(to == data);
}

void compress(run& repeat, const byte_vector& data, const codec& by) {
    const auto work = std::make_unique<compression_work_area>();
    byte_vector to(2 * data.size());
    std::size_t size = 0;
    measure(repeat, [&] { size = by.compress(data, to, *work).value(); });
    ENSURE(size != 0);
}

void decompress(run& repeat, const byte_vector& data, const codec& by) {
    const auto work = std::make_unique<compression_work_area>();
    byte_vector small(2 * data.size());
    small.resize(by.compress(data, small, *work).value());
    byte_vector to(data.size());
    measure(repeat, [&] { ENSURE(by.decompress(small, to).has_value()); });
    ENSURE(to == data);
}

// The server's decision about a reply, including samples of the data.
void decide(run& repeat, const byte_vector& data) {
    const auto work = std::make_unique<compression_work_area>();
    const le16 lz77_code(static_cast<std::uint16_t>(compression_algorithm::lz77));
    const auto agreed = negotiated_compression::choose(
        {.flags = 0, .algorithms = code_list<compression_algorithm>(std::span(&lz77_code, 1))});
    byte_vector to(data.size());
    std::size_t compressed = 0;
    measure(repeat, [&] {
        const uncompressed_message message{.head = *bytes_view(data).first(80),
                                           .data = *bytes_view(data).from(80)};
        compressed += compress_message(message, agreed, to, *work).value_or(0);
    });
}

std::string percentage_left(const byte_vector& data, const codec& by) {
    const auto work = std::make_unique<compression_work_area>();
    byte_vector to(2 * data.size());
    const std::size_t size = by.compress(data, to, *work).value();
    return std::to_string((size * 100 + data.size() / 2) / data.size());
}

workload_options options_for(const std::string& name, double gigabytes_per_second) {
    const double ns_per_message = static_cast<double>(data_bytes) / gigabytes_per_second;
    return {.name = name,
            .metric = metric::gigabytes_per_second,
            .operations = static_cast<std::uint64_t>(30e6 / ns_per_message) + 1,
            .bytes_per_operation = data_bytes,
            .cpu = cpu_clock::thread};
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    const std::vector<input> inputs{{"text", text_data()},
                                    {"records", record_data()},
                                    {"zeros", byte_vector(data_bytes)},
                                    {"random", random_bytes()}};
    benchmark bench("smb_compression", "What does compression of SMB messages cost per byte?");
    for (const input& each : inputs) {
        for (const codec& by : codecs) {
            const std::string name =
                std::string(by.name) + "_" + each.name + "_" + percentage_left(each.data, by);
            bench.add(options_for(name, by.gigabytes_per_second))
                .subject("limit", [&each](run& r) { copy(r, each.data); })
                .subject("sluice.compress", [&each, &by](run& r) { compress(r, each.data, by); })
                .subject("sluice.decompress", [&each, &by](run& r) { decompress(r, each.data, by); });
        }
        bench.add(options_for(std::string("reply_lz77_") + each.name, 0.3))
            .subject("limit", [&each](run& r) { copy(r, each.data); })
            .subject("sluice.compress_message", [&each](run& r) { decide(r, each.data); });
    }
    return bench.main(argc, argv);
}
