#include "os/owner.hpp"

#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(Owner, a_file_of_another_user_is_named) {
  const TestFolder folder;
  folder.write("mine", "");
  EXPECT_EQ(foreign_owner(folder / "mine"), "");
  EXPECT_EQ(foreign_owner(folder / "not/there/yet"), "") << "its folder belongs to this user";
  EXPECT_EQ(foreign_owner("/no such folder/file"), "") << "root owns the folders above all files";
  if (::geteuid() != 0) GTEST_SKIP() << "only root may change the owner of a file";
  ASSERT_EQ(::chown((folder / "mine").c_str(), 54321, 54321), 0);
  EXPECT_EQ(foreign_owner(folder / "mine"), "user 54321");
  EXPECT_EQ(user_name(0), "root");
}

TEST(Owner, of_a_port_is_the_process_that_listens) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_NE(port_owner(port).find("process " + std::to_string(::getpid())), std::string::npos) << port_owner(port);
  EXPECT_NE(port_owner(port).find("os_test"), std::string::npos) << port_owner(port);
  ::close(socket);
  EXPECT_EQ(port_owner(port), "");
}

}  // namespace
}  // namespace stint::os
