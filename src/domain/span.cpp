#include "domain/span.hpp"

namespace stint::domain {

std::string_view to_string(SpanKind kind) noexcept {
  switch (kind) {
    case SpanKind::queue: return "queue";
    case SpanKind::limit: return "limit";
    case SpanKind::session: return "session";
    case SpanKind::delay: return "delay";
    case SpanKind::backoff: return "backoff";
    case SpanKind::quota: return "quota";
    case SpanKind::person: return "person";
    case SpanKind::model_call: return "model_call";
    case SpanKind::tool: return "tool";
    case SpanKind::ending: return "ending";
    case SpanKind::working: return "working";
  }
  return "model_call";
}

std::optional<SpanKind> parse_span_kind(std::string_view name) noexcept {
  for (const SpanKind kind : kSpanKinds) {
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace stint::domain
