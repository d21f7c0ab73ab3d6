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

  /// The values of variables whose names say that they are secret: …_KEY, …_TOKEN, …SECRET…, …PASSWORD….
  [[nodiscard]] static SecretMask of_environment(const std::map<std::string, std::string, std::less<>>& environment);

  void add(std::string secret);
  /// In place. True: something was taken out.
  bool apply(std::string& text) const;

 private:
  std::vector<std::string> secrets_;  // the longest first: one may be within another
};

}  // namespace stint::driver
