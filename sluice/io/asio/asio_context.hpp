#pragma once

#include "sluice/io/asio/context.hpp"      // IWYU pragma: export
#include "sluice/io/asio/context_run.hpp"  // IWYU pragma: export
#include "sluice/io/asio/executor.hpp"     // IWYU pragma: export
