#include "domain/address.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stint::domain {
namespace {

std::vector<std::string> found(std::string_view address) {
  std::vector<std::string> texts;
  for (const TextSpan& span : passwords_in(address)) texts.emplace_back(address.substr(span.from, span.size));
  return texts;
}
using Texts = std::vector<std::string>;

TEST(Address, passwords_are_found_where_libpq_reads_them) {
  EXPECT_EQ(found("postgres://u:geheim@h/d"), (Texts{"geheim"}));
  EXPECT_EQ(found("postgres://u:ge%3Aheim@h:5432/d?x=y"), (Texts{"ge%3Aheim"}));
  EXPECT_EQ(found("postgres://u:a?b#c@h/d"), (Texts{"a?b#c"})) << "libpq looks for an @ before the first /";
  EXPECT_EQ(found("postgres://u:a@b@h/d"), (Texts{"a@b"}));
  EXPECT_EQ(found("postgres://u:p@h?password=q@r"), (Texts{"p", "q@r"}));
  EXPECT_EQ(found("postgres://h/d?a=b&password=one&sslpassword=two"), (Texts{"one", "two"}));
  EXPECT_EQ(found("https://u:p@h"), (Texts{"p"}));
  EXPECT_EQ(found("postgres://:p@h/d"), (Texts{"p"})) << "without a user";
}

TEST(Address, what_is_no_password_is_left) {
  for (const char* const address :
       {"", "://", "postgres://", "postgres://u@h/d", "postgres://h:5432/d", "/a/password=x", "sqlite:/a:b@c",
        "postgres://h/u:p@d", "postgres://[::1]:5432/d", "postgres://u:@h/d?password="}) {
    EXPECT_EQ(found(address), Texts{}) << address;
  }
}

}  // namespace
}  // namespace stint::domain
