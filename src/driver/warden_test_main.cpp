// main() of tests that start wardens: a ward runs its own program as the warden.
#include "driver/warden.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == stint::driver::kWardenArgument) {
    return stint::driver::warden_main({words.begin() + 1, words.end()});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
