#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

// For tests of code that must not use the stack without bound.

namespace sluice {

/// Large enough for what a test does at a constant depth, also under sanitizers; a few thousand
/// nested calls overflow it.
inline constexpr std::size_t small_stack_bytes = 256U << 10;

/// Calls `work()` in a thread with a small stack, and waits for it. An overflow stops the program.
template <class Work>
void run_on_small_stack(Work work) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, small_stack_bytes), 0);
    pthread_t thread{};
    const auto call = [](void* from) -> void* {
        (*static_cast<Work*>(from))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, call, &work), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
}

}  // namespace sluice
