#include "tests/shared_lines/line_sharing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "sluice/base/ensure.hpp"

namespace sluice::shared_lines {
namespace {

constexpr std::size_t word_bytes = 8;
constexpr std::size_t words_per_line = line_bytes / word_bytes;
// Accesses to a line with fewer others in between are one visit.
constexpr std::size_t gap_max = 32;

struct line_state {
    std::uint64_t holders = 0;  // cores that have it
    bool is_changed = false;    // by the only holder
    std::array<std::uint64_t, words_per_line> readers{};
    std::array<std::uint64_t, words_per_line> writers{};
    moving_line found;
};

[[nodiscard]] bool is_change(access_kind how) noexcept {
    return how != access_kind::read;
}

// Returns whether the line moves, or has to be taken from others.
bool move_to(line_state& line, std::uint64_t core, bool changes) noexcept {
    const std::uint64_t others = line.holders & ~core;
    bool moves = false;
    if (changes) {
        moves = others != 0;
        line.holders = core;
        line.is_changed = true;
    } else {
        moves = others != 0 and line.is_changed;
        if (moves) line.is_changed = false;
        line.holders |= core;
    }
    return moves;
}

void add_code(std::vector<std::uintptr_t>& codes, std::uintptr_t code) {
    constexpr std::size_t codes_max = 8;
    if (codes.size() != codes_max and std::ranges::find(codes, code) == codes.end()) codes.push_back(code);
}

void note_words(line_state& line, std::size_t offset, std::size_t bytes, std::uint64_t core, bool changes) {
    for (std::size_t word = offset / word_bytes; word <= (offset + bytes - 1) / word_bytes; ++word) {
        line.readers.at(word) |= core;
        if (changes) line.writers.at(word) |= core;
    }
}

[[nodiscard]] std::uintptr_t first_shared_word(const line_state& line, std::uintptr_t address) {
    for (std::size_t word = 0; word != words_per_line; ++word)
        if (line.writers.at(word) != 0 and std::popcount(line.readers.at(word)) > 1)
            return address + word * word_bytes;
    return 0;
}

class analysis {
public:
    analysis(std::span<const access> trace, std::span<const execution> executions, std::size_t uncounted)
        : trace_(trace), executions_(executions), uncounted_(uncounted) {}

    std::vector<moving_line> run() {
        for (std::size_t i = 0; i != executions_.size(); ++i) {
            const execution& one = executions_[i];
            ENSURE(one.begin <= one.end and one.end <= trace_.size(), "an execution is part of the trace");
            ENSURE(one.core < 64, "a core is a bit of a mask");
            for (std::size_t at = one.begin; at != one.end; ++at)
                follow(trace_[at], i >= uncounted_);
        }
        std::vector<moving_line> moving;
        for (auto& [address, line] : lines_) {
            if (line.found.moves == 0) continue;
            line.found.address = address;
            line.found.shared_word = first_shared_word(line, address);
            line.found.visits.resize(executions_.size() - uncounted_);
            places_.emplace(address, moving.size());
            moving.push_back(std::move(line.found));
        }
        for (std::size_t i = uncounted_; i < executions_.size(); ++i)
            add_visits(executions_[i], i - uncounted_, moving);
        return moving;
    }

private:
    void follow(const access& one, bool counts) {
        const std::uint64_t core = std::uint64_t{1} << one.core;
        std::size_t left = one.bytes;
        for (std::uintptr_t at = one.address; left != 0;) {
            const std::size_t offset = at % line_bytes;
            const std::size_t here = std::min(left, line_bytes - offset);
            line_state& line = lines_[at - offset];
            note_words(line, offset, here, core, is_change(one.kind));
            if (move_to(line, core, is_change(one.kind)) and counts) {
                ++line.found.moves;
                add_code(line.found.codes, one.code);
            }
            if (counts and is_change(one.kind) and one.kind != access_kind::write) ++line.found.changes;
            at += here;
            left -= here;
        }
    }

    // An access to a line that moves, and its place among the accesses of the operation.
    struct step {
        std::size_t position = 0;
        const access* what = nullptr;
    };

    // The visits of one execution to the lines that move.
    void add_visits(const execution& one, std::size_t number, std::vector<moving_line>& moving) {
        std::map<std::size_t, std::vector<step>> steps;  // by line
        std::size_t position = 0;
        for (const access& each : trace_.subspan(one.begin, one.end - one.begin)) {
            if (each.core != one.core) continue;
            ++position;
            const std::uintptr_t first = each.address / line_bytes * line_bytes;
            for (std::uintptr_t address = first; address < each.address + each.bytes; address += line_bytes)
                if (const auto found = places_.find(address); found != places_.end())
                    steps[found->second].push_back({position, &each});
        }
        for (const auto& [line, of_line] : steps)
            moving[line].visits[number] = visits_in(of_line, position);
    }

    [[nodiscard]] static std::vector<visit> visits_in(std::span<const step> steps, std::size_t total) {
        std::vector<visit> visits;
        const auto place = [total](const step& at) {
            return static_cast<double>(at.position) / static_cast<double>(total);
        };
        for (std::size_t first = 0; first != steps.size();) {
            std::size_t last = first;
            visit made;
            for (std::size_t i = first;
                 i != steps.size() and steps[i].position - steps[last].position <= gap_max; ++i) {
                last = i;
                if (made.how == visit::kind::read and is_change(steps[i].what->kind))
                    made.how = visit::kind::write;
                const std::size_t unlock = end_of_section(steps, i);
                if (unlock == i) continue;
                made.how = visit::kind::section;
                last = i = unlock;
            }
            made.from = place(steps[first]);
            made.until = place(steps[last]);
            visits.push_back(made);
            first = last + 1;
        }
        return visits;
    }

    // The unlock of the mutex that a step locks; the step itself if it locks none.
    [[nodiscard]] static std::size_t end_of_section(std::span<const step> steps, std::size_t first) {
        if (steps[first].what->kind != access_kind::acquire) return first;
        for (std::size_t i = first + 1; i != steps.size(); ++i) {
            if (steps[i].what->address != steps[first].what->address) continue;
            if (steps[i].what->kind == access_kind::release) return i;
            if (steps[i].what->kind == access_kind::acquire) break;
        }
        return first;
    }

    std::span<const access> trace_;
    std::span<const execution> executions_;
    std::size_t uncounted_;
    std::unordered_map<std::uintptr_t, line_state> lines_;
    std::unordered_map<std::uintptr_t, std::size_t> places_;  // of lines that move
};

}  // namespace

std::vector<moving_line> lines_that_move(std::span<const access> trace, std::span<const execution> executions,
                                         std::size_t uncounted) {
    return analysis(trace, executions, uncounted).run();
}

}  // namespace sluice::shared_lines
