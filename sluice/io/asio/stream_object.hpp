#pragma once

#include <utility>

#include "sluice/io/asio/core.hpp"
#include "sluice/io/asio/transfers.hpp"

namespace sluice::io::asio_names {

/// The common transfers of basic_stream_socket and posix::basic_stream_descriptor. `Base` is a
/// descriptor_object. Completion, cancellation and allocation are those of asio_stream.
template <class Base>
class stream_object : public Base {
    using transferred = void(asio::error_code, std::size_t);

public:
    using Base::Base;
    using typename Base::executor_type;

    /// void(asio::error_code, std::size_t). See asio_stream.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_read_some(const Buffers& buffers, Token&& token = Token()) {
        using work = detail::asio_transfer<typename Base::handle_type, buffer, Buffers>;
        return detail::asio_initiate<transferred, work>(this->core_in_use(), this->executor_, token, buffers);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_write_some(const Buffers& buffers, Token&& token = Token()) {
        using work = detail::asio_transfer<typename Base::handle_type, const_buffer, Buffers>;
        return detail::asio_initiate<transferred, work>(this->core_in_use(), this->executor_, token, buffers);
    }

    /// Blocks: until bytes could be read; until bytes could be written.
    template <class Buffers>
    std::size_t read_some(const Buffers& buffers, asio::error_code& why) {
        return detail::asio_read_now(this->handle(), buffers, this->time_limit(), why);
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& buffers, asio::error_code& why) {
        return detail::asio_write_now(this->handle(), buffers, this->time_limit(), why);
    }
    template <class Buffers>
    std::size_t read_some(const Buffers& buffers) {
        return detail::asio_or_throw("read_some",
                                     [&](asio::error_code& why) { return read_some(buffers, why); });
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& buffers) {
        return detail::asio_or_throw("write_some",
                                     [&](asio::error_code& why) { return write_some(buffers, why); });
    }
};

}  // namespace sluice::io::asio_names
