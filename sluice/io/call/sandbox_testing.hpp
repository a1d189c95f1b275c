#pragma once

#include <functional>
#include <string>

// For tests: what a program finds in a sandbox, or on a kernel that lacks a call.
namespace sluice::io::sandbox_test {

/// Returns the answer that `question` computes in a child process. Denials and findings that last
/// for the life of a process end with the child.
std::string ask_in_child(const std::function<std::string()>& question);

/// Has a system call answered with this errno value from now on, as the seccomp profile of a container does
/// it.
void deny(int system_call, int code);

}  // namespace sluice::io::sandbox_test
