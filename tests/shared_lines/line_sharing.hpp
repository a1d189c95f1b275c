#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/shared_lines/access_trace.hpp"

namespace sluice::shared_lines {

inline constexpr std::size_t line_bytes = 64;

/// One execution of an operation: the accesses of its core from `begin` to `end` of the trace.
struct execution {
    std::size_t begin = 0;
    std::size_t end = 0;
    unsigned core = 0;
};

/// Accesses of one operation to one line that follow each other closely, or the critical section of
/// a mutex in the line. Positions are those among the accesses of the operation, from 0 to 1.
struct visit {
    enum class kind : std::uint8_t { read, write, section };
    kind how = kind::read;
    double from = 0;
    double until = 0;
};

/// A cache line that moves between cores while they alternately carry out the same operation.
struct moving_line {
    std::uintptr_t address = 0;
    std::vector<std::uintptr_t> codes;  // the first instructions that make it move
    std::uint64_t moves = 0;            // in all executions
    std::uint64_t changes = 0;          // atomic changes in all executions
    /// The first word that cores share: one changes it, another accesses it. Null: each core has
    /// words of its own in the line.
    std::uintptr_t shared_word = 0;
    std::vector<std::vector<visit>> visits;  // for each execution
};

/// Returns the lines that move between cores with caches of their own, if each core keeps every
/// line until another one changes it. A read moves a line if another core has changed it since; a
/// change moves it if another core has it. Moves in the first `uncounted` executions do not count.
///
/// Complexity: linear in the accesses.
[[nodiscard]] std::vector<moving_line> lines_that_move(std::span<const access> trace,
                                                       std::span<const execution> executions,
                                                       std::size_t uncounted);

}  // namespace sluice::shared_lines
