#include "net/transfer_error.hpp"

#include <chrono>

namespace stint::net {
namespace {

std::string to_text(Duration limit) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

Error to_error(CURLcode code, bool sending, std::string what) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return {Errc::invalid, Retry::never, std::move(what)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE: return {Errc::denied, Retry::never, std::move(what)};
    default: return {Errc::unavailable, sending ? Retry::unknown : Retry::safe, std::move(what)};
  }
}

Error lookup_limit_passed(const std::string& shown, const std::string& host, Duration limit) {
  return {Errc::timed_out, Retry::safe,
          shown + ": the connect limit of " + to_text(limit) + " passed while the name " + host +
              " was being resolved: check the name servers of this machine"};
}

Error connect_limit_passed(const std::string& shown, Duration limit) {
  return {Errc::timed_out, Retry::safe,
          shown + ": the connect limit of " + to_text(limit) +
              " passed without a connection: check the network and the proxy, or allow more connections or time"};
}

Error first_byte_limit_passed(const std::string& shown, Duration limit, std::size_t sent, std::size_t size) {
  std::string where = "after the request";
  if (sent < size) where = "after " + std::to_string(sent) + " of the request's " + std::to_string(size) + " bytes";
  return {Errc::timed_out, Retry::unknown,
          shown + ": the first-byte limit of " + to_text(limit) + " passed " + where +
              ": the server is overloaded or needs a longer limit"};
}

Error idle_limit_passed(const std::string& shown, Duration limit) {
  return {Errc::timed_out, Retry::unknown,
          shown + ": the idle limit of " + to_text(limit) +
              " passed in the middle of the reply: the server hangs or needs a longer limit"};
}

}  // namespace stint::net
