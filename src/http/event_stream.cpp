#include "http/event_stream.hpp"

#include <fmt/format.h>

namespace stint::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += name;
  out += ": ";
  for (const char c : value) {
    if (c != '\r' && c != '\n' && c != '\0') out += c;
  }
  out += '\n';
}

}  // namespace

std::string event_text(const Event& event) {
  std::string out;
  out.reserve(event.data.size() + event.id.size() + event.name.size() + 32);
  append_field(out, "id", event.id);
  append_field(out, "event", event.name);
  std::string_view rest = event.data;
  while (true) {
    const std::size_t end = rest.find_first_of("\r\n");
    out += "data: ";
    out += rest.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    rest.remove_prefix(rest.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
  out += '\n';
  return out;
}

Task<Response> EventStream::run(Task<> body) {
  StreamHead head;
  head.content_type = "text/event-stream";
  head.headers.emplace_back("Cache-Control", "no-store");
  head.heartbeat = ":\n\n";
  head.endless = true;
  co_return co_await exchange_.stream(std::move(head), std::move(body));
}

Task<Result<>> EventStream::send(const Event& event) { return exchange_.send(event_text(event)); }

Task<Result<>> EventStream::send_retry(Duration after) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(after).count();
  return exchange_.send(fmt::format("retry: {}\n\n", count));
}

}  // namespace stint::http
