/// Reads the fields of agent files into a `domain::Agent`: our own, and those of other tools' files. Shared fields
/// have one reader each, so that `budget:` means the same in all of them.
#pragma once

#include "agent/fields.hpp"
#include "agent/frontmatter.hpp"
#include "domain/agent.hpp"

namespace stint::agent {

/// Our own files.
void read_own(Fields& fields, const Frontmatter& parts, domain::Agent& agent);
/// What Stint adds to every format: limits, budget, retry, driver and the like. Other tools skip these keys.
void read_shared(Fields& fields, domain::Agent& agent);
void read_args(Fields& fields, domain::Agent& agent);

/// Files of other tools, by `agent.format`.
void read_foreign(Fields& fields, const Frontmatter& parts, domain::Agent& agent);
/// Many files of other tools are not valid YAML: `description: Use this when: …`. Their tools take the rest of the line
/// as the value; this quotes it so that YAML does, too. Line numbers stay the same.
[[nodiscard]] std::string quote_plain_values(std::string_view yaml);

/// Checks that templates parse, and name only arguments that exist.
void check_templates(const domain::Agent& agent, ProblemList& problems);

}  // namespace stint::agent
