#include "cli/host_parts.hpp"

#include "agent/agent_file.hpp"
#include "agent/files.hpp"
#include "agent/template.hpp"
#include "agent/trust.hpp"
#include "domain/run_id.hpp"
#include "domain/trace.hpp"
#include "os/cgroup.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "os/variables.hpp"

#include <fmt/format.h>

#include <charconv>
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
        price_(attempt.price),
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
      waits_ = true;
      const auto ending = co_await before_.survivors.end(std::move(attempts), [this] { return process_.ending(); });
      waits_ = false;
      if (!ending.left.empty()) {  // it may begin when they are gone: the run is parked, and tried again
        co_return fail(Error(Errc::exhausted, Retry::safe,
                             "processes of an earlier attempt do not end, not even by SIGKILL: " + ending.left));
      }
    }
    if (!first_note_.empty()) {
      domain::WorkNews news;
      news.kind = Kind::note;
      news.text = std::move(first_note_);
      listener_(news);
    }
    auto ended = co_await process_.run(std::move(attempt_));
    end_parts();
    say(pieces_.finish());
    co_return told(std::move(ended));
  }
  void end(OutcomeKind kind, std::string why) override { process_.end(kind, std::move(why)); }
  void hold(bool held) override { process_.hold(held); }
  /// The conversation to go on with may never have begun.
  void doubt_conversation() noexcept { may_be_unknown_ = true; }
  /// Is said before anything of the process.
  void begin_with(std::string note) { first_note_ = std::move(note); }
  [[nodiscard]] bool is_ending() const override { return waits_ || process_.ending(); }
  [[nodiscard]] std::string waits_for() const override {
    return waits_ ? "it begins when the processes of an earlier attempt are gone; they are being ended"
                  : process_.waits_for();
  }

 private:
  driver::ProcessEvents events() {
    driver::ProcessEvents events;
    events.progress = [this](const driver::Progress& progress) {
      domain::WorkNews news;
      news.kind = news_of(progress.kind);
      if (news.kind == Kind::text && progress.is_part) return say_part(progress.text);
      if (news.kind != Kind::life && news.kind != Kind::usage) end_parts();
      if (news.kind == Kind::text) return say(words_of(progress.text));
      news.text = progress.text;
      if (news.kind != Kind::conversation) hide_secrets(news.text);
      news.usage = priced(progress.usage);
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
  /// A delta comes out as it was sent; a line ends with the message.
  void say_part(std::string_view text) {
    if (!text.empty()) in_line_ = !text.ends_with('\n');
    say(pieces_.add(text));
  }
  void end_parts() {
    if (std::exchange(in_line_, false)) say(pieces_.finish() + "\n");
  }
  /// What it cost, where only the tokens are known and the settings have a price.
  [[nodiscard]] Usage priced(Usage usage) const {
    if (usage.money_micros == 0 && price_.known()) usage.money_micros = price_.of(usage);
    return usage;
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
    report->outcome.usage = priced(report->outcome.usage);
    if (may_be_unknown_ && seen.conversation_unknown) {
      report->never_began = true;
      report->outcome.message = "it had not begun when its process was lost, and begins anew";
    }
    hide_secrets(report->outcome.text);
    hide_secrets(report->outcome.message);
    for (Denial& denial : report->outcome.denials) {
      hide_secrets(denial.call);
      hide_secrets(denial.allow);  // is made of the call
    }
    report->tools_used = seen.tools_used;
    report->processes_ended = seen.processes_ended;
    report->ending = seen.ending;
    report->left = !seen.left.empty();
    return report;
  }
  void hide_secrets(std::string& text) const {
    own_mask_.apply(text);
    mask_.apply(text);
  }

  const Before before_;
  const Price price_;
  bool may_be_unknown_ = false;
  bool in_line_ = false;  // of a message that comes in parts
  std::string first_note_;
  bool waits_ = false;  // for what earlier attempts left alive
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
  STINT_TRY(const auto homes, agent::blocking_find_homes_of_agents(reading.state, reading.place.project));
  const std::string home = (homes / agent.name / std::to_string(slot)).string();
  std::error_code error;
  std::filesystem::create_directories(home, error);
  if (!error) std::filesystem::permissions(homes, std::filesystem::perms::owner_all, error);
  if (!error) std::filesystem::permissions(home, std::filesystem::perms::owner_all, error);
  if (error) return fail(Errc::failed, "cannot make " + home + ": " + error.message());
  const std::string variable = driver == "claude" ? "CLAUDE_CONFIG_DIR" : driver == "codex" ? "CODEX_HOME" : "HOME";
  return variable + "=" + home;
}

/// The folder that a run works in, as a real path. What a store says is data: it may name a folder of the checkout that
/// is served, or of one of its worktrees, or one that this user ran something in.
Result<std::string> blocking_find_folder(const Reading& reading, const std::string& stored) {
  const agent::Project& own = reading.place.project;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(own.root / stored, error);
  if (error || !std::filesystem::is_directory(real, error)) {
    return fail(Errc::invalid,
                fmt::format("the folder of this run, {}, does not exist any more: the checkout was deleted "
                            "or moved. `stint run` or `stint submit` begins it anew",
                            (own.root / stored).string()));
  }
  if (agent::is_within(own.root, real)) return real.string();
  const auto there = agent::blocking_find_project(real);
  if (there && own.is_repository() && there->identity() == own.identity()) return real.string();
  STINT_TRY(const bool allowed, agent::blocking_is_folder_allowed(reading.state, real));
  if (allowed) return real.string();
  return fail(Errc::denied,
              fmt::format("the folder of this run, {}, is not a part of {} or one of its worktrees, and this user ran "
                          "nothing there: a store does not decide where an agent works. `stint run` in that folder, or "
                          "`stint submit` here, begins it anew",
                          real.string(), own.root.string()));
}

/// Whether the folder of a run may have its own files decide what is started there. A run out of the store may name any
/// folder of this machine; trust of the project that is served says nothing about another one.
Result<bool> blocking_is_trusted_there(const Reading& reading, const std::string& directory) {
  const agent::Project& own = reading.place.project;
  if (directory == own.root) return reading.trusted;  // mostly
  STINT_TRY(const agent::Project there, agent::blocking_find_project(directory));
  return agent::blocking_is_trusted(reading.state, there);
}

/// Fails if what the order names must not be started in the folder of its run; else whether that folder is trusted.
Result<bool> blocking_check_order(const Reading& reading, const engine::AgentSpec& spec, const domain::WorkOrder& order,
                                  const std::string& directory, const std::string& named) {
  const std::string& program = order.input.program;
  if (!program.empty() && program != named && !agent::blocking_is_program_allowed(reading.state, program)) {
    return fail(Errc::denied, "the run's program " + program +
                                  " was not named on this machine by this user: a store does not decide what is "
                                  "started. `stint run --program` names it");
  }
  const domain::DriverKind driver = driver_of(spec.agent, order.input.driver);
  STINT_TRY(const bool trusted, blocking_is_trusted_there(reading, directory));
  if (trusted) return true;
  STINT_TRY(const agent::Project there, agent::blocking_find_project(directory));
  auto things = agent::things_that_need_trust(spec.agent, driver);
  for (auto& thing : agent::blocking_find_git_things(there)) things.push_back(std::move(thing));
  if (things.empty()) return false;
  return fail(agent::untrusted(there, things.front()));
}

/// What an agent can't know because its checkout is not trusted; empty: nothing that would be missed.
std::string blocking_what_is_left_out(const std::string& directory, domain::DriverKind driver, bool system_file) {
  std::string files = system_file ? "system.md" : "";
  for (const agent::TrustedThing& thing : agent::blocking_find_cli_settings(directory, driver)) {
    files += (files.empty() ? "" : ", ") + thing.where;
  }
  if (files.empty()) return {};
  return fmt::format("{} is not trusted: {} reads nothing of {}. `stint trust` there allows it", directory,
                     to_string(driver), files);
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
  // A person's own prompt is not the place for a stranger's instructions.
  const bool own_prompt = agent.name == engine::kPromptAgent;
  if (reading.trusted || !own_prompt) attempt.system_prompt = reading.catalogue.system_prompt;
  if (!agent.system_prompt.empty()) {
    if (!attempt.system_prompt.empty()) attempt.system_prompt += "\n\n";
    attempt.system_prompt += agent.system_prompt;
  }
  if (agent.turns_max) attempt.turns_max = static_cast<int>(*agent.turns_max);
  attempt.tools = agent.tool_names;
  attempt.tools_denied = agent.tool_names_denied;
  if (order.budget.tokens) {
    attempt.tokens_max = std::max<std::int64_t>(0, *order.budget.tokens - order.usage_before.tokens());
  }
  if (order.budget.money_micros) {
    attempt.money_micros_max = std::max<std::int64_t>(0, *order.budget.money_micros - order.usage_before.money_micros);
  }
  attempt.new_conversation = order.new_conversation;
  if (order.conversation.empty()) return attempt;
  attempt.conversation = order.conversation;
  attempt.usage_before = order.usage_before;
  attempt.prompt = "Your work was interrupted (" + order.interrupted +
                   "). What you had begun may be done, half done or not done: look first, then go on with the task.";
  return attempt;
}

}  // namespace

