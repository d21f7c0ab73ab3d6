/// For tests of calls: a provider in virtual time that speaks the `chat` dialect, one reply by a script for each
/// request, and a sink that records.
#pragma once

#include "model/caller.hpp"
#include "model/upstream_test_support.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace stint::model {

inline constexpr int kAnswered = 200;

/// One reply; empty by default.
struct ScriptedReply {
  struct Piece {
    Duration wait{};
    std::string bytes;
  };
  Duration first_byte = std::chrono::milliseconds(100);
  std::optional<Error> instead{};  ///< of a head
  int status = kAnswered;
  Headers headers{};
  std::vector<Piece> pieces{};
  std::optional<Error> breaks{};  ///< instead of the end of the body
};

inline std::string script_text(const std::string& text) {
  return R"(data: {"id":"c1","object":"chat.completion.chunk","model":"test-1","choices":[{"index":0,"delta":{"content":")" +
         text +
         R"("},"finish_reason":null}]})"
         "\n\n";
}
inline std::string script_end(int input, int output) {
  return R"(data: {"id":"c1","object":"chat.completion.chunk","model":"test-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
         "\n\n"
         R"(data: {"id":"c1","object":"chat.completion.chunk","model":"test-1","choices":[],"usage":{"prompt_tokens":)" +
         std::to_string(input) + R"(,"completion_tokens":)" + std::to_string(output) +
         R"(,"total_tokens":0}})"
         "\n\n"
         "data: [DONE]\n\n";
}
inline ScriptedReply whole_reply(Duration between = std::chrono::milliseconds(200)) {
  ScriptedReply reply;
  reply.pieces = {{between, script_text("Good")}, {between, script_text(" morning")}, {between, script_end(100, 8)}};
  return reply;
}
inline ScriptedReply refusal_with(int status, Headers headers = {}, std::string body = "{}") {
  ScriptedReply reply;
  reply.status = status;
  reply.headers = std::move(headers);
  reply.pieces = {{Duration(), std::move(body)}};
  return reply;
}

class ScriptedTransport final : public Transport {
 public:
  using Script = std::function<ScriptedReply(const WireRequest& request)>;

  ScriptedTransport(Simulator& sim, Script replies) : script(std::move(replies)), sim_(sim) {}

  Task<Result<std::unique_ptr<Exchange>>> open(WireRequest request) override {
    ScriptedReply reply = script(request);
    starts.push_back(sim_.now());
    requests.push_back(std::move(request));
    auto running = std::make_unique<Running>(*this, std::move(reply));
    co_await sleep_for(running->reply.first_byte);
    if (running->reply.instead) co_return std::unexpected(*running->reply.instead);
    co_return std::unique_ptr<Exchange>(std::move(running));
  }

  Script script;
  std::vector<TimePoint> starts;
  std::vector<WireRequest> requests;
  std::uint32_t active = 0, active_most = 0;

 private:
  class Running final : public Exchange {
   public:
    Running(ScriptedTransport& transport, ScriptedReply made) : reply(std::move(made)), transport_(transport) {
      transport_.active_most = std::max(transport_.active_most, ++transport_.active);
    }
    ~Running() override { --transport_.active; }

    [[nodiscard]] int status() const noexcept override { return reply.status; }
    [[nodiscard]] const Headers& headers() const noexcept override { return reply.headers; }
    [[nodiscard]] Task<Result<std::string>> next() override {
      if (at_ == reply.pieces.size()) {
        if (reply.breaks) co_return std::unexpected(*reply.breaks);
        co_return std::string();
      }
      co_await sleep_for(reply.pieces[at_].wait);
      co_return reply.pieces[at_++].bytes;
    }

    const ScriptedReply reply;

   private:
    ScriptedTransport& transport_;
    std::size_t at_ = 0;
  };

  Simulator& sim_;
};

class RecordingSink final : public CallSink {
 public:
  void on_event(const StreamEvent& event) override {
    if (const auto* delta = std::get_if<TextDelta>(&event)) text += delta->text;
  }
  void on_span(const domain::Span& span) noexcept override { spans.push_back(span); }
  [[nodiscard]] std::size_t count(domain::SpanKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(spans, kind, &domain::Span::kind));
  }

  std::string text;
  std::vector<domain::Span> spans;
};

inline ModelRequest test_request(std::string text = "Say good morning.") {
  ModelRequest request;
  request.model = "test-1";
  request.messages.push_back({.role = Role::user, .content = {TextBlock{std::move(text)}}});
  return request;
}

}  // namespace stint::model
