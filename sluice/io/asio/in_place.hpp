#pragma once

// Runs a program that was written for Asio on our multiplexer, unchanged. Given to the compiler before the
// program (`-include sluice/io/asio/in_place.hpp`), it reads all of Asio and then lets the program's word
// `asio` mean names.hpp. The program may include what headers of Asio it likes: they have been read.
//
// Not for a program that uses `asio` for anything but the namespace, that specialises Asio's templates, or
// that needs what names.hpp does not offer.

#if __has_include(<asio/experimental/awaitable_operators.hpp>)
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <asio/experimental/parallel_group.hpp>
#endif
#include <asio/ts/buffer.hpp>
#include <asio/ts/executor.hpp>
#include <asio/ts/internet.hpp>
#include <asio/ts/io_context.hpp>
#include <asio/ts/net.hpp>
#include <asio/ts/socket.hpp>
#include <asio/ts/timer.hpp>

#include "sluice/io/asio/names.hpp"

#define asio ::sluice::io::asio_names  // NOLINT: the purpose of this header