std::vector<std::string> secrets_to_withhold(const agent::Environment& environment, const std::string& store) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::vector<std::string> changes;
  // Within a run they are that run's own key, which what is below it may use.
  if (value("STINT_RUN").empty()) changes = {"STINT_TOKEN", "STINT_URL"};
  const std::string address = value("STINT_STORE");
  if (agent::without_password(address) != address) changes.push_back("STINT_STORE=" + agent::without_password(address));
  if (store.find("://") != std::string::npos) changes.emplace_back("PGPASSWORD");
  return changes;
}

std::vector<std::string> untrusted_environment(const agent::Environment& environment,
                                               const std::vector<std::string>& submodules) {
  const auto value = [&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::vector<std::string> changes;
  std::string path;
  const std::string given = value("PATH");
  for (std::size_t from = 0; from <= given.size();) {
    const std::size_t to = std::min(given.find(':', from), given.size());
    const std::string entry = given.substr(from, to - from);
    from = to + 1;
    if (entry.starts_with('/')) path += (path.empty() ? "" : ":") + entry;
  }
  if (path != given) changes.push_back("PATH=" + path);
  std::vector<std::pair<std::string, std::string>> git{
      {"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"diff.ignoreSubmodules", "all"}};
  for (const std::string& name : submodules) {
    if (!name.empty() && !name.contains('\0')) git.emplace_back("submodule." + name + ".ignore", "all");
  }
  std::size_t count = 0;
  const std::string before = value("GIT_CONFIG_COUNT");
  std::from_chars(before.data(), before.data() + before.size(), count);
  for (const auto& [key, text] : git) {
    changes.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", count, key));
    changes.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", count++, text));
  }
  changes.push_back(fmt::format("GIT_CONFIG_COUNT={}", count));
  return changes;
}

HostPermits::HostPermits(Reactor& reactor, const domain::Ambient& ambient, CurrentReading reading)
    : ambient_(ambient), reading_(std::move(reading)), limits_(reactor, ambient) {}

bool HostPermits::needed(const std::string& agent) const {
  return reading_()->permits.contains(std::string(engine::agent_of(agent)));
}

Task<Result<std::unique_ptr<domain::HeldPermits>>> HostPermits::acquire(std::string agent,
                                                                        std::function<void(std::string)> waits) {
  const auto reading = reading_();
  agent = std::string(engine::agent_of(agent));
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

std::string ProcessDriver::choose_conversation(const domain::WorkOrder& order) {
  const auto reading = reading_();
  const auto found = reading->book.find(order.agent);
  if (found == reading->book.end() || !found->second.agent.driver) return {};
  return driver::choose_conversation(
      order.input.driver.empty() ? to_string(*found->second.agent.driver) : std::string_view(order.input.driver),
      order.mark());
}

Result<std::unique_ptr<domain::Work>> ProcessDriver::begin(domain::WorkOrder order, domain::Work::Listener listener) {
  const auto reading = reading_();
  const auto found = reading->book.find(order.agent);
  if (found == reading->book.end()) return fail(Errc::invalid, "the agent '" + order.agent + "' is gone");
  const engine::AgentSpec& spec = found->second;
  if (spec.refused) return fail(*spec.refused);
  const std::string driver =
      order.input.driver.empty() ? std::string(to_string(*spec.agent.driver)) : order.input.driver;
  // Submit has looked, too; but the agent's file may have changed since, and an import was never looked at.
  if (const auto no = spec.refused_drivers.find(driver); no != spec.refused_drivers.end()) return fail(no->second);
  STINT_TRY(std::unique_ptr<driver::Dialect> dialect, driver::make_dialect(driver));
  STINT_TRY(driver::Attempt attempt, attempt_of(*reading, spec.agent, order));
  attempt.price = price_of(spec.prices, attempt.model, driver);
  driver::ProcessOptions options;
  options.run = order.mark();
  options.cgroup = os::cgroup_path(os::delegated_cgroup(), options.run);
  options.memory_bytes_max = spec.agent.memory_bytes_max.value_or(0);
  options.slots = order.descriptors;
  STINT_TRY(options.directory, blocking_find_folder(*reading, order.input.directory));
  STINT_TRY(const bool trusted_there, blocking_check_order(*reading, spec, order, options.directory, options_.program));
  const bool reads_checkout = reading->trusted && trusted_there;
  attempt.reads_checkout = reads_checkout;
  const std::string directory = options.directory;
  options.idle_timeout = spec.agent.idle_timeout.value_or(options.idle_timeout);
  options.grace = options_.grace;
  const auto environment = os::environment_variables();
  options.environment = secrets_to_withhold(environment, reading->place.settings.store);
  if (!reads_checkout) {
    const auto there = agent::blocking_find_project(directory);
    const auto submodules = there ? agent::blocking_find_submodules(*there) : std::vector<std::string>();
    for (std::string& each : untrusted_environment(environment, submodules))
      options.environment.push_back(std::move(each));
  }
  if (options_.environment) {
    for (std::string& each : options_.environment(order)) options.environment.push_back(std::move(each));
  }
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
  const bool left_out = spec.agent.name == engine::kPromptAgent && !reading->catalogue.system_prompt.empty();
  if (!reads_checkout) work->begin_with(blocking_what_is_left_out(directory, driver_of(spec.agent, driver), left_out));
  if (order.may_be_unknown) work->doubt_conversation();
  if (held_) work->hold(true);
  return work;
}

}  // namespace stint::cli
