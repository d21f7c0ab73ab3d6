// The parts of a simulated process: a driver whose agents follow the seed, permits of its host, and a codec.
#include "actors.hpp"

#include "stint/combinators.hpp"

namespace stint::simulation {
namespace {

using namespace std::chrono_literals;

Task<> hear(Notification& notification) { co_await notification.wait(notification.count()); }
Task<> nap(Duration length) { co_await sleep_for(length); }

Error want_of_descriptors(const World& world) {
  return {Errc::exhausted, world.sabotage() == Sabotage::blames_run ? Retry::never : Retry::safe,
          std::string(kStarvedText)};
}

/// Writes plain lines, which only the simulation reads.
class SimRunCodec final : public pool::RunCodec {
 public:
  explicit SimRunCodec(World& world) : world_(world), forgets_(world.sabotage() == Sabotage::forgets_resume) {}
  [[nodiscard]] std::string write(const domain::RunInput& input) const override {
    return world_.families().keep(input);
  }
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view text) const override {
    return world_.families().kept(text);
  }
  [[nodiscard]] std::string write(const domain::RunMemo& memo) const override {
    return std::to_string(memo.usage.out) + (memo.resumes ? " resumes " : " anew ") + memo.conversation + "\n" +
           memo.text;
  }
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view text) const override {
    domain::RunMemo memo;
    const std::string_view first = text.substr(0, text.find('\n'));
    memo.usage.out = std::stoll(std::string(first));
    memo.resumes = first.find(" resumes ") != std::string_view::npos && !forgets_;
    if (!forgets_) memo.conversation = first.substr(first.rfind(' ') + 1);
    return memo;
  }
  [[nodiscard]] std::string write_note(std::string_view text) const override { return std::string(text); }
  [[nodiscard]] std::string write_span(const domain::Span& span) const override { return span.name; }
  [[nodiscard]] std::string write_waits(const std::vector<domain::LimitWait>& waits) const override {
    std::ostringstream out;
    for (const domain::LimitWait& each : waits) {
      out << each.limit << " " << each.ago.count() << " " << each.length.count() << " ";
    }
    return out.str();
  }
  [[nodiscard]] std::vector<domain::LimitWait> read_waits(std::string_view data) const override {
    std::vector<domain::LimitWait> waits;
    std::istringstream in{std::string(data)};
    std::string limit;
    for (Duration::rep ago = 0, length = 0; in >> limit >> ago >> length;) {
      waits.push_back({limit, Duration(ago), Duration(length)});
    }
    return waits;
  }
  [[nodiscard]] std::string read_note(std::string_view data) const override {
    return forgets_ ? std::string() : std::string(data);
  }

 private:
  World& world_;
  const bool forgets_;
};

class SimHeld final : public domain::HeldPermits {
 public:
  SimHeld(World& world, std::map<std::string, std::shared_ptr<Permit>>& assigned, Permit permit)
      : world_(world), assigned_(assigned), permit_(std::make_shared<Permit>(std::move(permit))) {}
  ~SimHeld() override { release(); }

  Result<> assign(const std::string& mark, const std::string&) override {
    mark_ = mark;
    assigned_[mark] = permit_;
    if (world_.sabotage() == Sabotage::early_release) permit_->release();
    return {};
  }
  void release() override {
    if (!mark_.empty()) assigned_.erase(mark_);
    permit_.reset();
  }

 private:
  World& world_;
  std::map<std::string, std::shared_ptr<Permit>>& assigned_;
  std::shared_ptr<Permit> permit_;  // shared with the work: the slot lives as long as either
  std::string mark_;
};

class SimPermits final : public domain::Permits {
 public:
  SimPermits(Process& process, std::map<std::string, std::shared_ptr<Permit>>& assigned)
      : process_(process), assigned_(assigned) {}

