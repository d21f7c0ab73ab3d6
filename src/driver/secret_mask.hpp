/// Replaces secrets in the output of agents with `***`, before it is shown, stored or sent. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

class SecretMask {
 public:
  static constexpr std::size_t kLengthMin = 8;  // a shorter value also occurs where it is not a secret

  /// Masks the values of variables with the name of a secret (…KEY, …TOKEN, …SECRET…, …PASSWORD…), and the passwords in
  /// addresses, whatever the name of the variable.
  [[nodiscard]] static SecretMask of_environment(const std::map<std::string, std::string, std::less<>>& environment);

  /// Adds each line of a value by itself: output comes line by line.
  void add(std::string_view secret);
  /// Adds the password in `scheme://user:password@…`, as written and percent-decoded, if there is one.
  void add_password_of(std::string_view address);
  /// Masks in place. True: something was replaced.
  bool apply(std::string& text) const;
  /// The length of the longest secret; 0: there are none.
  [[nodiscard]] std::size_t length_max() const noexcept { return secrets_.empty() ? 0 : secrets_.front().size(); }

 private:
  void add_line(std::string_view secret);

  std::vector<std::string> secrets_;  // the longest first: one may contain another
};

/// Masks text that comes in pieces. Holds back what may be the beginning of a secret or of a UTF-8 character until the
/// rest has come; the end of a line is never held back. The masks must outlive it.
class MaskedPieces {
 public:
  MaskedPieces(const SecretMask& one, const SecretMask& other) : one_(one), other_(other) {}
  [[nodiscard]] std::string add(std::string_view piece);
  /// Returns what is held back.
  [[nodiscard]] std::string finish();

 private:
  const SecretMask& one_;
  const SecretMask& other_;
  std::string held_;
};

}  // namespace stint::driver
