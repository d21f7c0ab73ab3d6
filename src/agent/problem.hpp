/// Problems of a file, described so that a person can fix them: where, which field, what was expected, what to write
/// instead. A file is read to its end and reports all its problems, up to a bound; an error makes it unusable, a
/// warning does not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

enum class Severity : std::uint8_t { error, warning };
[[nodiscard]] std::string_view to_string(Severity severity) noexcept;

struct Problem {
  Severity severity = Severity::error;
  std::string file;
  int line = 0;    ///< from 1; 0: the file as a whole
  int column = 0;  ///< from 1; 0: not known
  std::string field;
  std::string message;
  std::string suggestion;  ///< what to write instead; often empty

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// "review.md:3:7: error: max_concurrency: must be at least 1, found 0; leave it out for no limit"
[[nodiscard]] std::string describe(const Problem& problem);
[[nodiscard]] bool has_errors(std::span<const Problem> problems) noexcept;

/// A position in a file.
struct Place {
  int line = 0;
  int column = 0;
};

/// Collects the problems of one file. Beyond `kProblemsMax` it only counts them.
class ProblemList {
 public:
  /// A file with more problems than this is not an agent file at all.
  static constexpr std::size_t kProblemsMax = 50;

  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void error(Place place, std::string field, std::string message, std::string suggestion = {});
  void warning(Place place, std::string field, std::string message, std::string suggestion = {});
  [[nodiscard]] bool has_errors() const noexcept { return errors_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// In order of lines; the last entry counts the ones left out.
  [[nodiscard]] std::vector<Problem> take();

 private:
  void add(Problem problem);

  std::string file_;
  std::vector<Problem> problems_;
  std::size_t left_out_ = 0;
  bool errors_ = false;
};

}  // namespace stint::agent
