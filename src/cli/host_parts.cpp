#include "cli/host_parts.hpp"

#include "agent/agent_file.hpp"
#include "agent/template.hpp"
#include "domain/run_id.hpp"
#include "domain/trace.hpp"
#include "os/cgroup.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace stint::cli {
namespace {

class HeldHostPermits final : public domain::HeldPermits {
 public:
  explicit HeldHostPermits(limit::HostPermit permit) : permit_(std::move(permit)) {}

  Result<> assign(const std::string& mark, const std::string& label) override {
    return permit_.assign(mark, os::cgroup_path(os::delegated_cgroup(), mark), label);
  }
  [[nodiscard]] std::vector<int> entrust() override { return permit_.entrust(); }
  [[nodiscard]] std::optional<std::uint32_t> slot_of(const std::string& limit) const override {
    return permit_.index_of(limit);
  }
  void release() override { permit_.release(); }

 private:
  limit::HostPermit permit_;
};

constexpr std::string_view kTokenVariable = "STINT_TOKEN=";

using Kind = domain::WorkNews::Kind;
Kind news_of(driver::ProgressKind kind) {
  switch (kind) {
    case driver::ProgressKind::text: return Kind::text;
    case driver::ProgressKind::tool_start: return Kind::tool;
    case driver::ProgressKind::note:
    case driver::ProgressKind::rate_info: return Kind::note;
    case driver::ProgressKind::conversation: return Kind::conversation;
    case driver::ProgressKind::usage: return Kind::usage;
    case driver::ProgressKind::thinking:
    case driver::ProgressKind::tool_end:
    case driver::ProgressKind::heartbeat: break;
  }
  return Kind::life;
}

class ProcessWork final : public domain::Work {
 public:
  /// Of earlier attempts something may be alive, up to `last`; none: of none.
  struct Before {
    driver::HostSurvivors& survivors;
    std::optional<domain::Survivors::Attempt> last;
  };
  using Heard = std::function<void(const std::string&)>;
  /// `all`: where it is as long as it is there. `mask` is the driver's, of what is secret in every run; `own_mask` is
  /// of what this one alone was given.
  ProcessWork(driver::Wardens& wardens, std::unique_ptr<driver::Dialect> dialect, driver::ProcessOptions options,
              driver::Attempt attempt, Before before, std::set<domain::Work*>& all, const driver::SecretMask& mask,
              driver::SecretMask own_mask, const Heard& heard, Listener listener)
      : before_(std::move(before)),
        all_(all),
        mask_(mask),
        own_mask_(std::move(own_mask)),
        pieces_(mask_, own_mask_),
        heard_(heard),
        dialect_(std::move(dialect)),
        listener_(std::move(listener)),
        attempt_(std::make_unique<driver::Attempt>(std::move(attempt))),
        process_(wardens, *dialect_, std::move(options), events()) {
    all_.insert(this);
  }
  ~ProcessWork() override { all_.erase(this); }

  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
    if (before_.last) {
      std::vector<domain::Survivors::Attempt> attempts{*before_.last};
      (void)co_await before_.survivors.end(std::move(attempts), [this] { return process_.ending(); });
    }
    auto ended = co_await process_.run(std::move(attempt_));
    say(pieces_.finish());
    co_return told(std::move(ended));
  }
  void end(OutcomeKind kind, std::string why) override { process_.end(kind, std::move(why)); }
  void hold(bool held) override { process_.hold(held); }

