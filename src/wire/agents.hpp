/// Agents, settings, trust and their problems as JSON: what `stint agents`, `config`, `trust` and `init` print with
/// `--json`. One object each, on one line.
#pragma once

#include "agent/check.hpp"
#include "agent/discovery.hpp"
#include "agent/settings.hpp"
#include "agent/trust.hpp"

#include <span>
#include <string>
#include <vector>

namespace stint::wire {

/// `{"agents":[…],"problems":[…]}`
[[nodiscard]] std::string agents_to_json(std::span<const domain::Agent> agents,
                                         std::span<const agent::Problem> problems);
/// `{"settings":[…],"problems":[…]}`
[[nodiscard]] std::string settings_to_json(std::span<const agent::Setting> settings,
                                           std::span<const agent::Problem> problems);

struct TrustAnswer {
  agent::Project project;
  bool trusted = false;
  std::vector<agent::TrustedThing> things;
};
[[nodiscard]] std::string to_json(const TrustAnswer& answer);
[[nodiscard]] std::string trust_to_json(std::span<const agent::TrustRecord> records);

/// What `stint init` did, or would do, with one file.
struct InitFile {
  std::string path;     ///< relative to the project's root
  std::string action;   ///< made, kept, failed
  std::string purpose;  ///< or why it failed
};
[[nodiscard]] std::string init_to_json(std::span<const InitFile> files, bool dry_run);

}  // namespace stint::wire
