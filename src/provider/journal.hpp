/// The provider's journal: counters, and a record of each model call, of which the latest are kept. Used on the
/// server's thread only.
#pragma once

#include "wire/provider_report.hpp"

#include <cstdio>
#include <deque>
#include <memory>

namespace stint::provider {

class Journal {
 public:
  static constexpr std::size_t kRecordsMax = 10'000;
  static constexpr std::size_t kPromptMax = 200;  // bytes of a prompt in its record

  /// Also appends each record to `file`, one line of JSON each, and closes it at the end. May be null.
  explicit Journal(std::FILE* file = nullptr) : file_(file) {}

  wire::ProviderStats& stats() noexcept { return stats_; }
  /// Returns the request's number.
  std::uint64_t begin() noexcept;
  void end(wire::ProviderRecord record);
  /// All kept records, one line each.
  [[nodiscard]] std::string lines() const;
  /// Resets the totals; open requests stay counted.
  void reset();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  wire::ProviderStats stats_;
  std::deque<wire::ProviderRecord> records_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t serial_ = 0;  // never reset: ids stay distinct
};

}  // namespace stint::provider