 private:
  driver::ProcessEvents events() {
    driver::ProcessEvents events;
    events.progress = [this](const driver::Progress& progress) {
      domain::WorkNews news;
      news.kind = news_of(progress.kind);
      if (news.kind == Kind::text) return say(words_of(progress.text));
      news.text = progress.text;
      if (news.kind != Kind::conversation) hide_secrets(news.text);
      news.usage = progress.usage;
      listener_(news);
    };
    return events;
  }
  /// A piece is a part of what it says; else it is a whole saying.
  std::string words_of(std::string text) {
    if (!dialect_->has_lines()) return pieces_.add(text);
    hide_secrets(text);
    if (!text.ends_with('\n')) text += '\n';
    return text;
  }
  void say(std::string text) {
    if (heard_ && !text.empty()) heard_(text);
    domain::WorkNews news;
    news.kind = text.empty() ? Kind::life : Kind::text;
    news.text = std::move(text);
    listener_(news);
  }
  Result<std::unique_ptr<domain::WorkReport>> told(Result<std::unique_ptr<driver::ProcessReport>> ended) const {
    if (!ended) return fail(std::move(ended).error());
    const driver::ProcessReport& seen = **ended;
    auto report = std::make_unique<domain::WorkReport>();
    report->outcome = std::move((*ended)->outcome);
    hide_secrets(report->outcome.text);
    hide_secrets(report->outcome.message);
    for (Denial& denial : report->outcome.denials) {
      hide_secrets(denial.call);
      hide_secrets(denial.allow);  // is made of the call
    }
    report->tools_used = seen.tools_used;
    report->processes_ended = seen.processes_ended;
    report->ending = seen.ending;
    return report;
  }
  void hide_secrets(std::string& text) const {
    own_mask_.apply(text);
    mask_.apply(text);
  }

  const Before before_;
  std::set<domain::Work*>& all_;
  const driver::SecretMask& mask_;
  const driver::SecretMask own_mask_;
  driver::MaskedPieces pieces_;
  const Heard& heard_;
  std::unique_ptr<driver::Dialect> dialect_;
  Listener listener_;
  std::unique_ptr<const driver::Attempt> attempt_;  // until it runs
  driver::ProcessAttempt process_;
};

/// A place of its own for a CLI's login and conversations, one for each permit of the agent.
Result<std::string> home_variable(const Reading& reading, const domain::Agent& agent, const std::string& driver,
                                  std::uint32_t slot) {
  const auto homes = std::filesystem::path(reading.place.homes.agents).parent_path() / "homes" / agent.name;
  const std::string home = (homes / std::to_string(slot)).string();
  std::error_code error;
  std::filesystem::create_directories(home, error);
  if (error) return fail(Errc::failed, "cannot make " + home + ": " + error.message());
  std::filesystem::permissions(home, std::filesystem::perms::owner_all, error);
  const std::string variable = driver == "claude" ? "CLAUDE_CONFIG_DIR" : driver == "codex" ? "CODEX_HOME" : "HOME";
  return variable + "=" + home;
}

Result<driver::Attempt> attempt_of(const Reading& reading, const domain::Agent& agent, const domain::WorkOrder& order) {
  domain::Agent filled = agent;
  if (!order.input.prompt.empty()) filled.prompt.text = agent::Template::escape(order.input.prompt);
  STINT_TRY(agent::RenderedAgent rendered, agent::render(filled, order.input.args));
  driver::Attempt attempt;
  attempt.prompt = std::move(rendered.prompt);
  attempt.command = std::move(rendered.command);
  attempt.model = order.input.model.empty() ? agent.model : order.input.model;
  attempt.program = order.input.program;
  attempt.driver_args = agent.driver_args;
  attempt.permissions = agent.permissions.value_or(domain::Permissions::edit);
  attempt.system_prompt = reading.catalogue.system_prompt;
  if (!agent.system_prompt.empty()) {
    if (!attempt.system_prompt.empty()) attempt.system_prompt += "\n\n";
    attempt.system_prompt += agent.system_prompt;
  }
  if (agent.turns_max) attempt.turns_max = static_cast<int>(*agent.turns_max);
  if (agent.tool_names) {
    attempt.driver_args.emplace_back("--tools");
    attempt.driver_args.push_back(fmt::format("{}", fmt::join(*agent.tool_names, ",")));
  }
  if (!agent.tool_names_denied.empty()) {
    attempt.driver_args.emplace_back("--disallowedTools");
    attempt.driver_args.push_back(fmt::format("{}", fmt::join(agent.tool_names_denied, ",")));
  }
  if (order.budget.money_micros) {
    attempt.money_micros_max = std::max<std::int64_t>(0, *order.budget.money_micros - order.usage_before.money_micros);
  }
  if (order.conversation.empty()) return attempt;
  attempt.conversation = order.conversation;
  attempt.usage_before = order.usage_before;
  attempt.prompt = "Your work was interrupted (" + order.interrupted +
                   "). What you had begun may be done, half done or not done: look first, then go on with the task.";
  return attempt;
}

}  // namespace

