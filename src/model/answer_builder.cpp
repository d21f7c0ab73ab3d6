#include "model/answer_builder.hpp"

#include "model/json.hpp"

#include <string>
#include <utility>

namespace stint::model {
namespace {

constexpr std::size_t kIdMax = 512;  // of an id or a name that a provider chose

bool is_object(std::string_view arguments) { return parse_object(arguments).has_value(); }

}  // namespace

std::string_view to_string(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::end_turn: return "end_turn";
    case StopReason::max_tokens: return "max_tokens";
    case StopReason::tool_use: return "tool_use";
    case StopReason::refusal: return "refusal";
    case StopReason::pause_turn: return "pause_turn";
    case StopReason::context_window: return "context_window";
    case StopReason::content_filter: return "content_filter";
    case StopReason::other: return "other";
  }
  return "unknown";
}

void AnswerBuilder::start(std::string_view id, std::string_view model) {
  if (started_ || ended()) return;
  started_ = true;
  id_ = one_line(id, kIdMax);
  model_ = one_line(model, kIdMax);
  emit(MessageStarted{.id = id_, .model = model_});
}

void AnswerBuilder::text(std::size_t key, std::string_view delta) {
  if (delta.empty() || ended()) return;
  Part* const part = add(key, Kind::text);
  if (part == nullptr) return;
  append(*part, delta);
  output(delta);
  if (!ended()) emit(TextDelta{std::string(delta)});
}

void AnswerBuilder::thinking(std::string_view delta) {
  if (delta.empty() || ended()) return;
  output_bytes_ += delta.size();  // it is paid for, but it is not output in the sense of has_output_
  emit(ThinkingDelta{std::string(delta)});
}

void AnswerBuilder::begin_call(std::size_t key, std::string_view id, std::string_view name) {
  if (ended()) return;
  const bool is_output = name == kOutputTool;
  if (parts_.contains(key)) return ignore();
  Part* const part = add(key, is_output ? Kind::output : Kind::call);
  if (part == nullptr) return;
  part->open = true;
  part->name = valid_utf8(name.substr(0, kIdMax));
  if (!grow(id.size() + name.size()) || is_output) return;
  part->index = calls_++;
  part->id = valid_utf8(id.substr(0, kIdMax));
  // The dialects find their own ids again by this prefix. The answer's id makes them distinct in a conversation.
  if (part->id.empty()) part->id = std::string(kOwnCallId).append(id_).append("-").append(std::to_string(part->index));
  has_output_ = true;
  emit(CallBegun{.index = part->index, .id = part->id, .name = part->name});
}

void AnswerBuilder::arguments(std::size_t key, std::string_view delta) {
  if (delta.empty() || ended()) return;
  if (Part* const output_part = find(key, Kind::output)) {
    append(*output_part, delta);
    output(delta);
    if (!ended()) emit(TextDelta{std::string(delta)});
    return;
  }
  Part* const part = find(key, Kind::call);
  if (part == nullptr || !part->open) return ignore();
  append(*part, delta);
  output(delta);
  if (!ended()) emit(CallArguments{.index = part->index, .delta = std::string(delta)});
}

void AnswerBuilder::end_call(std::size_t key) {
  const auto found = parts_.find(key);
  if (!ended() && found != parts_.end()) end(found->second);
}

void AnswerBuilder::end_calls() {
  if (ended()) return;
  for (auto& [key, part] : parts_) end(part);
}

void AnswerBuilder::end(Part& part) {
  if (!std::exchange(part.open, false) || part.kind != Kind::call) return;
  CallComplete complete{
      .index = part.index, .call = {.id = part.id, .name = part.name, .arguments = {}}, .malformed = {}};
  if (part.content.empty()) part.content = "{}";  // a tool without parameters
  if (!options_.observes && !is_object(part.content)) {
    complete.malformed = std::exchange(part.content, "{}");
  }
  complete.call.arguments = part.content;
  emit(std::move(complete));
}

