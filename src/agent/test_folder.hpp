/// A temporary folder for one test, removed when the test is over.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace stint::agent {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stint-test-XXXXXX").string();
    const char* const made = ::mkdtemp(name.data());
    EXPECT_NE(made, nullptr);
    path_ = std::filesystem::canonical(name);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(std::string_view below) const { return path_ / below; }

  void write(std::string_view below, std::string_view text) const {
    std::filesystem::create_directories((path_ / below).parent_path());
    std::ofstream(path_ / below, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace stint::agent
