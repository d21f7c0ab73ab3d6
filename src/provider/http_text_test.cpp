#include "provider/http_text.hpp"

#include <gtest/gtest.h>

namespace stint::provider {
namespace {

TEST(ProviderHttpText, a_head_with_a_length_or_with_chunks) {
  Head head;
  head.status = 429;
  head.length = 5;
  head.headers.emplace_back("retry-after", "3");
  EXPECT_EQ(write_head(head),
            "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: 5\r\nretry-after: "
            "3\r\n\r\n");
  head = Head();
  head.keep_alive = false;
  EXPECT_EQ(write_head(head),
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ncache-control: "
            "no-cache\r\nconnection: close\r\n\r\n");
}

TEST(ProviderHttpText, an_empty_chunk_would_end_the_body) {
  EXPECT_EQ(chunk("0123456789abcdef!"), "11\r\n0123456789abcdef!\r\n");
  EXPECT_EQ(chunk(""), "");
}

}  // namespace
}  // namespace stint::provider
