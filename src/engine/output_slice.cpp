#include "engine/output_slice.hpp"

#include <algorithm>

namespace stint::engine {
namespace {

/// Bytes at the end of `text` that are an incomplete UTF-8 character.
std::size_t unfinished_bytes(std::string_view text) noexcept {
  constexpr std::size_t kCharacterMax = 4;
  for (std::size_t back = 1; back <= std::min(text.size(), kCharacterMax - 1); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // inside a character
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

void drop_unfinished(std::string& text) noexcept { text.resize(text.size() - unfinished_bytes(text)); }

OutputSlice slice_output(const store::Output& output, std::uint64_t from, bool ended) {
  OutputSlice slice;
  slice.bytes = output.bytes;
  const std::uint64_t tail_begins = output.bytes - std::min<std::uint64_t>(output.bytes, output.tail.size());
  const bool whole = tail_begins <= output.head.size();  // nothing is missing between head and tail
  slice.offset = std::min(from, output.bytes);
  if (slice.offset < output.head.size()) {
    slice.text = output.head.substr(static_cast<std::size_t>(slice.offset));
    if (whole) slice.text += output.tail.substr(static_cast<std::size_t>(output.head.size() - tail_begins));
  } else {
    slice.offset = std::max(slice.offset, tail_begins);
    slice.text = output.tail.substr(static_cast<std::size_t>(slice.offset - tail_begins));
  }
  const bool last = slice.offset + slice.text.size() == output.bytes;
  if (last && !ended) drop_unfinished(slice.text);
  slice.next = slice.offset + slice.text.size();
  return slice;
}

}  // namespace stint::engine
