#include "provider/journal.hpp"

#include <algorithm>

namespace stint::provider {

std::uint64_t Journal::begin() noexcept {
  ++stats_.requests;
  ++stats_.active;
  stats_.active_max = std::max(stats_.active_max, stats_.active);
  return ++serial_;
}

void Journal::end(wire::ProviderRecord record) {
  --stats_.active;
  stats_.tokens_after_gone += record.tokens_after_gone;
  if (record.end == wire::ProviderEnd::client_closed) {
    ++stats_.closed_early;
    if (record.stream) ++stats_.streams_closed_early;
  }
  if (record.fault != "none") ++stats_.faults;
  if (record.end == wire::ProviderEnd::refused) ++stats_.bad_requests;
  if (record.prompt.size() > kPromptMax) {
    record.prompt.resize(kPromptMax);
    // Cuts between characters.
    while (!record.prompt.empty() && (static_cast<unsigned char>(record.prompt.back()) & 0xC0) == 0x80) {
      record.prompt.pop_back();
    }
    if (!record.prompt.empty() && static_cast<unsigned char>(record.prompt.back()) >= 0xC0) record.prompt.pop_back();
  }
  if (file_) {
    const std::string line = wire::to_json(record) + "\n";
    std::fwrite(line.data(), 1, line.size(), file_.get());
    std::fflush(file_.get());
  }
  records_.push_back(std::move(record));
  if (records_.size() > kRecordsMax) records_.pop_front();
}

std::string Journal::lines() const {
  std::string out;
  for (const wire::ProviderRecord& record : records_) out += wire::to_json(record) + "\n";
  return out;
}

void Journal::reset() {
  records_.clear();
  const wire::ProviderStats old = std::exchange(stats_, {});
  stats_.active = stats_.active_max = old.active;
  stats_.connections = old.connections;
}

}  // namespace stint::provider
