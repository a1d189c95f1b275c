#pragma once

// Runs a program that was written for Asio on our multiplexer, unchanged. Included by the compiler
// before the program (`-include sluice/io/asio/in_place.hpp`), it includes all of Asio and then
// makes the program's word `asio` mean names.hpp. The program may include any of Asio's headers,
// because they have been included already.
//
// Not for a program that uses `asio` for anything except the namespace, that specialises Asio's
// templates, or that needs features that names.hpp does not offer.

#include <asio.hpp>
#if ASIO_VERSION < 102400  // later these have left `experimental`
#include <asio/experimental/append.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/experimental/prepend.hpp>
#endif
#include <asio/experimental/as_single.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <asio/experimental/parallel_group.hpp>
#if defined(ASIO_HAS_CO_AWAIT)
#include <asio/experimental/awaitable_operators.hpp>
#endif
#include <asio/ts/buffer.hpp>
#include <asio/ts/executor.hpp>
#include <asio/ts/internet.hpp>
#include <asio/ts/io_context.hpp>
#include <asio/ts/net.hpp>
#include <asio/ts/socket.hpp>
#include <asio/ts/timer.hpp>

#include "sluice/io/asio/names.hpp"

// Without leading colons: Asio's own macros write `::asio`.
#define asio sluice::io::asio_names  // NOLINT: the purpose of this header
