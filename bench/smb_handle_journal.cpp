// The cost of one change in the handle journal, which the server makes within the mutex of a file
// (docs/decisions/0027-persistent-handles-in-memory.md). The limit copies the bytes of the record
// to memory. The alternative is a log: it appends the same bytes with pwrite, and with fdatasync if
// it is to survive a loss of power. Files are in /dev/shm (tmpfs) and in /var/tmp, usually a disk.

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "sluice/smb/server/journal/journal_file.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::smb::server;

constexpr const char* in_memory = "/dev/shm";
constexpr const char* on_disk = "/var/tmp";

// The record of an open, with its texts and locks.
class subject_record {
public:
    subject_record(std::size_t path_bytes, std::size_t locks)
        : path_(path_bytes, 'p'), text_(path_bytes > 100 ? 255 : 6, 't'), locks_(locks) {
        record.open_number = 1;
        record.owner = text_;
        record.share = "data";
        record.path = path_;
        if (path_bytes == handle_record::path_bytes_max) {
            record.other_path = path_;
            record.domain = text_;
        }
        record.caching.which = recorded_caching::kind::lease_v2;
        record.locks = locks_;
        ENSURE(record.fits());
    }
    subject_record(const subject_record&) = delete;
    subject_record& operator=(const subject_record&) = delete;

    [[nodiscard]] std::vector<std::byte> encoded() const {
        std::vector<std::byte> room(journal_format::content_bytes_max);
        byte_writer writer(room);
        encode(writer, record);
        ENSURE(writer.finish().has_value());
        room.resize(writer.position());
        return room;
    }

    handle_record record;

private:
    std::string path_;
    std::string text_;
    std::vector<recorded_lock> locks_;
};

// A new directory, removed at the end.
class scratch {
public:
    explicit scratch(const std::string& parent) : path_(parent + "/sluice-bench-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) path_.clear();
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() {
        std::error_code ignored;
        if (exists()) std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] bool exists() const { return not path_.empty(); }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

void store_in_journal(run& repeat, const handle_record& record, const char* parent) {
    const scratch directory(parent);
    if (not directory.exists()) return repeat.skip("no directory can be created there");
    auto storage = open_journal_file({.directory = directory.path(), .user_id = ::geteuid()}, {});
    ENSURE(storage.has_value());
    const auto journal = handle_journal::open(*std::move(storage), {}).value();
    auto slot = journal->reserve().value();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            ENSURE(slot.store(record));
    });
}

void append_to_log(run& repeat, const subject_record& what, const char* parent, bool is_durable) {
    const scratch directory(parent);
    if (not directory.exists()) return repeat.skip("no directory can be created there");
    const int file = ::open((directory.path() + "/log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ENSURE(file >= 0);
    const std::vector<std::byte> bytes = what.encoded();
    off_t end = 0;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const auto again = what.encoded();  // a log has to encode the record, too
            ENSURE(::pwrite(file, again.data(), again.size(), end) == static_cast<ssize_t>(bytes.size()));
            end += static_cast<off_t>(bytes.size());
            if (is_durable) ENSURE(::fdatasync(file) == 0);
        }
    });
    ::close(file);
}

void copy_to_memory(run& repeat, const subject_record& what) {
    const std::vector<std::byte> bytes = what.encoded();
    std::vector<std::byte> memory(bytes.size());
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            std::memcpy(memory.data(), bytes.data(), bytes.size());
            asm volatile("" : : "r"(memory.data()) : "memory");
        }
    });
}

struct size {
    const char* name;
    std::size_t path_bytes;
    std::size_t locks;
};

void add(benchmark& bench, const size& each) {
    const auto what = [each] { return subject_record(each.path_bytes, each.locks); };
    bench.add({.name = each.name, .operations = 20'000, .cpu = cpu_clock::thread})
        .subject("limit", [what](run& r) { copy_to_memory(r, what()); })
        .subject("sluice.journal", [what](run& r) { store_in_journal(r, what().record, in_memory); })
        .subject("sluice.journal_on_disk", [what](run& r) { store_in_journal(r, what().record, on_disk); })
        .subject("log_in_memory", [what](run& r) { append_to_log(r, what(), in_memory, false); })
        .subject("log_on_disk", [what](run& r) { append_to_log(r, what(), on_disk, false); });
    bench.add({.name = std::string(each.name) + "_durable", .operations = 100, .cpu = cpu_clock::thread})
        .subject("log_on_disk", [what](run& r) { append_to_log(r, what(), on_disk, true); });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark bench("smb_handle_journal", "What does it cost to record a change of a persistent open?");
    add(bench, {.name = "typical", .path_bytes = 20, .locks = 1});
    add(bench, {.name = "full", .path_bytes = 1024, .locks = 100});
    return bench.main(argc, argv);
}
