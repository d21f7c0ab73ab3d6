#include "cli/reason_text.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_text.hpp"
#include "cli/printable.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stint::cli {
namespace {

using domain::WaitCause;
using domain::WaitReason;

constexpr std::size_t kHoldersShown = 3;

/// Describes what is unusual about the process of a holder.
std::string remarks_on(const domain::LimitEntry& holder) {
  std::string text;
  if (!holder.user.empty()) text += " of " + printable(holder.user);
  if (holder.unjudged)
    text += ", which was killed; only that user or root can check for leftover processes and end them";
  if (holder.other_container)
    text += " in another container (if that container is gone for good, empty the slot's file)";
  if (holder.swept) text += ", which was killed; its leftover processes are being ended";
  if (holder.counts_to) text += fmt::format(", which uses the capacity {}", *holder.counts_to);
  return text;
}

std::string paused_text(const WaitReason& reason, const std::string& until) {
  const std::string limit = printable(reason.limit);
  std::string text = fmt::format("{0} is paused{1}; `stint resume {0}` ends that", limit, until);
  if (!reason.behind.empty()) {
    text +=
        fmt::format(". It is paused since run {} was parked: {}", printable(reason.behind), printable(reason.detail));
  }
  return text;
}

std::string ending_text(const WaitReason& reason) {
  std::string text = fmt::format("its processes are being ended ({})", printable(reason.detail));
  if (reason.beyond.empty()) return text;
  return text + fmt::format("; Stint may not signal {}, which runs as another user: end it as that user, or as root",
                            printable(reason.beyond));
}

std::string direct_text(const WaitReason& reason, WallTime now) {
  const std::string until = until_text(reason.until, now);
  const std::string detail = printable(reason.detail), limit = printable(reason.limit);
  switch (reason.cause) {
    case WaitCause::session:
      return fmt::format("an earlier run of its session has not ended: {} is {}", printable(reason.behind),
                         reason.behind_state ? to_string(*reason.behind_state) : "not ended");
    case WaitCause::delay: return "delayed start" + until;
    case WaitCause::backoff: return "back-off after a failed attempt" + until;
    case WaitCause::quota: return fmt::format("parked: {} is paused{}", limit.empty() ? "its account" : limit, until);
    case WaitCause::person: return "parked: it waits for a person" + (limit.empty() ? "" : ", on " + limit) + until;
    case WaitCause::paused: return paused_text(reason, until);
    case WaitCause::probe:
      return fmt::format("{} was paused and now admits only {} at once", limit,
                         reason.ramp ? std::to_string(*reason.ramp) : "few");
    case WaitCause::limit: return "no free permit: " + limit_text(reason, now);
    case WaitCause::turn:
      return fmt::format("a larger request of {} is served first: {}{}", printable(reason.turn_of),
                         limit_text(reason, now), until);
    case WaitCause::place:
      return fmt::format("number {}{} in the queue of its agent", reason.place.value_or(0),
                         reason.place >= store::kPlaceMax ? " or later" : "");
    case WaitCause::workers:
      if (reason.capacity.value_or(0) == 0) return "the pool has no workers";
      return fmt::format("all {} workers of this daemon are busy", *reason.capacity);
    case WaitCause::shortage: return (reason.shortage ? shortage_text(*reason.shortage) : detail) + until;
    case WaitCause::agent: return detail.empty() ? "this daemon has no file for its agent" : detail;
    case WaitCause::permits: return "can't take permits of this host: " + detail;
    case WaitCause::network: return fmt::format("it waits for the network or its provider ({})", detail);
    case WaitCause::ending: return ending_text(reason);
    case WaitCause::leftovers:
      return "it waits until the processes of an earlier attempt have ended; they are being ended";
    case WaitCause::store: return "its output can't be stored: " + detail;
    case WaitCause::other: return detail;
  }
  return std::string(to_string(reason.cause));
}

}  // namespace

std::string limit_text(const WaitReason& reason, WallTime now) {
  std::string text = printable(reason.limit) + ": ";
  text += reason.capacity ? fmt::format("{} of {} held", reason.held, *reason.capacity)
                          : fmt::format("{} held", reason.held);
  std::vector<std::string> holders;  // a holder of several units is named once
  for (const domain::LimitEntry& each : reason.holders) {
    std::string holder = holder_text(each, now);
    if (std::ranges::find(holders, holder) == holders.end()) holders.push_back(std::move(holder));
  }
  for (std::size_t i = 0; i < std::min(holders.size(), kHoldersShown); ++i) {
    text += (i == 0 ? " by " : ", ") + holders[i];
  }
  if (holders.size() > kHoldersShown) text += fmt::format(" and {} more", holders.size() - kHoldersShown);
  if (reason.weight > 1) text += fmt::format("; it needs {}", reason.weight);
  if (reason.ahead) {
    text += *reason.ahead == 0 ? std::string("; next in line") : fmt::format("; {} ahead in line", *reason.ahead);
  }
  return text;
}

