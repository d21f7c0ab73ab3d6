#include "wire/demo_event.hpp"

#include "wire/values.hpp"

#include <fmt/format.h>

namespace stint::wire {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view to_string(DemoEventKind kind) noexcept {
  switch (kind) {
    case DemoEventKind::waits: return "waits";
    case DemoEventKind::enters: return "enters";
    case DemoEventKind::leaves: return "leaves";
    case DemoEventKind::gives_up: return "gives_up";
    case DemoEventKind::cancelled: return "cancelled";
    case DemoEventKind::refused: return "refused";
    case DemoEventKind::sent_home: return "sent_home";
    case DemoEventKind::resized: return "resized";
    case DemoEventKind::closes: return "closes";
  }
  return "unknown";
}

std::string to_json(const DemoEvent& event) {
  std::string out = fmt::format(R"({{"event":"{}","at_ms":{})", to_string(event.kind), to_ms(event.at));
  if (!event.who.empty()) {
    out += fmt::format(R"(,"who":"{}","units":{},"took_ms":{})", escaped(event.who), event.units, to_ms(event.took));
  }
  if (event.kind == DemoEventKind::waits) out += fmt::format(R"(,"place":{})", event.place);
  if (event.kind == DemoEventKind::cancelled) out += fmt::format(R"(,"was_inside":{})", event.was_inside);
  out += fmt::format(R"(,"capacity":{},"inside":{},"waiting":{}}})", event.capacity, event.inside, event.waiting);
  return out;
}

std::string to_json(const DemoSummary& summary) {
  return fmt::format(
      R"({{"event":"summary","took_ms":{},"granted":{},"gave_up":{},"cancelled":{},"refused":{},"sent_home":{},)"
      R"("inside_max":{},"capacity_max":{},"over_limit":{},"debt_max":{},"waiting_max":{},"wait_ms_max":{},)"
      R"("permits_out":{},"interrupted":{}}})",
      to_ms(summary.took), summary.granted, summary.gave_up, summary.cancelled, summary.refused, summary.sent_home,
      summary.inside_max, summary.capacity_max, summary.over_limit, summary.debt_max, summary.line_max,
      to_ms(summary.wait_max), summary.permits_out, summary.interrupted);
}

}  // namespace stint::wire
