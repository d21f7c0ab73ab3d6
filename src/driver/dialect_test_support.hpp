/// For tests of the dialects: reads recorded streams and plays a whole attempt through a dialect.
#pragma once

#include "driver/dialect.hpp"
#include "driver/registry.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace stint::driver {

inline std::vector<std::string> recorded(const std::string& name) {
  std::ifstream file(std::string(STINT_STREAMS) + "/" + name + ".jsonl");
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The recorded stderr of a stream; empty where it does not matter.
inline std::vector<std::string> recorded_errors(const std::string& name) {
  std::ifstream file(std::string(STINT_STREAMS) + "/" + name + ".err");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

inline ProcessEnd exited(int status, std::string stderr_tail = {}) {
  ProcessEnd end;
  end.exit_status = status;
  end.stderr_tail = std::move(stderr_tail);
  return end;
}
inline ProcessEnd killed_by_us(std::optional<int> status = {}) {
  ProcessEnd end;
  end.killed_by_us = true;
  end.exit_status = status;
  if (!status) end.signal = 15;
  return end;
}

struct Played {
  Launch launch;
  std::vector<Progress> progress;
  bool result_seen = false;
  Outcome outcome;

  [[nodiscard]] std::string texts(ProgressKind kind) const {
    std::string out;
    for (const Progress& item : progress) {
      if (item.kind == kind) out += item.text + "|";
    }
    return out;
  }
};

inline Played play(std::string_view driver, const std::vector<std::string>& lines, const ProcessEnd& end,
                   const Invocation& invocation = Invocation()) {
  Played played;
  Result<std::unique_ptr<Dialect>> dialect = make_dialect(driver);
  EXPECT_TRUE(dialect);
  played.launch = (*dialect)->launch(invocation);
  for (const std::string& line : lines) (*dialect)->read(line, played.progress);
  played.result_seen = (*dialect)->result_seen();
  played.outcome = (*dialect)->finish(end);
  return played;
}

}  // namespace stint::driver
