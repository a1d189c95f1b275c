// The savings of signing (GMAC) or encrypting (GCM) a READ's reply directly from a mapping of the
// file, instead of from the buffer into which the server reads it. From a file in memory to a
// socket that discards everything: a header of 84 bytes and the data. `limit` is the cost of an
// unsigned reply, a splice. `mapped_anew` maps in each turn, as for a file that is read once: each
// page then costs its share of a fault. The mapping subjects omit a requirement of a server: no
// process may write to the file or truncate it in the meantime (docs/algorithms/data-path.md).

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <string>

#include "bench/harness/benchmark.hpp"
#include "bench/io/cached_file.hpp"
#include "bench/io/copy_partner.hpp"
#include "sluice/base/buffer_pool.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/stream/splice.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;
using namespace sluice::smb;

constexpr std::uint64_t file_bytes = 64U << 20;
constexpr std::size_t header_bytes = 84;

file_handle& cached_file() {
    static file_handle file = make_cached_file(file_bytes);
    return file;
}

class mapping {
public:
    mapping() noexcept
        : begin_(::mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, cached_file().descriptor(), 0)) {
        ENSURE(begin_ != MAP_FAILED);
    }
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    ~mapping() { (void)::munmap(begin_, file_bytes); }

    [[nodiscard]] bytes_view part(std::uint64_t offset, std::size_t bytes) const noexcept {
        return {std::span(static_cast<const std::byte*>(begin_) + offset, bytes)};
    }

private:
    void* begin_;
};

// The shared state of all subjects: the connection, and the keys.
class sender {
public:
    explicit sender(std::size_t size)
        : peer_(copy_partner::does::receive),
          socket_(socket_handle::adopt(peer_.release()).value()),
          pipe_(splice_pipe::create().value()),
          signer_(auth::signer::create(auth::signing_algorithm::aes_gmac, {}).value()),
          sealer_(key_.make_sealer(random_).value()),
          data_(pool_.take(size)),
          sealed_(pool_.take(size + header_bytes - 4 + wire::transform_header_bytes)),
          size_(size) {}

    void splice_unsigned(std::uint64_t offset) { splice_range(offset); }
    void read_sign_send(std::uint64_t offset) {
        read(offset);
        sign(*bytes_view(data_.bytes()).first(size_));
        send(data_.bytes());
    }
    void map_sign_send(std::uint64_t offset, const mapping& map) {
        const bytes_view data = map.part(offset, size_);
        sign(data);
        send(data);
    }
    void read_seal_send(std::uint64_t offset) {
        read(offset);
        seal(data_.bytes());
        send(sealed_.bytes());
    }
    void map_seal_send(std::uint64_t offset, const mapping& map) {
        seal(map.part(offset, size_));
        send(sealed_.bytes());
    }
    void map_sign_splice(std::uint64_t offset, const mapping& map) {
        sign(map.part(offset, size_));
        splice_range(offset);
    }

private:
    void read(std::uint64_t offset) {
        const auto got = cached_file().read(io_request<bytes_type>{data_.bytes(), offset});
        ENSURE(got.bytes_transferred() == size_);
    }
    void sign(bytes_view data) {
        const std::array<bytes_view, 2> parts{*bytes_view(header_).from(4), data};
        const auto made = signer_.sign(parts, {.message_id = ++messages_}).value();
        std::ranges::copy(made, header_.begin() + 4 + 48);
    }
    void seal(bytes_view data) {
        const std::array<bytes_view, 2> parts{*bytes_view(header_).from(4), data};
        ENSURE(sealer_.seal(1, parts, sealed_.bytes()).has_value());
    }
    void send(std::span<const std::byte> data) {
        const_buffer pieces[] = {const_buffer(std::span<const std::byte>(header_)), const_buffer(data)};
        const auto put = socket_.write(io_request<const_buffers_type>{pieces});
        ENSURE(put.bytes_transferred() == data.size() + header_bytes);
    }
    void splice_range(std::uint64_t offset) {
        const auto sent = send_file_to(cached_file(), socket_,
                                       {.header = header_, .offset = offset, .length = size_}, pipe_);
        ENSURE(sent.value() == size_ + header_bytes);
    }

