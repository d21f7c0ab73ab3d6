/// One attempt of the process driver: first ends processes that a lost attempt of the same run left alive, then runs
/// the process and translates the progress of its dialect into updates for the worker. Own thread only.
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
    std::optional<domain::Survivors::Leftover> lost;  ///< the last attempt whose processes may be alive
    bool conversation_may_not_exist = false;          ///< its id was chosen, but it may never have begun
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
  void translate(const Progress& progress);
  void begin_call(const Progress& progress);
  [[nodiscard]] std::optional<domain::Span> end_call(const Progress& progress);
  void publish_ending(Duration length);
  [[nodiscard]] std::string masked_message(std::string text);
  void publish_delta(std::string_view text);
  void end_message();
  void publish_text(std::string text);
  [[nodiscard]] Usage priced(Usage usage) const;
  [[nodiscard]] std::unique_ptr<domain::WorkReport> report_of(ProcessReport seen) const;
  void mask_secrets(std::string& text) const;

  static constexpr std::size_t kCallsMax = 200;  // open calls; further ones get no span
  struct OpenCall {
    domain::SpanKind kind;
    std::string call, name;
    TimePoint since;
  };

  const Parts parts_;
  const Price price_;
  const std::optional<domain::Survivors::Leftover> lost_;
  const bool conversation_may_not_exist_;
  bool in_line_ = false;  // of a message that comes in deltas
  bool ends_leftovers_ = false;
  std::vector<OpenCall> calls_;
  std::string note_;
  const SecretMask own_mask_;
  MaskedPieces pieces_;
  std::unique_ptr<Dialect> dialect_;
  std::unique_ptr<const Invocation> invocation_;  // until it runs
  ProcessAttempt process_;
};

}  // namespace stint::driver
