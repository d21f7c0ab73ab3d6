#include "engine/transcript_core.hpp"

#include <algorithm>
#include <charconv>

namespace stint::engine {
namespace {

using Kind = TranscriptItem::Kind;

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

/// None: the transcript does not show it.
std::optional<Kind> kind_of(const TranscriptFact& fact) {
  const std::string& cause = fact.event.cause;
  if (cause == "tool") return Kind::tool;
  if (cause == "note") return Kind::note;
  if (cause == "claimed") return Kind::attempt;
  if (fact.span && fact.span->kind == domain::SpanKind::tool) return Kind::tool_end;
  if (fact.span && fact.span->kind == domain::SpanKind::model_call) return Kind::model_call;
  const auto& settles = domain::kSettles;
  const bool settled = std::ranges::any_of(settles, [&](domain::Settle each) { return to_string(each) == cause; });
  return settled && fact.event.fence.value > 0 ? std::optional(Kind::ended) : std::nullopt;
}

class Reader {
 public:
  Reader(const TranscriptInput& input, TranscriptPlace from) : input_(input) {
    out_.next = from;
    out_.next.byte = std::min(from.byte, input.output.bytes);
    out_.bytes = input.output.bytes;
  }

  Transcript read() {
    for (const TranscriptFact& fact : input_.facts) {
      const auto kind = kind_of(fact);
      const auto until = kind == Kind::ended && is_last_end(fact) ? input_.output.bytes : fact.output_at;
      if (kind && until && !read_text(*until)) {
        out_.more = true;
        return std::move(out_);
      }
      if (kind && is_early(fact)) return std::move(out_);
      if (kind) add(*kind, fact);
      out_.next.seq = fact.event.seq;
    }
    out_.more = !input_.complete || !read_text(input_.output.bytes);
    return std::move(out_);
  }

 private:
  /// Text that came before the fact is not in the store yet.
  [[nodiscard]] bool is_early(const TranscriptFact& fact) const {
    const bool missing = fact.output_at && *fact.output_at > input_.output.bytes;
    return missing && !input_.ended;
  }

  /// Nothing was printed after it.
  [[nodiscard]] bool is_last_end(const TranscriptFact& end) const {
    return input_.complete && std::ranges::none_of(input_.facts, [&](const TranscriptFact& fact) {
             return fact.event.cause == "claimed" && fact.event.seq > end.event.seq;
           });
  }

  /// Adds the output up to byte `until`. False: the page is full.
  bool read_text(std::uint64_t until) {
    until = std::min(until, input_.output.bytes);
    while (out_.next.byte < until) {
      if (text_ >= Transcript::kTextMax) return false;
      OutputSlice slice = slice_output(input_.output, out_.next.byte, input_.ended);
      if (slice.offset > out_.next.byte) {
        TranscriptItem& gap = out_.items.emplace_back();
        gap.kind = Kind::left_out;
        gap.byte = out_.next.byte;
        gap.bytes = slice.offset - out_.next.byte;
        out_.next.byte = slice.offset;
        continue;
      }
      const std::uint64_t room = std::min<std::uint64_t>(until - slice.offset, Transcript::kTextMax - text_);
      const bool cut = room < slice.text.size();
      if (cut) slice.text.resize(static_cast<std::size_t>(room));
      if (cut && slice.offset + room < until) drop_unfinished(slice.text);
      if (slice.text.empty()) return true;  // the rest is an incomplete character
      text_ += slice.text.size();
      TranscriptItem& item = out_.items.emplace_back();
      item.byte = slice.offset;
      out_.next.byte = slice.offset + slice.text.size();
      item.text = std::move(slice.text);
    }
    return true;
  }

  void add(Kind kind, const TranscriptFact& fact) {
    TranscriptItem& item = out_.items.emplace_back();
    item.kind = kind;
    item.seq = fact.event.seq;
    item.at = fact.event.at;
    item.fence = fact.event.fence;
    item.byte = out_.next.byte;
    item.text = kind == Kind::ended ? fact.event.cause : fact.note;
    item.error = fact.event.error;
    if (!fact.span) return;
    item.name = fact.span->name;
    item.text = fact.span->text;
    item.length = fact.span->length;
    item.usage = fact.span->usage;
  }

  const TranscriptInput& input_;
  Transcript out_;
  std::size_t text_ = 0;
};

}  // namespace

std::string to_string(const TranscriptPlace& place) {
  return std::to_string(place.seq) + "." + std::to_string(place.byte);
}

std::optional<TranscriptPlace> parse_transcript_place(std::string_view text) noexcept {
  TranscriptPlace place;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::int64_t byte = 0;
  if (!read_number(text.substr(0, dot), place.seq) || !read_number(text.substr(dot + 1), byte)) return std::nullopt;
  place.byte = static_cast<std::uint64_t>(byte);
  return place;
}

std::string_view to_string(TranscriptItem::Kind kind) noexcept {
  switch (kind) {
    case Kind::text: return "text";
    case Kind::left_out: return "left_out";
    case Kind::attempt: return "attempt";
    case Kind::tool: return "tool";
    case Kind::tool_end: return "tool_end";
    case Kind::model_call: return "model_call";
    case Kind::note: return "note";
    case Kind::ended: return "ended";
  }
  return "note";
}

Transcript make_transcript(const TranscriptInput& input, TranscriptPlace from) { return Reader(input, from).read(); }

}  // namespace stint::engine
