#include "domain/address.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

constexpr std::string_view kScheme = "://", kParameter = "password=";  // also of `sslpassword=`

}  // namespace

std::vector<TextSpan> passwords_in(std::string_view address) {
  std::vector<TextSpan> found;
  const std::size_t scheme = address.find(kScheme);
  if (scheme == std::string_view::npos) return found;
  const std::size_t begin = scheme + kScheme.size();
  // As libpq parses it: the user ends at an `@` before the first `/`, and a password may contain `?` and `#`. Text
  // before a further `@` of the same authority counts as part of the password too.
  std::size_t query = address.find('?', begin);
  const std::size_t first = address.substr(0, address.find('/', begin)).find('@', begin);
  if (first != std::string_view::npos) {
    const std::size_t end = std::min(address.find_first_of("/?#", first), address.size());
    const std::size_t at = address.substr(0, end).rfind('@');
    const std::size_t colon = address.find(':', begin);
    if (colon < at && colon + 1 < at) found.push_back({colon + 1, at - colon - 1});
    query = address.find('?', at);
  }
  if (query == std::string_view::npos) return found;
  for (std::size_t at = address.find(kParameter, query); at != std::string_view::npos;) {
    const std::size_t from = at + kParameter.size();
    const std::size_t to = std::min(address.find('&', from), address.size());
    if (to > from) found.push_back({from, to - from});
    at = address.find(kParameter, to);
  }
  return found;
}

}  // namespace stint::domain
