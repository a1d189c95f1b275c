#pragma once

// Annotations for clang's thread-safety analysis, which the project's own builds treat as an error
// (-Wthread-safety). They document for a reader which mutex guards a member, and which a function
// requires. Other compilers ignore them.

#if defined(__clang__)
#define SLUICE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SLUICE_THREAD_ANNOTATION(x)
#endif

/// On a class: its objects are mutexes.
#define SLUICE_CAPABILITY(name) SLUICE_THREAD_ANNOTATION(capability(name))
/// On a class: its constructor acquires a mutex, and its destructor releases it.
#define SLUICE_SCOPED_CAPABILITY SLUICE_THREAD_ANNOTATION(scoped_lockable)
/// On a member: it is read and written with that mutex held.
#define SLUICE_GUARDED_BY(mutex) SLUICE_THREAD_ANNOTATION(guarded_by(mutex))
/// On a function: it acquires or releases these mutexes, or its object.
#define SLUICE_ACQUIRE(...) SLUICE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define SLUICE_TRY_ACQUIRE(...) SLUICE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define SLUICE_RELEASE(...) SLUICE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
/// On a function: its caller holds these mutexes, or does not hold them.
#define SLUICE_REQUIRES(...) SLUICE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define SLUICE_EXCLUDES(...) SLUICE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
/// On a function: the analysis cannot follow it. A comment gives the reason why it is right.
#define SLUICE_NO_THREAD_SAFETY_ANALYSIS SLUICE_THREAD_ANNOTATION(no_thread_safety_analysis)