void AnswerBuilder::opaque(std::size_t key, std::string_view json) {
  if (ended()) return;
  if (parts_.contains(key)) return ignore();
  Part* const part = add(key, Kind::opaque);
  if (part != nullptr) append(*part, json);
}

bool AnswerBuilder::grow(std::size_t bytes) {
  bytes_ += options_.observes ? 0 : bytes;
  if (bytes_ <= kAnswerBytesMax) return true;
  fail(broken_answer("the answer is longer than " + std::to_string(kAnswerBytesMax) + " bytes"));
  return false;
}

void AnswerBuilder::usage(const Usage& so_far) {
  if (ended() || usage_ == so_far) return;
  usage_ = so_far;
  emit(UsageSoFar{so_far});
}

void AnswerBuilder::stop(StopReason reason, std::string_view verbatim) {
  if (ended() || stopped_) return;
  end_calls();
  if (reason == StopReason::tool_use && calls_ == 0) reason = StopReason::end_turn;  // only of kOutputTool
  stopped_ = Stopped{.reason = reason, .verbatim = one_line(verbatim, kIdMax)};
  emit(*stopped_);
}

void AnswerBuilder::complete() {
  if (ended()) return;
  if (!stopped_) stop(StopReason::other, {});
  completed_ = true;
  emit(AnswerCompleted());
}

void AnswerBuilder::fail(Failure failure) {
  if (ended()) return;
  failure.after_output = has_output_;
  if (has_output_) failure.repeat = Retry::never;
  failure_ = failure;
  emit(AnswerFailed{std::move(failure)});
}

void AnswerBuilder::malformed(std::string_view what) {
  ignore();
  if (!options_.observes) fail(broken_answer(std::string(what)));
}

bool AnswerBuilder::lacks_arguments(std::size_t key) const {
  const auto found = parts_.find(key);
  return found != parts_.end() && found->second.open && found->second.content.empty();
}

AnswerBuilder::Part* AnswerBuilder::add(std::size_t key, Kind kind) {
  const auto found = parts_.find(key);
  if (found != parts_.end()) {
    if (found->second.kind == kind) return &found->second;
    ignore();
    return nullptr;
  }
  if (parts_.size() >= kPartsMax) {
    malformed("the answer has more than " + std::to_string(kPartsMax) + " parts");
    return nullptr;
  }
  Part& part = parts_[key];
  part.kind = kind;
  return &part;
}

AnswerBuilder::Part* AnswerBuilder::find(std::size_t key, Kind kind) {
  const auto found = parts_.find(key);
  return found == parts_.end() || found->second.kind != kind ? nullptr : &found->second;
}

void AnswerBuilder::append(Part& part, std::string_view delta) {
  if (!options_.observes && grow(delta.size())) part.content += delta;
}

void AnswerBuilder::output(std::string_view delta) {
  has_output_ = true;
  output_bytes_ += delta.size();
}

Message AnswerBuilder::message() const {
  Message message{.role = Role::assistant, .content = {}};
  for (const auto& [key, part] : parts_) {
    switch (part.kind) {
      case Kind::output:
      case Kind::text:
        if (!part.content.empty()) message.content.emplace_back(TextBlock{part.content});
        break;
      case Kind::call:
        if (!part.open) {
          message.content.emplace_back(ToolCall{.id = part.id, .name = part.name, .arguments = part.content});
        }
        break;
      case Kind::opaque: message.content.emplace_back(OpaqueBlock{.dialect = dialect_, .json = part.content}); break;
    }
  }
  return message;
}

std::string AnswerBuilder::answer_text() const {
  std::string text;
  for (const auto& [key, part] : parts_) {
    if (part.kind == Kind::output) return part.content;
    if (part.kind == Kind::text) text += part.content;
  }
  return text;
}

}  // namespace stint::model
