#include "sluice/cli/lock_benchmark/benchmark_subjects.hpp"

#include <cstdlib>
#include <filesystem>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/best_available.hpp"

namespace sluice::lock_benchmark {
namespace {

using namespace sluice::fsmutex;

template <algorithm Which>
class our_locker final : public locker {
public:
    explicit our_locker(const lock_setup& here) : mutex_(open(Which, {}, here.directory + "/mutex").value()) {
        for (const std::uint64_t number : here.numbers)
            wanted_.emplace_back(number);
    }
    void lock_and_unlock() override { ENSURE(mutex_->lock(wanted_).has_value()); }

private:
    std::unique_ptr<shared_fs_mutex> mutex_;
    std::vector<entity> wanted_;
};

template <algorithm Which>
benchmark_subject our_own() {
    return {.name = "sluice." + std::string(name_of(Which)), .make = [](const lock_setup& here) {
                return std::unique_ptr<locker>(std::make_unique<our_locker<Which>>(here));
            }};
}

std::string directory_in(const std::string& directory) {
    std::string made = directory + "/sluice-bench-XXXXXX";
    ENSURE(::mkdtemp(made.data()) != nullptr);
    return made;
}

// The numbers of one process differ by a hundred from those of the next: neighbours would share
// cache lines.
lock_setup setup_of(const workload& where, const std::string& directory, unsigned process) {
    lock_setup here{.directory = directory, .process = process, .processes = where.processes, .numbers = {}};
    for (unsigned e = 0; e != where.entities; ++e)
        here.numbers.push_back(e + (where.is_disjoint ? 100 * process : 0));
    return here;
}

}  // namespace

std::vector<benchmark_subject> ours() {
    return {our_own<algorithm::memory_map>(), our_own<algorithm::atomic_append>(),
            our_own<algorithm::byte_ranges>(), our_own<algorithm::lock_files>()};
}

const std::vector<benchmark_subject>& benchmark_subjects() {
    static const auto all = [] {
        std::vector<benchmark_subject> made = ours();
        for (auto& others : {peers(), limits()})
            made.insert(made.end(), others.begin(), others.end());
        return made;
    }();
    return all;
}

bool takes_part(const benchmark_subject& who, const workload& where) noexcept {
    const bool has_company = where.processes != 1;
    if (who.needs_company) return has_company and not where.is_disjoint;
    return who.excludes or not has_company;
}

round::round(const benchmark_subject& who, const workload& where, const std::string& directory)
    : directory_(directory_in(directory)), workers_(where.processes, [&](unsigned process) {
          return who.make(setup_of(where, directory_, process));
      }) {}

round::~round() {
    workers_.stop();
    std::error_code ignored;  // remaining files are harmless
    std::filesystem::remove_all(directory_, ignored);
}

outcome round::end() {
    workers_.stop();
    return {.cpu_ns_per_operation = workers_.cpu_ns_per_operation(),
            .slowest_to_fastest = workers_.slowest_to_fastest()};
}

}  // namespace sluice::lock_benchmark
