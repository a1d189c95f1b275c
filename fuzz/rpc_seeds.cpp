// Writes the seeds of rpc_lsarpc, rpc_samr, rpc_srvsvc and rpc_wkssvc: each call once, with
// arguments as clients send them. Run `sluice_rpc_seeds fuzz/seeds` after a change of the calls.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sluice/smb/wire/rpc/rpc_handles.hpp"
#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

namespace {

using namespace sluice;
using smb::wire::ndr_writer;

constexpr std::size_t arguments_bytes_max = 1000;
constexpr std::uint32_t all = 0xFFFFFFFF;

// The calls of one seed, in the form that rpc_calls.hpp describes.
class calls {
public:
    calls& add(std::uint8_t operation, const ndr_writer& arguments) {
        const auto size = arguments.bytes().size();
        for (const std::size_t each : {std::size_t{operation}, size & 0xFF, size >> 8})
            bytes_ += static_cast<char>(each);
        bytes_.append(reinterpret_cast<const char*>(arguments.bytes().data()), size);
        return *this;
    }
    void write(const std::filesystem::path& to) const {
        std::filesystem::create_directories(to.parent_path());
        std::ofstream(to, std::ios::binary) << bytes_;
    }

private:
    std::string bytes_{'\0'};  // an administrator
};

ndr_writer texts(std::initializer_list<std::string_view> each) {
    ndr_writer out(arguments_bytes_max);
    for (const std::string_view one : each) {
        out.pointer(not one.empty());
        if (not one.empty()) out.text(one);
    }
    return out;
}

ndr_writer list(std::initializer_list<std::string_view> filters, std::uint32_t level) {
    ndr_writer out = texts(filters);
    out.u32(level);
    out.u32(level);
    out.pointer(true);
    out.u32(0);
    out.pointer(false);
    out.u32(all);
    out.pointer(true);
    out.u32(0);
    return out;
}

ndr_writer with_numbers(ndr_writer out, std::initializer_list<std::uint32_t> numbers) {
    for (const std::uint32_t one : numbers)
        out.u32(one);
    return out;
}

// The handle that the server of the targets gives first.
ndr_writer with_handle() {
    smb::wire::rpc_handle first;
    first.id.bytes.front() = std::byte{1};
    ndr_writer out(arguments_bytes_max);
    out.raw(bytes_of(first));
    return out;
}

ndr_writer policy() {
    return with_numbers(texts({"\\\\SERVER"}), {24, 0, 0, 0, 0, 0, 0x02000000});
}

ndr_writer sids(bool has_options) {
    ndr_writer out = with_handle();
    out.u32(2);
    out.pointer(true);
    out.u32(2);
    out.pointer(true);
    out.pointer(true);
    out.sid_referent(smb::wire::sid_everyone);
    out.sid_referent(smb::wire::sid_administrators);
    out.u32(0);
    out.pointer(false);
    out.u16(1);
    return has_options ? with_numbers(std::move(out), {0, 0, 2}) : with_numbers(std::move(out), {0});
}

ndr_writer names(bool has_options) {
    ndr_writer out = with_handle();
    out.u32(2);
    out.u32(2);
    for (const std::string_view one : {"odd", "even"})
        out.counted_text_head(one);
    for (const std::string_view one : {"odd", "even"})
        out.counted_text(one);
    out.u32(0);
    out.pointer(false);
    out.u16(1);
    return has_options ? with_numbers(std::move(out), {0, 0, 2}) : with_numbers(std::move(out), {0});
}

ndr_writer information(std::uint16_t which) {
    ndr_writer out = with_handle();
    out.u16(which);
    return out;
}

void write_lsarpc(const std::filesystem::path& to) {
    calls().add(44, policy()).add(15, sids(false)).add(0, with_handle()).write(to / "lookup_sids");
    calls().add(44, policy()).add(57, sids(true)).write(to / "lookup_sids_2");
    calls().add(44, policy()).add(14, names(false)).write(to / "lookup_names");
    calls().add(44, policy()).add(58, names(true)).add(68, names(true)).write(to / "lookup_names_3");
    calls query;
    query.add(44, policy());
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{3, 5, 6, 12, 14, 2})
        query.add(which == 3 ? 7 : 46, information(which));
    query.write(to / "query_information");
    calls().add(45, with_numbers(texts({"\\\\SERVER"}), {0, 1, 0})).write(to / "get_user_name");
    ndr_writer old(arguments_bytes_max);
    old.pointer(true);
    old.u16('\\');
    calls().add(6, with_numbers(std::move(old), {24, 0, 0, 0, 0, 0, 0x801})).write(to / "open_policy");
}

