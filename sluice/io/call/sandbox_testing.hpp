#pragma once

#include <functional>
#include <string>

// For tests: the behaviour of a program in a sandbox, or on a kernel that lacks a call.
namespace sluice::io::sandbox_test {

/// Returns the answer that `question` computes in a child process. Denials and findings that last
/// for the life of a process end with the child.
std::string ask_in_child(const std::function<std::string()>& question);

/// Makes a system call fail with this errno value from now on, like the seccomp profile of a
/// container.
void deny(int system_call, int code);

}  // namespace sluice::io::sandbox_test
