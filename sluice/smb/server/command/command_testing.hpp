#pragma once

#include <string>
#include <string_view>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::access_mask;
using wire::command;
using wire::nt_status;

/// Tests of one command: a client with a session and a tree connection, in SMB 3.0.2.
class command_test : public served {
protected:
    using served::served;

    /// Sends a request and returns the status of the final reply.
    template <class Args>
    nt_status status_of(command code, const Args& args) {
        return client().call(code, args).status();
    }

    /// Opens or creates a file with these rights.
    [[nodiscard]] wire::file_id open_for(access_mask access, std::string_view name = "f") {
        auto how = compliant_client::for_everything();
        how.desired_access = access;
        return client().create(name, how).file;
    }
    [[nodiscard]] wire::file_id open_directory(std::string_view name = "d",
                                               access_mask access = wire::file_all_access) {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::directory_file;
        how.desired_access = access;
        return client().create(name, how).file;
    }
    /// Opens a named pipe. The client uses IPC$ from then on.
    [[nodiscard]] wire::file_id open_pipe(std::string_view name = "srvsvc") {
        EXPECT_EQ(client().connect_tree("IPC$"), nt_status::success);
        return client().create(name).file;
    }
    nt_status close(const wire::file_id& file) {
        return status_of(command::close, wire::close_args{.file = file});
    }
    /// The identifier of an open that has ended.
    [[nodiscard]] wire::file_id closed_file() {
        const wire::file_id file = open_for(wire::file_all_access, "closed");
        EXPECT_EQ(close(file), nt_status::success);
        return file;
    }

    nt_status write(const wire::file_id& file, std::string_view text, std::uint64_t offset = 0) {
        return status_of(
            command::write,
            wire::write_args{.file = file, .offset_bytes = offset, .data = std::as_bytes(std::span(text))});
    }
    /// The first bytes of a file.
    [[nodiscard]] std::string content_of(const wire::file_id& file) {
        const auto said = client().call(command::read, wire::read_args{.file = file, .length_bytes = 1000});
        if (said.status() != nt_status::success) return {};
        const bytes_view data = wire::decode_read_reply(said.message())->data;
        return {reinterpret_cast<const char*>(data.data()), data.size()};
    }

    [[nodiscard]] compliant_client::answer query(const wire::file_id& file, wire::file_information_class what,
                                                 std::uint32_t bytes_max = 4096) {
        return client().call(command::query_info,
                             wire::query_info_args{.information_class = static_cast<std::uint8_t>(what),
                                                   .output_bytes_max = bytes_max,
                                                   .file = file});
    }
    /// The output of a QUERY_INFO, which the last answer of the client keeps.
    [[nodiscard]] static bytes_view output_of(const compliant_client::answer& said) {
        const auto reply = wire::decode_query_info_reply(said.message());
        EXPECT_TRUE(reply);
        return reply ? reply->output : bytes_view{};
    }

    nt_status set(const wire::file_id& file, wire::file_information_class what, bytes_view input) {
        return status_of(
            command::set_info,
            wire::set_info_args{
                .information_class = static_cast<std::uint8_t>(what), .file = file, .input = input});
    }
    /// The same with a structure of [MS-FSCC] 2.4.
    template <class Information>
    nt_status set_information(const wire::file_id& file, wire::file_information_class what,
                              const Information& information) {
        std::array<std::byte, 512> room{};
        byte_writer writer(room);
        (void)encode_into(writer, information);
        return set(file, what, *writer.finish());
    }

    [[nodiscard]] compliant_client::answer control(wire::control_code code, const wire::file_id& file,
                                                   bytes_view input = {},
                                                   std::uint32_t output_bytes_max = 4096) {
        return client().call(
            command::ioctl,
            wire::ioctl_args{
                .code = code, .file = file, .output_bytes_max = output_bytes_max, .input = input});
    }
    [[nodiscard]] static bytes_view output_of_control(const compliant_client::answer& said) {
        const auto reply = wire::decode_ioctl_reply(said.message());
        EXPECT_TRUE(reply);
        return reply ? reply->output : bytes_view{};
    }

private:
    template <class Information>
    static bool encode_into(byte_writer& writer, const Information& information) {
        if constexpr (std::is_void_v<decltype(encode(writer, information))>) {
            encode(writer, information);
            return true;
        } else {
            return encode(writer, information).has_value();
        }
    }
};

}  // namespace sluice::smb_simulation
