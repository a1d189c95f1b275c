#include "sluice/cli/status/web/page_frame.hpp"

#include <array>
#include <string>
#include <string_view>

namespace sluice::cli {

namespace {

struct page_link {
    markup path;
    markup title;
};
constexpr std::array links{page_link{"/", "Overview"}, page_link{"/sessions", "Sessions"},
                           page_link{"/files", "Open files"}, page_link{"/rejections", "Rejections"}};
constexpr unsigned usual_refresh_s = 5;

void add_head(html_writer& to, markup title, std::string_view server) {
    to.add("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    to.add("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    to.add("<meta name=\"color-scheme\" content=\"light dark\"><title>").add(title);
    if (not server.empty()) to.add(" – ").text(server);
    to.add("</title><link rel=\"stylesheet\" href=\"/style.css\">");
}

}  // namespace

void add_refresh_query(html_writer& to, unsigned seconds) {
    if (seconds != 0) to.add("?refresh=").number(seconds);
}

void begin_page(html_writer& to, const page_view& view, markup title, markup path) {
    add_head(to, title, view.server);
    if (view.refresh_s != 0)
        to.add("<meta http-equiv=\"refresh\" content=\"").number(view.refresh_s).add("\">");
    to.add("</head><body><header><h1>").text(view.server).add("</h1><nav>");
    for (const page_link& each : links) {
        to.add("<a href=\"").add(each.path);
        add_refresh_query(to, view.refresh_s);
        to.add(each.path.text() == path.text() ? markup("\" aria-current=\"page\">") : markup("\">"));
        to.add(each.title).add("</a>");
    }
    to.add("<a class=\"quiet\" href=\"").add(path);
    add_refresh_query(to, view.refresh_s == 0 ? usual_refresh_s : 0);
    to.add("\">")
        .add(view.refresh_s == 0 ? markup("Reload every 5 s") : markup("Stop reloading"))
        .add("</a>");
    if (not view.form_token.empty()) {
        to.add("<form method=\"post\" action=\"/logoff\"><input type=\"hidden\" name=\"form\" value=\"");
        to.text(view.form_token).add("\"><button class=\"quiet\">Log off</button></form>");
    }
    to.add("</nav></header><main><h2>").add(title).add("</h2>");
}

void end_page(html_writer& to) {
    to.add("</main></body></html>\n");
}

void add_range(html_writer& to, const page_range& range, const page_view& view, markup path, markup entries) {
    to.add("<p>").number(range.all).add(" ").add(entries).add(".");
    const auto add_refresh = [&] {
        if (view.refresh_s != 0) to.add("&amp;refresh=").number(view.refresh_s);
    };
    if (range.after != 0) {
        to.add(" <a href=\"").add(path).add("?after=0");
        add_refresh();
        to.add("\">First page</a>");
    }
    if (range.has_more) {
        to.add(" <a href=\"").add(path).add("?after=").number(range.last);
        add_refresh();
        to.add("\">Next page</a>");
    }
    to.add("</p>");
}

void add_button(html_writer& to, const page_view& view, markup action, std::uint64_t number, markup label) {
    to.add("<form method=\"post\" action=\"").add(action);
    to.add("\"><input type=\"hidden\" name=\"form\" value=\"").text(view.form_token);
    to.add("\"><input type=\"hidden\" name=\"number\" value=\"").number(number);
    to.add("\"><button>").add(label).add("</button></form>");
}

std::string logon_page(std::string_view server, markup problem) {
    html_writer to;
    add_head(to, "Log on", server);
    to.add("</head><body><main class=\"narrow\"><h1>").text(server).add("</h1>");
    if (not problem.text().empty()) to.add("<p class=\"error\">").add(problem).add("</p>");
    to.add("<form method=\"post\" action=\"/logon\"><label>Token of the administrator ");
    to.add("<input type=\"password\" name=\"token\" autocomplete=\"current-password\" required></label>");
    to.add(
        "<button>Log on</button></form><p class=\"quiet\">The file of --web-token-file has the token.</p>");
    end_page(to);
    return to.take();
}

std::string problem_page(http::http_status status, markup explanation) {
    html_writer to;
    add_head(to, "Request rejected", {});
    to.add("</head><body><main class=\"narrow\"><h1>").number(static_cast<unsigned>(status)).add(" ");
    to.text(reason_of(status)).add("</h1><p>").add(explanation).add("</p><p><a href=\"/\">Overview</a></p>");
    end_page(to);
    return to.take();
}

std::string_view style_sheet() noexcept {
    return R"(:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--text:#1b1f24;--quiet:#59636e;--line:#d5dae0;
--blue:#0a5fb4;--green:#1a7f37;--red:#b3261e;--yellow:#8a5a00}
@media(prefers-color-scheme:dark){:root{--back:#0e1116;--card:#171b21;--text:#e6e9ed;--quiet:#9aa4af;--line:#30363d;
--blue:#6cb2ff;--green:#56d071;--red:#ff8a80;--yellow:#e8b64c}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:15px/1.45 system-ui,sans-serif}
header{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;align-items:baseline;padding:.7rem 1rem;background:var(--card);
border-bottom:1px solid var(--line)}
h1{font-size:1.15rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1rem 0 .5rem}h3{font-size:1rem;margin:1.1rem 0 .4rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline}
a{color:var(--blue)}nav a{padding:.2rem 0;text-decoration:none}
nav a[aria-current]{border-bottom:2px solid var(--blue);color:var(--text)}
main{max-width:76rem;margin:0 auto;padding:0 1rem 2rem}.narrow{max-width:28rem;padding-top:2rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem}
.cards div,figure,.table{background:var(--card);border:1px solid var(--line);border-radius:8px}
.cards div{padding:.55rem .75rem}.cards b{display:block;font-size:1.2rem;font-variant-numeric:tabular-nums}
.quiet,.cards span,figcaption span{color:var(--quiet)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:.6rem;margin-top:.6rem}
figure{margin:0;padding:.6rem .75rem}figcaption{display:flex;flex-wrap:wrap;gap:0 .6rem;justify-content:space-between}
figcaption i{font-style:normal}svg{display:block;width:100%;height:7.5rem}
polyline{fill:none;stroke-width:1.8;vector-effect:non-scaling-stroke}
polyline.one{stroke:var(--blue)}polyline.two{stroke:var(--green)}i.one{color:var(--blue)}i.two{color:var(--green)}
.grid{fill:none;stroke:var(--line);vector-effect:non-scaling-stroke}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.38rem .7rem;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}th{color:var(--quiet);font-weight:600;white-space:nowrap}
td{overflow-wrap:anywhere;min-width:4rem}td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.path{min-width:14rem}ul{list-style:none;margin:0;padding:0}
li{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--blue);border-radius:6px;
padding:.45rem .7rem;margin:.35rem 0}
li.warning{border-left-color:var(--yellow)}li.error{border-left-color:var(--red)}.error{color:var(--red)}li.error{color:inherit}
li.note{border-left-color:var(--line)}summary{color:var(--quiet);cursor:pointer;margin:.5rem 0}
form{display:inline}button,input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:6px;
padding:.2rem .6rem}label{display:block}input{display:block;width:100%;margin:.3rem 0 .6rem;padding:.4rem .6rem}
)";
}

}  // namespace sluice::cli