std::string holder_text(const domain::LimitEntry& holder, WallTime now) {
  std::string about = holder.pid ? fmt::format("pid {}", *holder.pid) : std::string();
  if (holder.since) about += (about.empty() ? "" : ", ") + age_text(now - *holder.since);
  if (!about.empty()) about = " (" + about + ")";
  if (!holder.run.empty()) {
    std::string text = printable(holder.run);
    if (!holder.agent.empty()) text += " of " + printable(holder.agent);
    const std::string& title = holder.title.empty() ? holder.label : holder.title;
    if (!title.empty() && title != holder.agent) text += fmt::format(" “{}”", printable(title));
    return text + about + remarks_on(holder);
  }
  if (holder.pid) return (holder.label.empty() ? "-" : printable(holder.label)) + about + remarks_on(holder);
  return "another tool, by flock";
}

std::string shortage_text(const domain::Shortage& shortage) {
  using Kind = domain::Shortage::Kind;
  switch (shortage.kind) {
    case Kind::checkout:
      return fmt::format("the checkout {} no longer exists: it was deleted or moved", printable(shortage.path));
    case Kind::memory:
      return fmt::format("only {} MiB of memory are free; a run needs {} to begin", shortage.amount >> 20,
                         shortage.bound >> 20);
    case Kind::descriptors: return fmt::format("{} of {} file descriptors are in use", shortage.amount, shortage.bound);
    case Kind::cost_per_day:
      return fmt::format("the fleet has spent {} of {} today (budget.cost_per_day)",
                         agent::format_cost(shortage.amount), agent::format_cost(shortage.bound));
  }
  return std::string(to_string(shortage.kind));
}

std::string reason_text(const WaitReason& reason, WallTime now) {
  if (!reason.indirect) return direct_text(reason, now);
  WaitReason first = reason;  // the place in line is that of the first run, not of this one
  first.ahead.reset();
  std::string text = "behind other runs of its agent in the queue; the first of them waits: " + direct_text(first, now);
  if (reason.ahead) {
    text += *reason.ahead == 0 ? std::string("; the first of them is next in line")
                               : fmt::format("; {} ahead of the first of them in line", *reason.ahead);
  }
  return text;
}

std::string verdict_text(const engine::AttemptLane& lane) {
  using domain::RunState;
  using domain::VerdictRule;
  if (!lane.verdict || !lane.ended) return {};
  const domain::VerdictRecord& verdict = *lane.verdict;
  const std::string length = verdict.after ? " for " + length_text(*verdict.after) : std::string();
  const std::string limit = verdict.limit.empty() ? "" : ", and " + printable(verdict.limit) + " is paused";
  const std::string how = verdict.resumes ? "; the next attempt continues the conversation" : "";
  const bool goes_on = lane.state == RunState::queued || lane.state == RunState::parked;
  switch (verdict.rule) {
    case VerdictRule::none: return {};
    case VerdictRule::permanent: return "not repeated: the same would happen again";
    case VerdictRule::attempts:
      return fmt::format("not repeated: that was attempt {} of {}", verdict.attempt, verdict.attempts_max);
    case VerdictRule::effects: return "in doubt: it may have had effects, which must not be repeated";
    case VerdictRule::open_call: return "in doubt: it ended within a call that must not be repeated";
    case VerdictRule::cancelled: return "ended because it was cancelled";
    case VerdictRule::budget: return "ended because its budget is used up";
    case VerdictRule::handed_back:
      return goes_on ? "handed back, because its node drains: it uses up no attempt" + how
                     : "not continued after its node drained";
    case VerdictRule::transient:
      if (!goes_on) return "not repeated: it ended before the next attempt could begin";
      return fmt::format("attempt {} of {}: repeated after {}{}", verdict.attempt, verdict.attempts_max,
                         length_text(verdict.after.value_or(Duration::zero())), how);
    case VerdictRule::quota: return "a rate limit: parked" + length + limit + how;
    case VerdictRule::unreachable: return "the provider can't be reached: parked" + length + limit + how;
    case VerdictRule::login: return "not logged in: parked until a person has logged in" + limit + how;
    case VerdictRule::retries: return "the retries of its account are used up: parked" + length + limit + how;
    case VerdictRule::starved: return "its host lacks something: parked" + length;
  }
  return {};
}

}  // namespace stint::cli
