#pragma once

// The implementation of std::execution for which a test is compiled: the model in this directory,
// or, with one of these macros defined, a real one. A test is compiled once for each available
// implementation.

#if defined(SLUICE_TEST_STDEXEC)
#include <exec/completion_behavior.hpp>
#include <stdexec/execution.hpp>
#elif defined(SLUICE_TEST_STD_EXECUTION)
#include <execution>
#else
#include "tests/execution_model/execution.hpp"
#endif

#include "sluice/base/execution_traits.hpp"

#if defined(SLUICE_TEST_STDEXEC)
namespace ex = stdexec;
namespace ex_queries = stdexec;
namespace ex_sync = stdexec;
SLUICE_EXECUTION_TRAITS(basic_traits, stdexec, stdexec, _t);
struct traits : basic_traits {
    template <class Signal>
    using get_completion_behavior = exec::get_completion_behavior_t<Signal>;
    static constexpr auto asynchronous = exec::completion_behavior::asynchronous;
};
using receiver_tag = ex::receiver_t;
#elif defined(SLUICE_TEST_STD_EXECUTION)
namespace ex = std::execution;
namespace ex_queries = std;
namespace ex_sync = std::this_thread;
SLUICE_EXECUTION_TRAITS(traits, std::execution, std, _tag);
using receiver_tag = ex::receiver_tag;
#else
namespace ex = execution_model;
namespace ex_queries = execution_model;
namespace ex_sync = execution_model;
SLUICE_EXECUTION_TRAITS(traits, execution_model, execution_model, _t);
using receiver_tag = ex::receiver_t;
#endif
