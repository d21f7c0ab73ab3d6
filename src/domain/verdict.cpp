#include "domain/verdict.hpp"

#include "domain/budget_core.hpp"
#include "domain/parse_name.hpp"
#include "stint/http_status.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAfterReset = 5s;      // clocks differ, and many clients retry when a window opens
constexpr Duration kUnknownWindow = 60s;  // a rate limit without a time when it ends
constexpr Duration kUnreachable = 15s;    // between two probes of a provider that can't be reached
constexpr int kBrokenConnection = 502;
constexpr Duration kStarved = 5s;  // until the host may have descriptors or memory again

Verdict ends(Settle settle, VerdictRule rule, const Outcome& outcome) {
  Verdict verdict;
  verdict.settle = settle;
  verdict.rule = rule;
  verdict.why = outcome.message;
  return verdict;
}

Verdict doubt(const Outcome& outcome) {
  Verdict verdict = ends(Settle::retry, VerdictRule::effects, outcome);
  verdict.in_doubt = true;
  return verdict;
}

/// Whether and how another attempt may follow one that may have had effects.
enum class Again : std::uint8_t { afresh, resumed, never };
Again again(const Outcome& outcome, const VerdictFacts& facts, bool began) {
  if (!began) return Again::afresh;
  if (facts.on_crash == OnCrash::rerun) return Again::afresh;
  // This also applies to `on_crash: doubt`: an end that the agent itself reported is not a crash.
  return outcome.conversation.empty() ? Again::never : Again::resumed;
}

Verdict retry(const Outcome& outcome, const VerdictFacts& facts, Again how, Duration at_least = {}) {
  if (used_up({.attempts = facts.attempts_max}, {.attempts = facts.number})) {
    Verdict verdict = ends(Settle::failed, VerdictRule::attempts, outcome);
    verdict.why += "; that was attempt " + std::to_string(facts.number) + " of " + std::to_string(facts.attempts_max);
    return verdict;
  }
  Verdict verdict = ends(Settle::retry, VerdictRule::transient, outcome);
  verdict.retry_after = at_least;
  verdict.resumes = how == Again::resumed;
  return verdict;
}

Verdict park(const Outcome& outcome, const VerdictFacts& facts, VerdictRule rule, std::optional<Duration> length) {
  const Again how = again(outcome, facts, facts.tools_used);
  if (how == Again::never) return doubt(outcome);
  Verdict verdict = ends(Settle::park, rule, outcome);
  verdict.pauses_account = true;
  verdict.park_for = length;
  verdict.resumes = how == Again::resumed;
  return verdict;
}

Verdict after_rate_limit(const Outcome& outcome, const VerdictFacts& facts) {
  Duration wait = outcome.retry_after.value_or(kUnknownWindow);
  if (outcome.resets_at) wait = std::max<Duration>(Duration::zero(), *outcome.resets_at - facts.wall_now) + kAfterReset;
  return park(outcome, facts, VerdictRule::quota, wait);
}

Verdict after_api_error(const Outcome& outcome, const VerdictFacts& facts) {
  if (outcome.unreachable) return park(outcome, facts, VerdictRule::unreachable, kUnreachable);
  // Without a status the connection broke, before the answer or within it: treated like a gateway's 502.
  const HttpFailure failure = classify_http_status(outcome.http_status.value_or(kBrokenConnection));
  const bool window = !failure.needs_window || outcome.retry_after.has_value();
  if (failure.retry == Retry::never || !window) return ends(Settle::failed, VerdictRule::permanent, outcome);
  const Again how = again(outcome, facts, facts.tools_used);
  if (how == Again::never) return doubt(outcome);
  if (facts.retries_used_up) {
    const Duration wait = std::max(kUnreachable, outcome.retry_after.value_or(Duration::zero()));
    return park(outcome, facts, VerdictRule::retries, wait);
  }
  return retry(outcome, facts, how, outcome.retry_after.value_or(Duration::zero()));
}

Verdict after_crash(const Outcome& outcome, const VerdictFacts& facts) {
  const bool may_resume = facts.on_crash == OnCrash::resume && !outcome.conversation.empty();
  if (facts.on_crash != OnCrash::rerun && !may_resume) return doubt(outcome);
  return retry(outcome, facts, may_resume ? Again::resumed : Again::afresh);
}

}  // namespace

std::string_view to_string(VerdictRule rule) noexcept {
  switch (rule) {
    case VerdictRule::none: return "none";
    case VerdictRule::transient: return "transient";
    case VerdictRule::permanent: return "permanent";
    case VerdictRule::attempts: return "attempts";
    case VerdictRule::quota: return "quota";
    case VerdictRule::unreachable: return "unreachable";
    case VerdictRule::login: return "login";
    case VerdictRule::retries: return "retries";
    case VerdictRule::starved: return "starved";
    case VerdictRule::effects: return "effects";
    case VerdictRule::open_call: return "open_call";
    case VerdictRule::handed_back: return "handed_back";
    case VerdictRule::cancelled: return "cancelled";
    case VerdictRule::budget: return "budget";
  }
  return "none";
}

std::optional<VerdictRule> parse_verdict_rule(std::string_view name) noexcept {
  return parse_name<VerdictRule>(name, kVerdictRules);
}

Verdict judge(const Outcome& outcome, const VerdictFacts& facts) {
  switch (outcome.kind) {
    case OutcomeKind::succeeded: return ends(Settle::succeeded, VerdictRule::none, outcome);
    case OutcomeKind::cancelled: return ends(Settle::cancelled, VerdictRule::cancelled, outcome);
    case OutcomeKind::over_budget: return ends(Settle::expired, VerdictRule::budget, outcome);
    case OutcomeKind::in_doubt: return doubt(outcome);
    case OutcomeKind::rate_limited: return after_rate_limit(outcome, facts);
    case OutcomeKind::not_logged_in: return park(outcome, facts, VerdictRule::login, std::nullopt);
    case OutcomeKind::api_error: return after_api_error(outcome, facts);
    case OutcomeKind::crashed:
    case OutcomeKind::stalled: return after_crash(outcome, facts);
    case OutcomeKind::agent_error:
    case OutcomeKind::permission_denied:
    case OutcomeKind::out_of_memory: break;
  }
  return ends(Settle::failed, VerdictRule::permanent, outcome);
}

Verdict judge_handed_back(const Outcome& outcome, const VerdictFacts& facts) {
  if (outcome.kind != OutcomeKind::cancelled) return judge(outcome, facts);  // it had ended by itself
  const bool may_resume = facts.on_crash == OnCrash::resume && !outcome.conversation.empty();
  const bool untouched = facts.on_crash == OnCrash::resume && !facts.tools_used;
  if (facts.on_crash != OnCrash::rerun && !may_resume && !untouched) return doubt(outcome);
  Verdict verdict = ends(Settle::hand_back, VerdictRule::handed_back, outcome);
  verdict.resumes = may_resume;
  return verdict;
}

Verdict judge_open_call(const Outcome& outcome) {
  Verdict verdict = doubt(outcome);
  verdict.rule = VerdictRule::open_call;
  if (!verdict.why.empty()) verdict.why += "; ";
  verdict.why += "it ended during a call that must not be repeated";
  return verdict;
}

Verdict judge_starved(const Outcome& outcome) {
  Verdict verdict = ends(Settle::park, VerdictRule::starved, outcome);
  verdict.park_for = kStarved;
  return verdict;
}

}  // namespace stint::domain
