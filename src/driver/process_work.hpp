/// One attempt of the process driver: first ends what a lost attempt of the same run left alive, then runs the process
/// and translates what its dialect reports into what the worker records. Own thread only.
#pragma once

#include "domain/driver.hpp"
#include "driver/process_attempt.hpp"
#include "driver/secret_mask.hpp"
#include "driver/survivors.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

class ProcessWork final : public domain::Work {
 public:
  struct Parts {
    Wardens& wardens;
    HostSurvivors& survivors;
    domain::WorkContext& context;
    std::set<domain::Work*>& all;  ///< contains this work as long as it exists
    const SecretMask& mask;        ///< of secrets of every run
    const std::function<void(const std::string&)>& on_output;
  };
  struct Options {
    std::unique_ptr<Dialect> dialect;
    Invocation invocation;
    ProcessOptions process;
    SecretMask mask;                                  ///< of secrets of this run alone
    std::optional<domain::Survivors::Leftover> lost;  ///< the last attempt of which processes may be alive; none: none
    bool conversation_may_be_unknown = false;         ///< its id was chosen, and perhaps it never began
    std::string note;                                 ///< recorded before the process starts; empty: none
  };
  ProcessWork(Parts parts, Options options);
  ~ProcessWork() override;

  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override;
  void end(OutcomeKind kind, std::string why) override { process_.end(kind, std::move(why)); }
  void hold(bool held) override { process_.hold(held); }
  [[nodiscard]] bool is_ending() const override { return ends_leftovers_ || process_.ending(); }
  [[nodiscard]] std::optional<domain::WaitReason> waits_for() const override;

 private:
  Task<Result<>> end_leftovers();
  ProcessEvents events();
  void pass_on(const Progress& progress);
  void begin_tool(const Progress& progress);
  [[nodiscard]] std::optional<domain::Span> end_tool(const Progress& progress);
  [[nodiscard]] std::string masked_message(std::string text);
  void say_part(std::string_view text);
  void end_parts();
  void say(std::string text);
  [[nodiscard]] Usage priced(Usage usage) const;
  [[nodiscard]] std::unique_ptr<domain::WorkReport> report_of(ProcessReport seen) const;
  void mask_secrets(std::string& text) const;

  static constexpr std::size_t kToolsMax = 200;  // calls under way; of more no span is told
  struct OpenTool {
    std::string call, name;
    TimePoint since;
  };

  const Parts parts_;
  const Price price_;
  const std::optional<domain::Survivors::Leftover> lost_;
  const bool conversation_may_be_unknown_;
  bool in_line_ = false;  // of a message that comes in parts
  bool ends_leftovers_ = false;
  std::vector<OpenTool> tools_;
  std::string note_;
  const SecretMask own_mask_;
  MaskedPieces pieces_;
  std::unique_ptr<Dialect> dialect_;
  std::unique_ptr<const Invocation> invocation_;  // until it runs
  ProcessAttempt process_;
};

}  // namespace stint::driver
