#include "tests/interleave/simulated_kernel.hpp"

#include "tests/interleave/simulated_machine.hpp"

namespace sluice::interleave {
namespace {

std::uint64_t accesses = 0;

}  // namespace

simulated_kernel::state* simulated_kernel::state::current = nullptr;

simulated_kernel::simulated_kernel() {
    memory().clean();
    state_ = std::make_unique<state>();
    state_->files.reserve(files_max);
    state::current = state_.get();
}
simulated_kernel::~simulated_kernel() {
    state::current = nullptr;
}

void simulated_kernel::as(unsigned process, const std::function<void()>& body) {
    state_->acting = static_cast<int>(process);
    body();
    state_->acting = -1;
}
void simulated_kernel::kill(unsigned number) {
    state_->processes[number].is_alive = false;
    for (std::size_t i = 0; i != state_->descriptions.size(); ++i)
        if (state_->descriptions[i].process == number and
            state_->descriptions[i].what != description::kind::closed)
            state_->close(first_descriptor + static_cast<int>(i));
    for (file& each : state_->files)
        if (each.writer == static_cast<int>(number)) {
            each.writer = -1;
            wake_all_on(&each.writer);
        }
}
bool simulated_kernel::may_be_killed(unsigned number) const {
    return not state_->processes[number].is_copying;
}
const clock_source& simulated_kernel::clock() const {
    return state_->clock;
}
random_source& simulated_kernel::random(unsigned number) {
    return state_->chances[number];
}
std::size_t simulated_kernel::file_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(state_->files, &file::has_name));
}
const std::byte* simulated_kernel::content() const {
    return state_->files[state_->made_last].bytes;
}
std::size_t simulated_kernel::content_bytes() const {
    return state_->files[state_->made_last].size;
}
std::uint64_t simulated_kernel::calls() const {
    return state_->calls;
}
void simulated_kernel::leave_room(std::uint64_t bytes) {
    state_->room = bytes;
}
void simulated_kernel::share_with_hosts() {
    state_->is_remote = true;
}
void simulated_kernel::hide_sizes() {
    state_->hides_sizes = true;
}
void simulated_kernel::give_processors(unsigned count) {
    state_->processors = count;
}
void simulated_kernel::send_signals(unsigned count) {
    state_->signals = count;
}

// --- memory

void record_access(const volatile void* address, std::size_t bytes, bool is_write) noexcept {
    if (not is_write or not memory().has_file_byte(address)) return;
    ++accesses;
    memory().dirty(address, bytes);
    if (thread_number() >= 0) mortal_step();
}

void record_atomic_load(const volatile void* address, std::uint64_t value) noexcept {
    if (not memory().has_file_byte(address)) return;
    ++accesses;
    const int who = thread_number();
    if (who < 0) return;
    // A thread that has loaded the same value three times in succession spins. Its further loads
    // are not steps: they could have seen the changes of other threads earlier. A thread that spins
    // very long yields.
    constexpr unsigned looks_in_turn = 3;
    constexpr unsigned looks_max = 10'000;
    process& self = simulated_kernel::state::current->processes[static_cast<unsigned>(who)];
    const bool is_same = self.loaded == address and self.loaded_value == value;
    self.loads = is_same ? self.loads + 1 : 1;
    self.loaded = address;
    self.loaded_value = value;
    if (self.loads <= looks_in_turn) return step();
    if (self.loads >= looks_max) give_way();
}

void record_copy(const volatile void* address) noexcept {
    if (not memory().has_file_byte(address)) return;
    ++accesses;
    if (thread_number() >= 0) step();
}

void record_atomic_change(const volatile void* address, std::size_t bytes) noexcept {
    if (not memory().has_file_byte(address)) return;
    ++accesses;
    memory().dirty(address, bytes);
    const int who = thread_number();
    if (who < 0) return;
    simulated_kernel::state::current->processes[static_cast<unsigned>(who)].loads = 0;
    step();
    record_change();
}

std::uint64_t accesses_seen() noexcept {
    return accesses;
}

void* allocate_for_process(std::size_t bytes) noexcept {
    return simulated_kernel::state::caller() < 0 ? nullptr : memory().allocate(bytes);
}

bool is_memory_of_process(const void* address) noexcept {
    return memory().is_in_arena(address);
}

}  // namespace sluice::interleave
