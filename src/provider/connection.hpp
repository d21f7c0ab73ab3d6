/// One client connection of the simulated provider: reads requests and answers them, one after the other.
///
/// While it answers it watches the socket, so that it detects a client that leaves at once, and not at the next write.
/// A client that closes its sending half counts as gone, as with nginx: the two look the same from here, and an answer
/// that no client reads has a cost.
#pragma once

#include "provider/generation.hpp"
#include "provider/server.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <string>

namespace stint::provider {

class Connection {
 public:
  /// Serves a connection until it closes. The server must outlive it.
  static Task<> carry(Server& server, asio::ip::tcp::socket socket, Permit slot);

 private:
  struct Request {
    std::string method, path, body;
    bool keep_alive = true;
    bool anthropic = false;  // the request uses Anthropic's API
  };
  enum class AfterAnswer : std::uint8_t { kept, closing, gone };  // what becomes of the connection
  class Call;

  Connection(Server& server, asio::ip::tcp::socket socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Task<> serve();
  // Reading. The text of a failure carries the status to answer with, or nothing to just close.
  Task<bool> wait_for_data();
  Task<Result<Request>> read_request();
  Task<bool> read_more();
  Task<> refuse(int status, std::string message);

  // Answering.
  Task<AfterAnswer> respond(const Request& request);
  Task<AfterAnswer> answer_plain(const Request& request, int status, std::string_view type, std::string body);
  Task<AfterAnswer> administer(const Request& request);
  Task<AfterAnswer> converse(const Request& request, Protocol protocol);
  Task<AfterAnswer> refuse_call(const Request& request, Call& call, Failure failure);
  Task<AfterAnswer> perform(Call& call);
  Task<AfterAnswer> stream(Call& call);
  Task<std::optional<AfterAnswer>> strike(Call& call, std::string& pending);
  Task<AfterAnswer> send_whole(Call& call);
  Task<AfterAnswer> send_error(Call& call, Failure failure);
  Task<> finish_unread(Call& call);
  Task<> watch();

  Task<bool> write(std::string bytes);
  Task<bool> write_all(std::string_view bytes);
  void reset() noexcept;

  Server& server_;
  asio::ip::tcp::socket socket_;
  std::string buffer_;  // read, and not consumed yet
};

}  // namespace stint::provider
