#include "wire/daemon.hpp"

#include "wire/values.hpp"

namespace stint::wire {

std::string to_json(const DaemonFile& file) {
  return json::serialize(
      json::object{{"url", text_value(file.url)}, {"pid", file.pid}, {"token_file", text_value(file.token_file)}});
}

Result<DaemonFile> read_daemon_file(std::string_view text) {
  STINT_TRY(const json::object object, parse_object(text));
  DaemonFile file{text_at(object, "url"), number_at(object, "pid"), text_at(object, "token_file")};
  if (file.url.empty() || file.pid <= 0) return fail(Errc::invalid, "it names neither an address nor a process");
  return file;
}

}  // namespace stint::wire
