/// Shared by the library's benchmark programs: arguments, samples as JSON lines, resident memory. A program is called
/// as `core_bench BENCH key=value…`; every key except `reps` is echoed in the sample's params, so that `bench/run.py`
/// can compare samples of different programs.
#pragma once

#include "stint/time.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace stint::bench {

inline double ns_since(TimePoint start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

class Args {
 public:
  Args(int argc, char** argv) : bench_(argc > 1 ? argv[1] : "") {
    for (int i = 2; i < argc; ++i) {
      const std::string word = argv[i];
      const auto split = word.find('=');
      if (split == std::string::npos) fail("expected key=value, got " + word);
      values_[word.substr(0, split)] = word.substr(split + 1);
    }
  }
  const std::string& bench() const { return bench_; }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  std::int64_t number(const std::string& key) const {
    const std::string value = text(key, "");
    if (value.empty()) fail("missing " + key + "=");
    return std::atoll(value.c_str());
  }
  std::int64_t reps() const { return std::atoll(text("reps", "1").c_str()); }

  void emit(const std::string& bench, double value, const char* unit) const {
    std::string params;
    for (const auto& [key, text] : values_) {
      if (key == "reps") continue;
      const bool numeric = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
      params += (params.empty() ? "\"" : ",\"") + key + (numeric ? "\":" + text : "\":\"" + text + "\"");
    }
    std::printf("{\"bench\":\"%s\",\"peer\":\"stint\",\"value\":%.9g,\"unit\":\"%s\",\"params\":{%s}}\n", bench.c_str(),
                value, unit, params.c_str());
    std::fflush(stdout);
  }
  [[noreturn]] void fail(const std::string& why) const {
    std::fprintf(stderr, "%s: %s\n", bench_.c_str(), why.c_str());
    std::exit(2);
  }

 private:
  std::string bench_;
  std::map<std::string, std::string> values_;
};

/// Runs `once(args)` reps + 1 times; the first is a warm-up and is discarded.
template <class Once>
void repeat(const Args& args, Once once) {
  for (std::int64_t rep = 0; rep <= args.reps(); ++rep) {
    const double ns = once(args);
    if (rep > 0) args.emit(args.bench(), ns, "ns");
  }
}

inline double percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

inline double resident_bytes() {
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// In worker_pool_bench.cpp.
void pool_throughput(const Args& args);
void pool_ping(const Args& args);

}  // namespace stint::bench
