/// Takes secrets out of what agents say, before it is shown, kept or told: `***` stands where one was. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

class SecretMask {
 public:
  static constexpr std::size_t kLengthMin = 8;  // what is shorter also stands where it is no secret

  /// The values of variables whose names say that they are secret (…KEY, …TOKEN, …SECRET…, …PASSWORD…), and the
  /// passwords in addresses, whatever the variable's name.
  [[nodiscard]] static SecretMask of_environment(const std::map<std::string, std::string, std::less<>>& environment);

  /// Of a value with several lines each line by itself: what is said comes line by line.
  void add(std::string_view secret);
  /// The password in `scheme://user:password@…`, as it is written and as it is meant; nothing if there is none.
  void add_password_of(std::string_view address);
  /// In place. True: something was taken out.
  bool apply(std::string& text) const;
  /// Of the longest; 0: there are none.
  [[nodiscard]] std::size_t length_max() const noexcept { return secrets_.empty() ? 0 : secrets_.front().size(); }

 private:
  void add_line(std::string_view secret);

  std::vector<std::string> secrets_;  // the longest first: one may be within another
};

/// Masks text that comes in pieces. What may be the beginning of a secret, or of a character in UTF-8, waits for the
/// rest of it; the end of a line waits for nothing. The masks must outlive it.
class MaskedPieces {
 public:
  MaskedPieces(const SecretMask& one, const SecretMask& other) : one_(one), other_(other) {}
  [[nodiscard]] std::string add(std::string_view piece);
  /// What has waited.
  [[nodiscard]] std::string finish();

 private:
  const SecretMask& one_;
  const SecretMask& other_;
  std::string held_;
};

}  // namespace stint::driver