  [[nodiscard]] bool needed(const std::string& agent) const override {
    return process_.world.agent(agent).host_cap.has_value();
  }
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(
      std::string agent, std::function<void(const domain::WaitReason*)> waits) override {
    if (process_.line.starved && process_.world.chance(0.5)) co_return fail(want_of_descriptors(process_.world));
    const domain::WaitReason in_line{.cause = domain::WaitCause::limit, .limit = agent, .ahead = 0};
    waits(&in_line);
    STINT_CO_TRY(Permit permit, co_await process_.world.host_limit(process_.host, agent).acquire());
    waits(nullptr);
    co_return std::unique_ptr<domain::HeldPermits>(
        std::make_unique<SimHeld>(process_.world, assigned_, std::move(permit)));
  }

 private:
  Process& process_;
  std::map<std::string, std::shared_ptr<Permit>>& assigned_;
};

class SimWork final : public domain::Work {
 public:
  SimWork(Process& process, domain::WorkOrder order, domain::WorkContext& context, std::shared_ptr<Permit> permit)
      : process_(process),
        world_(process.world),
        order_(std::move(order)),
        context_(context),
        permit_(std::move(permit)) {}

  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
    work_ = world_.begin_work(order_, process_, std::move(permit_));
    const SimAgent& agent = world_.agent(order_.agent);
    const bool talks = agent.on_crash != domain::OnCrash::doubt;
    const std::string conversation = talks ? "c-" + order_.run : std::string();
    if (talks) publish(domain::WorkUpdate::Kind::conversation, conversation);
    if (talks && !over()) co_await race(converse(), hear(work_->end));
    const Duration before_effects = world_.up_to(world_.chance(0.1) ? 60s : 4s);
    co_await work_for(before_effects);
    if (!over()) {
      work_->effects = true;
      world_.story(order_.run).unclean = true;
      publish(domain::WorkUpdate::Kind::tool, world_.some_text("does something"));
      if (talks && !world_.families().spends(order_)) tell_usage();
      publish(domain::WorkUpdate::Kind::text, world_.some_text("says something\n"));
      co_await work_for(world_.up_to(6s));
    }
    if (work_->end_requested && !hurried_) co_await sleep_for(world_.up_to(400ms));
    world_.end_work(work_);
    while (process_.line.frozen) co_await hear(process_.line.changed);
    co_return report(talks, conversation);
  }
  void end(OutcomeKind kind, std::string why) override {
    hurried_ = told_;
    if (!told_) {
      told_ = true;
      kind_ = kind;
      why_ = std::move(why);
    }
    if (work_ == nullptr) return;
    work_->end_requested = true;
    work_->end.notify();
  }

 private:
  [[nodiscard]] bool over() const { return told_ || work_->by_lease; }
  Task<> until_told(Duration most) {
    if (!over()) co_await race(nap(most), hear(work_->end));
  }
  /// An attempt that draws on a budget uses tokens all the time.
  Task<> work_for(Duration length) {
    const TimePoint end = world_.sim().now() + length;
    while (!over() && world_.sim().now() < end) {
      const Duration left = end - world_.sim().now();
      if (!world_.families().spends(order_)) {
        co_await until_told(left);
        continue;
      }
      co_await until_told(std::min<Duration>(left, Families::kStepLeast + world_.up_to(Families::kStepMore)));
      if (over() || process_.line.frozen || process_.line.dead) continue;
      const std::int64_t tokens = world_.families().draw_use();
      usage_.out += tokens;
      co_await world_.families().hear_use(*work_, process_, order_, tokens);
      domain::WorkUpdate update;
      update.kind = domain::WorkUpdate::Kind::usage;
      update.usage = usage_;
      context_.publish(update);
    }
  }
  /// Reads what the attempt continues from, checks it, and appends some messages; sometimes shortens it first.
  Task<> converse() {
    std::vector<std::string> found;
    while (true) {
      const auto page = co_await context_.messages(static_cast<std::uint32_t>(found.size()));
      if (!page) co_return;
      if (page->empty()) break;
      found.insert(found.end(), page->begin(), page->end());
    }
    KeptMessages& kept = world_.story(order_.run).kept;
    if (order_.fence < kept.fence) co_return;  // a later attempt writes already: this one is fenced
    if (found != kept.sure && found != kept.maybe) {
      world_.find_fault(order_.run + ": messages of its conversation are missing or changed");
    }
    kept = {.sure = found, .maybe = found, .fence = order_.fence};
    std::size_t at = order_.conversation.empty() || world_.chance(0.1) ? 0 : found.size();
    for (std::uint64_t more = world_.random()() % 4; more > 0 && !over(); --more, ++at) {
      std::string body = world_.some_text(order_.mark() + " says " + std::to_string(at));
      kept.begin_write(at, body);
      const Result<> stored = co_await context_.keep_message(static_cast<std::uint32_t>(at), std::move(body));
      if (!stored || kept.fence != order_.fence) co_return;
      kept.sure = kept.maybe;
    }
  }
  void publish(domain::WorkUpdate::Kind kind, std::string text) {
    domain::WorkUpdate update;
    update.kind = kind;
    update.text = std::move(text);
    context_.publish(update);
  }
  void tell_usage() {
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::usage;
    update.usage.out = 1;
    context_.publish(update);
  }
  std::unique_ptr<domain::WorkReport> report(bool talks, const std::string& conversation) {
    auto report = std::make_unique<domain::WorkReport>();
    Outcome& outcome = report->outcome;
    outcome.conversation = conversation;
    outcome.message = why_;
    outcome.usage = usage_;
    report->tools_used = work_->effects;
    if (work_->by_lease) {
      outcome.kind = OutcomeKind::in_doubt;
    } else if (told_) {
      outcome.kind = kind_;
    } else {
      world_.draw_outcome(outcome, talks);
    }
    world_.record_report(order_.run, *report);
    return report;
  }

  Process& process_;
  World& world_;
  domain::WorkOrder order_;
  domain::WorkContext& context_;
  std::shared_ptr<Permit> permit_;
  std::shared_ptr<LiveWork> work_;  // shared with the world: work outlives a process that dies
  Usage usage_;
  bool told_ = false, hurried_ = false;
  OutcomeKind kind_ = OutcomeKind::crashed;
  std::string why_;
};

