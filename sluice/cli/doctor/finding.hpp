#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/mutex.hpp"

namespace sluice::cli::doctor {

/// The weight of a finding.
enum class severity : std::uint8_t {
    note,     ///< a fact that helps to understand the rest
    warning,  ///< works, but is slow, insecure or soon a problem
    problem,  ///< a client cannot connect, or loses data or access
};

/// Returns "note", "warning" or "problem".
[[nodiscard]] const char* name_of(severity level) noexcept;

/// The result of a check. The texts may contain bytes from servers and file names: who prints them
/// makes them safe first. They never contain a password.
struct finding {
    severity level = severity::note;
    std::string check;     ///< the check's name, as in "port": stable, for scripts
    std::string what;      ///< one sentence without a full stop
    std::string evidence;  ///< the observation behind it; may be empty
    std::string remedy;    ///< a command or a setting to copy; empty only for notes
};

/// The findings so far, and the step in progress. The thread of the checks adds to it, while the
/// main thread waits for its end or for the deadline. Monitor: any thread. Allocates: the texts.
class finding_list {
public:
    /// Begins a step; `step` is a noun phrase, as in "name resolution".
    void begin(std::string step);
    void add(finding found);
    void note(std::string check, std::string what, std::string evidence = {});

    [[nodiscard]] std::string step() const;
    [[nodiscard]] std::vector<finding> findings() const;

private:
    mutable mutex mutex_;
    std::string step_ SLUICE_GUARDED_BY(mutex_);
    std::vector<finding> findings_ SLUICE_GUARDED_BY(mutex_);
};

/// Returns a text as one word of a shell: in quotes unless it is plain. For remedies.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Returns whether one of them is a problem.
[[nodiscard]] bool has_problem(const std::vector<finding>& all) noexcept;

}  // namespace sluice::cli::doctor
