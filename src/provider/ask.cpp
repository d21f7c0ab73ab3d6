#include "provider/ask.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace stint::provider {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t kLineMax = 1 << 20;

/// The text in one event; empty if it has none.
std::string piece_of(std::string_view data) {
  boost::system::error_code error;
  const json::value event = json::parse(data, error);
  if (error) return {};
  const auto found = event.find_pointer("/choices/0/delta/content", error);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

/// Prints words as they arrive; a new line for each sentence, so that line-based readers get output early.
class Printer {
 public:
  ~Printer() {
    if (open_) std::fputc('\n', stdout);
  }
  void print(const std::string& piece) {
    for (const char c : piece) {
      const bool sentence_over = ended_ && c == ' ';
      std::fputc(sentence_over ? '\n' : c, stdout);
      open_ = !sentence_over;
      ended_ = c == '.' || c == '!' || c == '?';
    }
    std::fflush(stdout);
  }

 private:
  bool open_ = false, ended_ = false;
};

int complain(const std::string& what) {
  std::fputs(("ask: " + what + "\n").c_str(), stderr);
  return 1;
}

}  // namespace

int ask_main(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) return complain("host, port, prompt");
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  boost::system::error_code error;
  asio::ip::tcp::resolver resolver(io);
  const auto places = resolver.resolve(arguments[0], arguments[1], asio::ip::tcp::resolver::numeric_host, error);
  if (!error) asio::connect(socket, places, error);
  if (error) return complain(fmt::format("{}:{}: {}", arguments[0], arguments[1], error.message()));
  const std::string body = json::serialize(
      json::object{{"model", "simulated"},
                   {"stream", true},
                   {"messages", json::array{json::object{{"role", "user"}, {"content", arguments[2]}}}}});
  const std::string request = fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nConnection: close\r\n"
      "Content-Length: {}\r\n\r\n{}",
      arguments[0], arguments[1], body.size(), body);
  asio::write(socket, asio::buffer(request), error);
  Printer printer;
  std::string line, chunk(4096, '\0');
  bool first = true, refused = false, done = false;
  while (!error && !done) {
    const std::size_t got = socket.read_some(asio::buffer(chunk), error);
    for (const char c : std::string_view(chunk).substr(0, got)) {
      if (c != '\n') {
        if (line.size() < kLineMax && c != '\r') line += c;
        continue;
      }
      if (std::exchange(first, false)) refused = line.find(" 200 ") == std::string::npos;
      if (refused && !line.empty()) return complain(line);
      if (line.starts_with("data: ")) {
        done = line == "data: [DONE]";
        if (!done) printer.print(piece_of(line.substr(6)));
      }
      line.clear();
    }
  }
  return done ? 0 : complain("the stream ended before the answer was complete");
}

}  // namespace stint::provider
