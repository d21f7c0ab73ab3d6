/// What every C++ peer needs: arguments, samples as JSON lines, a clock and the resident memory.
/// A peer is called as `peer BENCH key=value…`; every key but `reps` is echoed in the sample's params.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

using Clock = std::chrono::steady_clock;

inline double ns_since(Clock::time_point start) {
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
  std::string text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) fail("missing " + key + "=");
    return found->second;
  }
  long number(const std::string& key) const { return std::atol(text(key).c_str()); }
  long number(const std::string& key, long otherwise) const { return values_.contains(key) ? number(key) : otherwise; }
  long reps() const { return number("reps", 1); }

  void emit(const std::string& bench, const char* peer, double value, const char* unit) const {
    std::string params;
    for (const auto& [key, value] : values_) {
      if (key == "reps") continue;
      const bool numeric = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      params += (params.empty() ? "\"" : ",\"") + key + (numeric ? "\":" + value : "\":\"" + value + "\"");
    }
    std::printf("{\"bench\":\"%s\",\"peer\":\"%s\",\"value\":%.9g,\"unit\":\"%s\",\"params\":{%s}}\n", bench.c_str(),
                peer, value, unit, params.c_str());
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

/// Runs `once` reps + 1 times; the first is a warm-up and is thrown away.
template <class Once>
void repeat(const Args& args, const char* bench, const char* peer, const char* unit, Once once) {
  for (long rep = 0; rep <= args.reps(); ++rep) {
    const double value = once();
    if (rep > 0) args.emit(bench, peer, value, unit);
  }
}

inline double resident_bytes() {
  long total = 0;
  long resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

inline double percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}