class SimDriver final : public domain::Driver {
 public:
  SimDriver(Process& process, std::map<std::string, std::shared_ptr<Permit>>& assigned)
      : process_(process), assigned_(assigned) {}
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override {
    if (process_.line.starved) return fail(want_of_descriptors(process_.world));
    const auto found = assigned_.find(order.mark());
    std::shared_ptr<Permit> permit = found == assigned_.end() ? nullptr : found->second;
    return std::make_unique<SimWork>(process_, std::move(order), context, std::move(permit));
  }

 private:
  Process& process_;
  std::map<std::string, std::shared_ptr<Permit>>& assigned_;
};

}  // namespace

std::unique_ptr<pool::RunCodec> make_run_codec(World& world) { return std::make_unique<SimRunCodec>(world); }

Process::Process(World& place, std::size_t id, std::size_t at)
    : world(place),
      number(id),
      host(at),
      system(world.clocks().system([&place] { return place.random()(); },
                                   world.up_to(std::chrono::minutes(20)) - std::chrono::minutes(10))),
      store(std::make_unique<ShakyStore>(
          world.store(), line, world.random(),
          ShakyStore::Defects{.lies = world.sabotage() == Sabotage::loses_claims,
                              .hides_turns = world.sabotage() == Sabotage::forgets_turns,
                              .hides_runs = world.sabotage() == Sabotage::forgets_orphans ||
                                            world.sabotage() == Sabotage::loses_claims})),
      driver(std::make_unique<SimDriver>(*this, assigned)),
      permits(std::make_unique<SimPermits>(*this, assigned)),
      run_codec(make_run_codec(world)) {
  engine::EngineOptions options;
  options.label = "process " + std::to_string(number);
  options.pool.workers = 1 + world.random()() % 6;
  options.lease = world.sabotage() == Sabotage::late_fence ? 60s : 15s;
  options.drain_timeout = world.up_to(20s);
  if (world.chance(0.5)) {
    options.pool.autoscale.emplace();
    options.pool.autoscale->max = 8;
  }
  engine = std::make_unique<engine::Engine>(
      engine::Engine::Parts{world.sim(), *store, *driver, *permits, *run_codec, system}, options, world.registry());
  scope = std::make_unique<RootScope>(world.sim());
}

Process::~Process() = default;

}  // namespace stint::simulation
