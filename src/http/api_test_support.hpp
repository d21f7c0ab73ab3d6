/// Asks an Api without a server: a fleet that has nothing, a client that is not there.
#pragma once

#include "engine/reports.hpp"
#include "http/api.hpp"
#include "net/request_reader.hpp"
#include "stint/notification.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::http {

/// Fails every call, and records the run or limit it was called with.
class NoFleet : public fleet::Fleet {
 public:
  std::string asked;
  bool empty = false;  ///< it answers: it has no agents and no limits, and refuses runs and names as invalid

  Task<Result<std::vector<Result<engine::Submitted>>>> submit(std::vector<engine::Submission>) override {
    if (!empty) co_return fail(Errc::failed, "no fleet");
    std::vector<Result<engine::Submitted>> answers;
    answers.push_back(fail(Errc::invalid, "no such agent"));
    co_return answers;
  }
  Task<Result<std::optional<engine::RunView>>> find(std::string id) override { return no(std::move(id)); }
  Task<Result<std::vector<engine::RunView>>> list(store::Filter) override { return no(); }
  Task<Result<engine::RunPage>> search(engine::Search) override { return no(); }
  Task<Result<engine::BatchAnswer>> begin_batch(engine::BatchRequest) override { return no(); }
  Task<Result<std::optional<store::Batch>>> batch(std::string id) override { return no(std::move(id)); }
  Task<Result<std::vector<store::Batch>>> batches(store::BatchNumber, std::uint32_t) override { return no(); }
  Task<Result<std::optional<store::Batch>>> stop_batch(std::string id) override { return no(std::move(id)); }
  Task<Result<std::vector<store::Event>>> events(std::string, std::int64_t, std::uint32_t) override { return no(); }
  Task<Result<store::FeedPage>> feed(std::string, std::uint32_t) override { return no(); }
  Task<Result<store::Output>> output(std::string) override { return no(); }
  Task<Result<engine::WhyView>> why(std::string) override { return no(); }
  Task<Result<engine::Timeline>> timeline(std::string) override { return no(); }
  Task<std::uint64_t> changed(std::string, std::uint64_t, Duration) override { co_return 0; }
  Task<Result<engine::Receipt>> cancel(std::string) override { return no(); }
  Task<Result<engine::Submitted>> retry(std::string) override { return no(); }
  Task<Result<domain::RunState>> resolve(std::string, domain::Resolution) override { return no(); }
  Task<Result<>> answer(std::string) override { return no(); }
  Task<Result<std::vector<engine::AgentView>>> agents() override {
    if (empty) co_return std::vector<engine::AgentView>();
    co_return fail(Errc::failed, "no fleet");
  }
  Task<Result<std::optional<engine::AgentDetail>>> agent(std::string name) override {
    asked = std::move(name);
    if (empty) co_return std::nullopt;
    co_return fail(Errc::failed, "no fleet");
  }
  Task<Result<engine::CostReport>> cost(engine::CostQuery) override { return no(); }
  Task<Result<store::Series>> series(store::SeriesQuery) override { return no(); }
  Task<Result<std::vector<engine::LimitView>>> limits() override {
    if (empty) co_return std::vector<engine::LimitView>();
    co_return fail(Errc::failed, "no fleet");
  }
  Task<Result<>> resize_limit(std::string name, std::uint32_t) override { return no(std::move(name)); }
  Task<Result<>> pause(std::string name, std::optional<Duration>) override { return no(std::move(name)); }
  Task<Result<std::uint64_t>> resume(std::string name) override {
    asked = std::move(name);
    co_return fail(empty ? Errc::invalid : Errc::failed, "no fleet");
  }
  Task<Result<engine::FleetStatus>> status() override { return no(); }
  Task<Result<engine::FleetHealth>> health() override { return no(); }
  engine::Phase phase() const override { return engine::Phase::serving; }
  Task<Result<engine::FleetHealth>> scale(engine::ScaleRequest) override { return no(); }
  Task<Result<>> drain(engine::DrainRequest) override { return no(); }

 private:
  struct No {
    template <class T>
    operator Task<Result<T>>() const {  // NOLINT: stands for any of them
      return failed<T>();
    }
    template <class T>
    static Task<Result<T>> failed() {
      co_return fail(Errc::failed, "no fleet");
    }
  };
  No no(std::string about = {}) {
    asked = std::move(about);
    return {};
  }
};

class NoExchange final : public Exchange {
 public:
  Task<Response> stream(StreamHead, Task<>) override { co_return Response(); }
  Task<Result<>> send(std::string) override { co_return fail(Errc::closed, "no client"); }
  std::string peer() const override { return "no client"; }
  bool draining() const noexcept override { return false; }
  bool reserved() const noexcept override { return in_reserve; }
  bool in_reserve = false;

 private:
  Task<> departure() override { co_await departed_.wait(departed_.count()); }
  Notification departed_;
};

/// Adds the headers of a JSON body, if there is a body and no header.
inline Response ask_api(Api& api, Exchange& exchange, std::string_view method, std::string_view target,
                        std::string_view body = "", std::string_view header = "") {
  net::RequestReader reader{{}};
  std::string head = std::string(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: x\r\n").append(header);
  if (!body.empty() && header.empty()) {
    head += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  reader.feed(head + "\r\n");
  if (!body.empty()) reader.feed(body);
  EXPECT_EQ(reader.state(), net::RequestReader::State::done) << head;
  const auto keep = [](Task<Response> answer, Response& out) -> Task<> { out = co_await std::move(answer); };
  Response response;
  Simulator sim;
  RootScope scope(sim);
  scope.spawn(keep(api.answer(reader.request(), exchange), response));
  sim.settle();
  return response;
}

}  // namespace stint::http