void write_srvsvc(const std::filesystem::path& to) {
    for (const std::uint32_t level : {0U, 1U, 2U, 10U, 502U})
        calls().add(12, list({"", "", ""}, level)).write(to / ("sessions_" + std::to_string(level)));
    calls().add(12, list({"", "\\\\10.0.0.1", "alice"}, 10)).write(to / "sessions_filtered");
    calls().add(13, texts({"", "\\\\10.0.0.1", "alice"})).write(to / "session_del");
    calls().add(9, list({"", "", ""}, 2)).add(9, list({"", "C:\\", "alice"}, 3)).write(to / "files");
    calls().add(10, with_numbers(texts({""}), {1, 3})).write(to / "file_info");
    calls().add(11, with_numbers(texts({""}), {1})).write(to / "file_close");
    calls().add(8, list({"", "data"}, 1)).add(8, list({"", "\\\\10.0.0.1"}, 0)).write(to / "trees");
    calls().add(15, list({""}, 502)).add(21, with_numbers(texts({""}), {102})).write(to / "shares");
}

void write_wkssvc(const std::filesystem::path& to) {
    calls().add(0, with_numbers(texts({""}), {102})).write(to / "info");
    calls().add(2, list({""}, 0)).add(2, list({""}, 1)).write(to / "users");
}

// The server is handle 1, the domain handle 2, a user handle 3.
ndr_writer with_handle_number(unsigned number) {
    smb::wire::rpc_handle one;
    one.id.bytes.front() = static_cast<std::byte>(number);
    ndr_writer out(arguments_bytes_max);
    out.raw(bytes_of(one));
    return out;
}

ndr_writer domain_to_open(const smb::wire::sid& which) {
    ndr_writer out = with_numbers(with_handle_number(1), {0x02000000});
    out.sid_referent(which);
    return out;
}

calls with_domain(const smb::wire::sid& which) {
    calls opened;
    opened.add(57, with_numbers(texts({"\\\\SERVER"}), {0x02000000}));
    opened.add(7, domain_to_open(which));
    return opened;
}

ndr_writer one_name(std::string_view name) {
    ndr_writer out = with_numbers(with_handle_number(2), {1, 1000, 0, 1});
    out.counted_text_head(name);
    out.counted_text(name);
    return out;
}

void write_samr(const std::filesystem::path& to) {
    const smb::wire::sid own{5, {21, 1, 2, 3}};
    const smb::wire::sid builtin{5, {32}};
    ndr_writer named = with_handle_number(1);
    named.counted_text_head("SERVER");
    named.counted_text("SERVER");
    calls()
        .add(64, with_numbers(texts({"\\\\SERVER"}), {0x02000000, 1, 1, 3, 0}))
        .add(6, with_numbers(with_handle_number(1), {0, all}))
        .add(5, named)
        .add(1, with_handle_number(1))
        .write(to / "domains");
    calls lists = with_domain(own);
    lists.add(13, with_numbers(with_handle_number(2), {0, 0, all}));
    lists.add(11, with_numbers(with_handle_number(2), {0, all}));
    lists.add(15, with_numbers(with_handle_number(2), {0, all}));
    lists.write(to / "lists");
    with_domain(own)
        .add(17, one_name("alice"))
        .add(18, with_numbers(with_handle_number(2), {1, 1000, 0, 1, 1001}))
        .add(65, with_numbers(with_handle_number(2), {1001}))
        .write(to / "lookups");
    calls user = with_domain(own);
    user.add(34, with_numbers(with_handle_number(2), {0x02000000, 1001}));
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{1, 6, 7, 8, 9, 16, 21, 30}) {
        ndr_writer query = with_handle_number(3);
        query.u16(which);
        user.add(which == 21 ? 47 : 36, query);
    }
    user.add(39, with_handle_number(3)).write(to / "user");
    calls about = with_domain(builtin);
    for (const std::uint16_t which : std::initializer_list<std::uint16_t>{1, 2, 5, 30}) {
        ndr_writer query = with_handle_number(2);
        query.u16(which);
        about.add(8, query);
    }
    ndr_writer members = with_numbers(with_handle_number(2), {1, 1, 1, 1});
    members.sid_referent({5, {21, 1, 2, 3, 1001}});
    about.add(16, members).write(to / "builtin");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: rpc_seeds fuzz/seeds\n");
        return 2;
    }
    const std::filesystem::path to = arguments[1];
    write_lsarpc(to / "rpc_lsarpc");
    write_srvsvc(to / "rpc_srvsvc");
    write_wkssvc(to / "rpc_wkssvc");
    write_samr(to / "rpc_samr");
}
