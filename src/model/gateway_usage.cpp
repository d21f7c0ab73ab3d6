#include "model/gateway_usage.hpp"

#include "model/json.hpp"

#include <algorithm>

namespace stint::model {
namespace {

bool is_stream(const AnswerHead& head) {
  const auto type = header(head.headers, "content-type");
  return type && contains(*type, "text/event-stream");
}

bool is_success(int status) { return status >= 200 && status <= 299; }

}  // namespace

GatewayUsage::GatewayUsage(Dialect dialect, AnswerHead head, WallTime now)
    : dialect_(dialect),
      head_(std::move(head)),
      now_(now),
      form_(!is_success(head_.status) ? Form::error
            : is_stream(head_)        ? Form::stream
                                      : Form::body),
      reader_(dialect, {.observes = true, .now = now}) {}

void GatewayUsage::feed(std::string_view bytes) {
  if (form_ == Form::stream) {
    (void)reader_.feed(bytes);  // the events are for callers of our own
    return;
  }
  const std::size_t most = form_ == Form::error ? kErrorBodyMax : kBodyMax;
  body_ += bytes.substr(0, most - std::min(most, body_.size()));
  if (body_.size() == most && form_ == Form::body) unknown_ = 1;
}

AnswerSummary GatewayUsage::finish() {
  AnswerSummary summary;
  if (form_ == Form::error) {
    summary.failure = classify_response(dialect_, head_.status, head_.headers, body_, now_);
    return summary;
  }
  if (form_ == Form::stream) {
    (void)reader_.finish();
  } else if (unknown_ == 0) {
    (void)reader_.read_whole(body_);
  }
  summary.model = reader_.model();
  summary.usage = reader_.usage();
  summary.stopped = reader_.stopped();
  summary.failure = reader_.failure();
  summary.completed = reader_.completed();
  summary.unknown = unknown_ + reader_.ignored();
  const bool is_unread = form_ == Form::body && !summary.completed && !summary.usage;
  if (is_unread) {
    summary.unknown = std::max<std::uint64_t>(summary.unknown, 1);
    if (summary.failure && summary.failure->kind == FailureKind::ambiguous) summary.failure.reset();
  }
  return summary;
}

}  // namespace stint::model
