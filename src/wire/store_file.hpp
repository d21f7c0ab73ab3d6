/// The format of `stint store export` and `stint store import`: a line of JSON for each agent, limit and run, and one
/// at the end that counts them, so that a truncated file is detected. Also what the other store commands print with
/// `--json`.
#pragma once

#include "stint/error.hpp"
#include "store/audit.hpp"
#include "store/transfer.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace stint::wire {

/// The first line.
[[nodiscard]] std::string store_file_head();
[[nodiscard]] std::string to_json(const store::AgentEntry& agent);
[[nodiscard]] std::string to_json(const store::LimitState& limit);
/// Invalid UTF-8 in text becomes U+FFFD; output that is not UTF-8 is written in hexadecimal digits.
[[nodiscard]] std::string to_json(const store::RunRecord& record);
/// The last line.
[[nodiscard]] std::string store_file_end(const store::Moved& counts);

struct StoreFileHead {};
using StoreFileLine = std::variant<StoreFileHead, store::AgentEntry, store::LimitState, store::RunRecord, store::Moved>;
/// One line of such a file.
[[nodiscard]] Result<StoreFileLine> parse_store_line(std::string_view line);

[[nodiscard]] std::string schema_to_json(const std::string& store, const store::Schema& schema);
[[nodiscard]] std::string stats_to_json(const std::string& store, const store::Stats& stats,
                                        const std::vector<store::LimitState>& limits);
[[nodiscard]] std::string audit_to_json(const std::string& store, const store::Audit& audit);
[[nodiscard]] std::string moved_to_json(const store::Moved& moved, const store::Moved& added);

}  // namespace stint::wire
