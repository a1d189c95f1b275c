#pragma once

#include <functional>
#include <string>

// For tests: what a program finds in a sandbox, or on a kernel that lacks a call.
namespace sluice::io::sandbox_test {

/// Has the question answered by a child, which takes what it denies itself, and what it finds out once, with
/// it.
std::string ask_in_child(const std::function<std::string()>& question);

/// Has a system call answered with this errno value from now on, as the seccomp profile of a container does
/// it.
void deny(int system_call, int code);

}  // namespace sluice::io::sandbox_test
