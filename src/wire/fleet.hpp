/// Runs, events, limits, the pool and the fleet as JSON: the answers of the API, what the commands print with `--json`,
/// and what a command reads from a daemon. Times are milliseconds since 1970, and named `…_at`; durations are `…_ms`.
#pragma once

#include "agent/problem.hpp"
#include "engine/output_slice.hpp"
#include "engine/search.hpp"
#include "engine/views.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

[[nodiscard]] std::string to_json(const engine::RunView& run);
/// A page of runs.
[[nodiscard]] std::string to_json(const std::vector<engine::RunView>& runs, std::string_view next,
                                  const std::optional<engine::Total>& total = {});
[[nodiscard]] std::string to_json(const store::Event& event);
[[nodiscard]] std::string to_json(const std::vector<store::Event>& events, std::string_view cursor);
[[nodiscard]] std::string to_json(const engine::WhyView& why);
[[nodiscard]] std::string to_json(const engine::Receipt& receipt);
[[nodiscard]] std::string to_json(const engine::Submitted& submitted, domain::RunState state);
/// For a run that was accepted and not waited for, with the reason.
[[nodiscard]] std::string accepted_to_json(const engine::Submitted& submitted, std::string_view detail);
[[nodiscard]] std::string to_json(const std::vector<engine::AgentView>& agents,
                                  std::span<const agent::Problem> problems = {});
[[nodiscard]] std::string to_json(const std::vector<engine::LimitView>& limits);
[[nodiscard]] std::string to_json(const engine::FleetHealth& health);
[[nodiscard]] std::string to_json(const engine::FleetStatus& status);
[[nodiscard]] std::string to_json(const engine::FleetView& view);
/// The event that a stream of the feed sends while nothing happens: the server's time, and how far the feed was read.
[[nodiscard]] std::string beat_to_json(WallTime now, std::string_view cursor);
[[nodiscard]] std::string to_json(const store::Output& output);
[[nodiscard]] std::string to_json(const engine::OutputSlice& slice);
[[nodiscard]] std::string resolved_to_json(std::string_view id, domain::RunState state);
[[nodiscard]] std::string resumed_to_json(std::uint64_t woken);

/// Answers of the short form.
[[nodiscard]] std::string short_success(std::string_view result);
[[nodiscard]] std::string short_error(std::string_view error);
[[nodiscard]] std::string short_pending(std::string_view error);  ///< accepted, and its end is not known here
[[nodiscard]] std::string short_refusal(std::string_view detail);

/// An object of names and values: one line of a file of submissions.
[[nodiscard]] Result<domain::ArgumentValues> read_arguments(std::string_view text);
/// A run with its timeline and all its events.
[[nodiscard]] std::string to_json(const engine::RunView& run, const engine::Timeline& timeline,
                                  const std::vector<store::Event>& events);

/// `POST /v1/runs`. `invalid` names the field. Arguments are `args`, by name, or `words`, as on a command line.
struct SubmitRequest {
  engine::Submission submission;
  bool wait = false;
};
[[nodiscard]] Result<SubmitRequest> read_submit(std::string_view body);
[[nodiscard]] Result<domain::Resolution> read_resolve(std::string_view body);
[[nodiscard]] Result<engine::ScaleRequest> read_scale(std::string_view body);
[[nodiscard]] Result<std::uint32_t> read_capacity(std::string_view body);
[[nodiscard]] Result<engine::DrainRequest> read_drain(std::string_view body);
/// For a request without members: fails unless the body is empty or `{}`.
[[nodiscard]] Result<> read_nothing(std::string_view body);
/// `{"for_ms": …}`, or an empty body.
[[nodiscard]] Result<std::optional<Duration>> read_length(std::string_view body, std::string_view name);

}  // namespace stint::wire