HostPermits::HostPermits(Reactor& reactor, const domain::Ambient& ambient, CurrentReading reading)
    : ambient_(ambient), reading_(std::move(reading)), limits_(reactor, ambient) {}

bool HostPermits::needed(const std::string& agent) const { return reading_()->permits.contains(agent); }

Task<Result<std::unique_ptr<domain::HeldPermits>>> HostPermits::acquire(std::string agent,
                                                                        std::function<void(std::string)> waits) {
  const auto reading = reading_();
  const auto requests = reading->permits.find(agent);
  if (requests == reading->permits.end()) co_return fail(Errc::invalid, "'" + agent + "' needs no permits");
  limit::Claimant who;
  who.run = domain::new_run_id(ambient_) + ":0";  // nobody's yet: no process carries it
  who.label = agent;
  who.marks = os::mark_parts(os::environment(os::kMarkVariable));
  limit::HostLimits::Options options;
  options.listener = [waits = std::move(waits)](const limit::WaitReason* reason) {
    waits(reason == nullptr ? std::string() : reason->describe());
  };
  std::vector<limit::HostRequest> wanted = requests->second;
  STINT_CO_TRY(limit::HostPermit permit,
               co_await limits_.acquire(std::move(wanted), std::move(who), std::move(options)));
  co_return std::unique_ptr<domain::HeldPermits>(std::make_unique<HeldHostPermits>(std::move(permit)));
}

ProcessDriver::ProcessDriver(Reactor& reactor, CurrentReading reading, Options options)
    : reading_(std::move(reading)),
      options_(std::move(options)),
      survivors_(reactor, options_.grace),
      wardens_(reactor) {}

void ProcessDriver::hold(bool held) {
  held_ = held;
  for (domain::Work* const work : works_) work->hold(held);
}

Result<std::unique_ptr<domain::Work>> ProcessDriver::begin(domain::WorkOrder order, domain::Work::Listener listener) {
  const auto reading = reading_();
  const auto found = reading->book.find(order.agent);
  if (found == reading->book.end()) return fail(Errc::invalid, "the agent '" + order.agent + "' is gone");
  const engine::AgentSpec& spec = found->second;
  if (spec.refused) return fail(*spec.refused);
  const std::string driver =
      order.input.driver.empty() ? std::string(to_string(*spec.agent.driver)) : order.input.driver;
  STINT_TRY(std::unique_ptr<driver::Dialect> dialect, driver::make_dialect(driver));
  STINT_TRY(driver::Attempt attempt, attempt_of(*reading, spec.agent, order));
  driver::ProcessOptions options;
  options.run = order.mark();
  options.cgroup = os::cgroup_path(os::delegated_cgroup(), options.run);
  options.memory_bytes_max = spec.agent.memory_bytes_max.value_or(0);
  options.slots = order.descriptors;
  options.directory = order.input.directory.empty() ? reading->place.project.root.string() : order.input.directory;
  options.idle_timeout = spec.agent.idle_timeout.value_or(options.idle_timeout);
  options.grace = options_.grace;
  if (options_.environment) options.environment = options_.environment(order);
  options.environment.push_back("TRACEPARENT=" + domain::traceparent(order.input.trace, options.run));
  driver::SecretMask own_mask;
  for (const std::string& each : options.environment) {
    if (each.starts_with(kTokenVariable)) own_mask.add(each.substr(kTokenVariable.size()));
  }
  if (spec.agent.home == domain::AgentHome::slot) {
    STINT_TRY(std::string variable, home_variable(*reading, spec.agent, driver, order.slot.value_or(0)));
    options.environment.push_back(std::move(variable));
  }
  ProcessWork::Before before{survivors_, {}};
  if (order.after_loss) before.last = {order.run, order.fence - 1};
  auto work = std::make_unique<ProcessWork>(wardens_, std::move(dialect), std::move(options), std::move(attempt),
                                            std::move(before), works_, options_.mask, std::move(own_mask),
                                            options_.heard, std::move(listener));
  if (held_) work->hold(true);
  return work;
}

}  // namespace stint::cli