    const sigpipe_guard quiet_;
    copy_partner peer_;
    socket_handle socket_;
    splice_pipe pipe_;
    auth::signer signer_;
    system_random random_;
    auth::sealing_key key_{auth::cipher_key(auth::cipher_algorithm::aes_128_gcm)};
    auth::sealer sealer_;
    buffer_pool pool_;
    pool_buffer data_;
    pool_buffer sealed_;
    std::array<std::byte, header_bytes> header_{};
    std::size_t size_;
    std::uint64_t messages_ = 0;
};

// Consecutive pieces of the file, in a circle, so that no subject gets a piece that is still in a
// cache.
class place {
public:
    explicit place(std::size_t size) noexcept : size_(size) {}
    std::uint64_t next() noexcept {
        const std::uint64_t now = at_;
        at_ = at_ + 2 * size_ > file_bytes ? 0 : at_ + size_;
        return now;
    }

private:
    std::size_t size_;
    std::uint64_t at_ = 0;
};

// A turn with one mapping shared by all turns, or with its own.
template <class Work>
turns::turn turn_of(place& where, Work work) {
    return [&where, work](std::uint64_t operations) mutable {
        for (; operations != 0; --operations)
            work(where.next());
    };
}
template <class Work>
turns::turn mapping_turn_of(place& where, Work work) {
    return [&where, work](std::uint64_t operations) mutable {
        const mapping anew;
        for (; operations != 0; --operations)
            work(where.next(), anew);
    };
}

void compare_signed(turns& subjects, std::size_t size) {
    sender to(size);
    const mapping kept;
    place where(size);
    const turns::turn all[] = {
        turn_of(where, [&](std::uint64_t at) { to.splice_unsigned(at); }),
        turn_of(where, [&](std::uint64_t at) { to.read_sign_send(at); }),
        turn_of(where, [&](std::uint64_t at) { to.map_sign_send(at, kept); }),
        turn_of(where, [&](std::uint64_t at) { to.map_sign_splice(at, kept); }),
        mapping_turn_of(where, [&](std::uint64_t at, const mapping& anew) { to.map_sign_send(at, anew); }),
    };
    subjects.measure(all);
}

void compare_sealed(turns& subjects, std::size_t size) {
    sender to(size);
    const mapping kept;
    place where(size);
    const turns::turn all[] = {
        turn_of(where, [&](std::uint64_t at) { to.splice_unsigned(at); }),
        turn_of(where, [&](std::uint64_t at) { to.read_seal_send(at); }),
        turn_of(where, [&](std::uint64_t at) { to.map_seal_send(at, kept); }),
        mapping_turn_of(where, [&](std::uint64_t at, const mapping& anew) { to.map_seal_send(at, anew); }),
    };
    subjects.measure(all);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark ways("smb_mapped_read",
                   "What does signing or encrypting READs from a mapping of the file save?");
    struct piece {
        const char* name;
        std::size_t bytes;
        std::uint64_t per_turn;
    };
    for (const piece& size : {piece{"64k", 65536, 64}, piece{"1m", 1 << 20, 5}, piece{"8m", 8 << 20, 1}}) {
        workload_options options{.name = std::string("signed_") + size.name,
                                 .metric = metric::gigabytes_per_second,
                                 .operations = size.per_turn,
                                 .bytes_per_operation = size.bytes,
                                 .cpu = cpu_clock::thread};
        ways.add(options).subjects_in_turns({"limit", "read", "mapped", "mapped_spliced", "mapped_anew"},
                                            [size](turns& all) { compare_signed(all, size.bytes); });
        options.name = std::string("sealed_") + size.name;
        ways.add(options).subjects_in_turns({"limit", "read", "mapped", "mapped_anew"},
                                            [size](turns& all) { compare_sealed(all, size.bytes); });
    }
    return ways.main(argc, argv);
}
