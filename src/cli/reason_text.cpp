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
  const std::string age = holder.since ? age_text(now - *holder.since) : "-";
  if (holder.pid) {
    return fmt::format("{} (pid {}, {}){}", holder.label.empty() ? "-" : printable(holder.label), *holder.pid, age,
                       remarks_on(holder));
  }
  if (!holder.run.empty()) return fmt::format("{} of {} ({})", printable(holder.run), printable(holder.agent), age);
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
  const std::string text = direct_text(reason, now);
  if (!reason.indirect) return text;
  return "behind other runs of its agent in the queue; the first of them waits: " + text;
}

}  // namespace stint::cli
