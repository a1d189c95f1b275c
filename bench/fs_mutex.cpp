// Locks between processes: the seed's tables. 1, 2, 4 and 8 processes lock and unlock 1, 2, 4 or 8 entities,
// all the same ones or each its own, on a disk and in memory; by our four algorithms, and by what a program
// would take otherwise. A peer that cannot lock several things at once locks one after the other, in order.

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/fs_mutex_peers.hpp"
#include "bench/harness/benchmark.hpp"
#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/lock_files.hpp"
#include "sluice/fsmutex/memory_map.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::fsmutex;

using open_function = result<std::unique_ptr<shared_fs_mutex>> (*)(const io::path_handle&, io::path_view,
                                                                   const seams&);

struct cell {
    unsigned processes;
    unsigned entities;
    bool is_disjoint;
    std::string folder;
};

class our_locker final : public locker {
public:
    our_locker(open_function open, const std::string& path, std::span<const std::uint64_t> numbers)
        : mutex_(open({}, path, seams::of_this_machine()).value()) {
        for (const std::uint64_t number : numbers)
            wanted_.emplace_back(number);
    }
    void lock_and_unlock() override { ENSURE(mutex_->lock(wanted_).has_value()); }

private:
    std::unique_ptr<shared_fs_mutex> mutex_;
    std::vector<entity> wanted_;
};

std::vector<std::uint64_t> numbers_of(const cell& which, unsigned process) {
    std::vector<std::uint64_t> numbers;
    for (unsigned e = 0; e != which.entities; ++e)
        numbers.push_back(e + (which.is_disjoint ? 100 * process : 0));
    return numbers;
}

// `make(path, numbers)` runs in each process.
template <class Make>
void run_cell(run& repeat, const cell& which, Make&& make) {
    std::string path = which.folder + "/sluice-bench-XXXXXX";
    ENSURE(::mkdtemp(path.data()) != nullptr);
    crowd workers(which.processes,
                  [&](unsigned process) { return make(path + "/mutex", numbers_of(which, process)); });
    repeat.measure([&] { repeat.did(workers.run_for(std::chrono::milliseconds(repeat.operations()))); });
    workers.stop();
    repeat.note("worker_cpu_ns_per_op", workers.cpu_ns_per_operation());
    repeat.note("slowest_to_fastest", workers.slowest_to_fastest());
    ENSURE(std::system(("rm -r " + path).c_str()) == 0);
}

void add_cell(benchmark& all, const std::string& volume, const cell& which) {
    auto& work = all.add({.name = volume + (which.is_disjoint ? "_disjoint_" : "_same_") +
                                  std::to_string(which.processes) + "x" + std::to_string(which.entities),
                          .metric = metric::operations_per_second,
                          .operations = 100});  // milliseconds
    const auto ours = [&](const char* name, open_function open) {
        work.subject(name, [which, open](run& repeat) {
            run_cell(repeat, which,
                     [open](const std::string& path, const std::vector<std::uint64_t>& numbers) {
                         return std::make_unique<our_locker>(open, path, numbers);
                     });
        });
    };
    ours("sluice.memory_map", memory_map::open);
    ours("sluice.atomic_append", atomic_append::open);
    ours("sluice.byte_ranges", byte_ranges::open);
    ours("sluice.lock_files", lock_files::open);
    for (const peer& each : fs_mutex_peers())
        work.subject(each.name, [which, make = each.make](run& repeat) {
            run_cell(repeat, which,
                     [make](const std::string& path, const std::vector<std::uint64_t>& numbers) {
                         return make(path, numbers);
                     });
        });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark locks("fs_mutex", "How many times a second do processes lock and unlock a set of entities?");
    const char* const chosen = std::getenv("TMPDIR");
    const std::string disk = chosen != nullptr ? chosen : ".";
    for (const auto& [volume, folder] :
         {std::pair<std::string, std::string>{"disk", disk}, {"memory", "/dev/shm"}})
        for (const bool is_disjoint : {false, true})
            for (const unsigned processes : {1U, 2U, 4U, 8U})
                for (const unsigned entities : {1U, 2U, 4U, 8U})
                    if (processes != 1 or not is_disjoint)
                        add_cell(locks, volume, {processes, entities, is_disjoint, folder});
    return locks.main(argc, argv);
}
