// A parser makes a tree, a compiler writes it out as states of a Thompson automaton, and a search keeps the set of all
// states that the text read so far can lead to.
//
// Invariants: 1. a search holds each state at most once, so that one character costs at most kStatesMax steps;
// 2. every step of the compiler counts towards kStatesMax, so that repetitions of nothing are bounded, too.
#include "driver/text_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace stint::driver {
namespace {

constexpr char32_t kLastCharacter = 0x10FFFF;
constexpr std::uint32_t kRepeatMax = 1000;
constexpr std::uint32_t kEndless = ~std::uint32_t{0};

struct Decoded {
  char32_t character;
  std::size_t bytes;
};

/// A byte that begins no UTF-8 character stands for itself.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t bytes = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  if (bytes == 1 || text.size() < bytes) return {lead, 1};
  char32_t character = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {lead, 1};
    character = (character << 6U) | (byte(i) & 0x3FU);
  }
  return {character, bytes};
}

bool is_word_character(std::optional<char32_t> c) {
  return c && ((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || *c == '_' || (*c >= 'a' && *c <= 'z'));
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

struct PatternNode {
  enum class Kind : std::uint8_t { nothing, characters, sequence, choice, repeat, assertion };
  Kind kind = Kind::nothing;
  std::size_t which = 0;              // the index of the set, or the assertion as an Op
  std::uint32_t least = 0, most = 0;  // of repeat
  std::vector<PatternNode> parts{};
};

}  // namespace

class PatternParser {
 public:
  PatternParser(std::string_view text, TextPattern& out) : text_(text), out_(out) {}

  Result<PatternNode> parse() {
    STINT_TRY(PatternNode node, choice(0));
    if (at_ < text_.size()) return refuse("a ')' without '('");
    return node;
  }

 private:
  using Kind = PatternNode::Kind;
  using Op = TextPattern::Op;
  using Characters = TextPattern::Characters;

  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  [[nodiscard]] bool next_is(std::string_view word) const noexcept { return text_.substr(at_).starts_with(word); }
  bool skip(std::string_view word) noexcept {
    if (!next_is(word)) return false;
    at_ += word.size();
    return true;
  }
  std::unexpected<Error> refuse(std::string_view what) const {
    return fail(Errc::invalid, fmt::format("{} at byte {} of the pattern", what, at_));
  }

  Result<PatternNode> choice(int depth) {
    if (depth > TextPattern::kDepthMax) return refuse("too many nested groups");
    PatternNode node{.kind = Kind::choice};
    do {
      PatternNode sequence{.kind = Kind::sequence};
      while (!at_end() && !next_is("|") && !next_is(")")) {
        STINT_TRY(PatternNode part, repeated(depth));
        sequence.parts.push_back(std::move(part));
      }
      node.parts.push_back(std::move(sequence));
    } while (skip("|"));
    return node;
  }

  Result<PatternNode> repeated(int depth) {
    STINT_TRY(PatternNode node, single(depth));
    std::uint32_t least = 0;
    std::uint32_t most = kEndless;
    if (skip("+")) {
      least = 1;
    } else if (skip("?")) {
      most = 1;
    } else if (!skip("*")) {
      const auto counts = read_counts();
      if (!counts) return node;
      std::tie(least, most) = *counts;
      if (least > kRepeatMax || (most != kEndless && most > kRepeatMax)) return refuse("more than 1000 repetitions");
      if (least > most) return refuse("a repetition with its bounds exchanged");
    }
    if (node.kind == Kind::assertion) return refuse("a repetition of nothing");
    skip("?");  // lazy: the same texts match
    if (next_is("*") || next_is("+") || next_is("?")) return refuse("a repetition of a repetition");
    PatternNode out{.kind = Kind::repeat, .least = least, .most = most};
    out.parts.push_back(std::move(node));
    return out;
  }

  /// `{2}`, `{2,}` or `{2,5}`; any other brace is a character, as in JavaScript.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> read_counts() {
    const std::size_t begin = at_;
    const auto number = [&]() -> std::optional<std::uint32_t> {
      std::optional<std::uint32_t> value;
      for (; !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        value = std::min(value.value_or(0) * 10 + static_cast<std::uint32_t>(text_[at_] - '0'), kRepeatMax + 1);
      }
      return value;
    };
    if (skip("{")) {
      if (const auto least = number()) {
        if (skip("}")) return std::pair(*least, *least);
        if (skip(",")) {
          const auto most = number();
          if (skip("}")) return std::pair(*least, most.value_or(kEndless));
        }
      }
    }
    at_ = begin;
    return std::nullopt;
  }

  Result<PatternNode> single(int depth) {
    if (skip("(")) return group(depth);
    if (skip("^")) return assertion(Op::begin);
    if (skip("$")) return assertion(Op::end);
    if (skip("\\b")) return assertion(Op::boundary);
    if (skip("\\B")) return assertion(Op::no_boundary);
    if (next_is("*") || next_is("+") || next_is("?")) return refuse("a repetition of nothing");
    if (skip(".")) return set(opposite({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    if (skip("[")) return characters_in_brackets();
    STINT_TRY(Characters one, character(false));
    return set(std::move(one));
  }

  Result<PatternNode> group(int depth) {
    if (next_is("?=") || next_is("?!") || next_is("?<=") || next_is("?<!")) return refuse("lookaround '(?…'");
    if (skip("?<")) {
      const std::size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return refuse("a group's name without '>'");
      at_ = end + 1;
    } else if (!skip("?:") && next_is("?")) {
      return refuse("a group of an unknown kind, '(?'");
    }
    STINT_TRY(PatternNode inner, choice(depth + 1));
    if (!skip(")")) return refuse("a '(' without ')'");
    return inner;
  }

  static Result<PatternNode> assertion(Op op) {
    return PatternNode{.kind = Kind::assertion, .which = static_cast<std::size_t>(op)};
  }
  Result<PatternNode> set(Characters characters) {
    out_.sets_.push_back(merged(std::move(characters)));
    return PatternNode{.kind = Kind::characters, .which = out_.sets_.size() - 1};
  }

  Result<PatternNode> characters_in_brackets() {
    const bool negated = skip("^");
    Characters all;
    while (!skip("]")) {
      if (at_end()) return refuse("a '[' without ']'");
      STINT_TRY(Characters first, character(true));
      if (next_is("-") && !next_is("-]")) {
        skip("-");
        if (at_end()) return refuse("a '[' without ']'");
        STINT_TRY(const Characters last, character(true));
        if (!is_one(first) || !is_one(last) || first[0].first > last[0].first) return refuse("a range without order");
        first[0].last = last[0].last;
      }
      all.insert(all.end(), first.begin(), first.end());
    }
    return set(negated ? opposite(std::move(all)) : std::move(all));
  }

  static bool is_one(const Characters& set) { return set.size() == 1 && set[0].first == set[0].last; }

  Result<Characters> character(bool in_brackets) {
    if (!skip("\\")) {
      const Decoded next = decode(text_.substr(at_));
      at_ += next.bytes;
      return Characters{{next.character, next.character}};
    }
    if (at_end()) return refuse("a '\\' at the end");
    const char escaped = text_[at_++];
    if (const std::optional<Characters> named = named_set(escaped)) return *named;
    STINT_TRY(const char32_t one, escaped_character(escaped, in_brackets));
    return Characters{{one, one}};
  }

  static std::optional<Characters> named_set(char name) {
    const Characters digits{{'0', '9'}};
    const Characters words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const Characters spaces{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                            {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    switch (name) {
      case 'd': return digits;
      case 'D': return opposite(digits);
      case 'w': return words;
      case 'W': return opposite(words);
      case 's': return spaces;
      case 'S': return opposite(spaces);
      default: return std::nullopt;
    }
  }

  Result<char32_t> escaped_character(char name, bool in_brackets) {
    switch (name) {
      case 't': return U'\t';
      case 'n': return U'\n';
      case 'v': return U'\v';
      case 'f': return U'\f';
      case 'r': return U'\r';
      case '0': return U'\0';
      case 'x': return hexadecimal(2);
      case 'u': return unicode();
      case 'p':
      case 'P': return refuse("a Unicode property '\\p'");
      case 'k': return refuse("a back reference");
      case 'b':
        if (in_brackets) return U'\b';
        break;
      default: break;
    }
    if (name >= '1' && name <= '9') return refuse("a back reference");
    if ((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) return refuse("an unknown escape");
    --at_;
    const Decoded next = decode(text_.substr(at_));
    at_ += next.bytes;
    return next.character;
  }

  Result<char32_t> hexadecimal(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const auto digit = at_end() ? std::nullopt : hex_digit(text_[at_]);
      if (!digit) return refuse("an escape without its digits");
      value = value * 16 + *digit;
    }
    return value;
  }

  Result<char32_t> unicode() {
    if (skip("{")) {
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos || end == at_ || end - at_ > 6) return refuse("an escape without its digits");
      STINT_TRY(const char32_t value, hexadecimal(end - at_));
      skip("}");
      if (value > kLastCharacter) return refuse("an escape beyond Unicode");
      return value;
    }
    STINT_TRY(const char32_t high, hexadecimal(4));
    if (high < 0xD800 || high > 0xDBFF || !skip("\\u")) return high;
    STINT_TRY(const char32_t low, hexadecimal(4));
    if (low < 0xDC00 || low > 0xDFFF) return refuse("half a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10U) + (low - 0xDC00);
  }

  static Characters merged(Characters set) {
    std::ranges::sort(set, {}, &TextPattern::Range::first);
    Characters out;
    for (const TextPattern::Range& range : set) {
      if (!out.empty() && range.first <= out.back().last + 1) {
        out.back().last = std::max(out.back().last, range.last);
      } else {
        out.push_back(range);
      }
    }
    return out;
  }
  static Characters opposite(Characters set) {
    Characters out;
    char32_t next = 0;
    for (const TextPattern::Range& range : merged(std::move(set))) {
      if (range.first > next) out.push_back({next, range.first - 1});
      next = range.last + 1;
    }
    if (next <= kLastCharacter) out.push_back({next, kLastCharacter});
    return out;
  }

  const std::string_view text_;
  TextPattern& out_;
  std::size_t at_ = 0;
};

class PatternCompiler {
 public:
  explicit PatternCompiler(TextPattern& out) : states_(out.states_) {}

  /// False: too large.
  bool compile(const PatternNode& node) {
    if (!write(node)) return false;
    add(Op::found);
    return true;
  }

 private:
  using Op = TextPattern::Op;
  using Kind = PatternNode::Kind;

  std::uint32_t here() const noexcept { return static_cast<std::uint32_t>(states_.size()); }
  std::uint32_t add(Op op, std::uint32_t next = 0, std::uint32_t other = 0) {
    states_.push_back({op, next, other});
    return here() - 1;
  }

  bool write(const PatternNode& node) {
    if (++steps_ > TextPattern::kStatesMax || states_.size() > TextPattern::kStatesMax) return false;
    switch (node.kind) {
      case Kind::nothing: return true;
      case Kind::characters: add(Op::characters, static_cast<std::uint32_t>(node.which)); return true;
      case Kind::assertion: add(static_cast<Op>(node.which)); return true;
      case Kind::sequence:
        return std::ranges::all_of(node.parts, [this](const PatternNode& part) { return write(part); });
      case Kind::choice: return write_choice(node);
      case Kind::repeat: return write_repeat(node);
    }
    return false;
  }

  bool write_choice(const PatternNode& node) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i + 1 < node.parts.size(); ++i) {
      const std::uint32_t fork = add(Op::fork, here() + 1);
      if (!write(node.parts[i])) return false;
      jumps.push_back(add(Op::jump));
      states_[fork].other = here();
    }
    if (!write(node.parts.back())) return false;
    for (const std::uint32_t jump : jumps) states_[jump].next = here();
    return true;
  }

  bool write_repeat(const PatternNode& node) {
    const PatternNode& part = node.parts.front();
    for (std::uint32_t i = 0; i < node.least; ++i) {
      if (!write(part)) return false;
    }
    if (node.most == kEndless) {
      const std::uint32_t fork = add(Op::fork, here() + 1);
      if (!write(part)) return false;
      add(Op::jump, fork);
      states_[fork].other = here();
      return true;
    }
    std::vector<std::uint32_t> forks;
    for (std::uint32_t i = node.least; i < node.most; ++i) {
      forks.push_back(add(Op::fork, here() + 1));
      if (!write(part)) return false;
    }
    for (const std::uint32_t fork : forks) states_[fork].other = here();
    return true;
  }

  std::vector<TextPattern::State>& states_;
  std::size_t steps_ = 0;
};

class PatternSearch {
 public:
  explicit PatternSearch(const TextPattern& pattern) : pattern_(pattern), seen_(pattern.states_.size(), 0) {}

  bool run(std::string_view text) {
    while (true) {
      next_ = text.empty() ? std::nullopt : std::optional(decode(text).character);
      ++round_;
      live_.clear();
      follow(0);  // a match may begin at every character
      for (const std::uint32_t state : entered_) follow(state);
      if (found_) return true;
      if (text.empty()) return false;
      entered_.clear();
      for (const std::uint32_t state : live_) {
        if (contains(pattern_.sets_[pattern_.states_[state].next], *next_)) entered_.push_back(state + 1);
      }
      previous_ = next_;
      text.remove_prefix(decode(text).bytes);
    }
  }

 private:
  using Op = TextPattern::Op;

  static bool contains(const TextPattern::Characters& set, char32_t character) {
    const auto after = std::ranges::upper_bound(set, character, {}, &TextPattern::Range::first);
    return after != set.begin() && character <= std::prev(after)->last;
  }

  [[nodiscard]] bool holds(Op op) const {
    if (op == Op::begin) return !previous_;
    if (op == Op::end) return !next_;
    return (is_word_character(previous_) != is_word_character(next_)) == (op == Op::boundary);
  }

  /// Adds the states that `first` leads to without reading a character.
  void follow(std::uint32_t first) {
    todo_.push_back(first);
    while (!todo_.empty()) {
      const std::uint32_t at = todo_.back();
      todo_.pop_back();
      if (std::exchange(seen_[at], round_) == round_) continue;
      const TextPattern::State& state = pattern_.states_[at];
      switch (state.op) {
        case Op::characters: live_.push_back(at); break;
        case Op::found: found_ = true; break;
        case Op::jump: todo_.push_back(state.next); break;
        case Op::fork:
          todo_.push_back(state.next);
          todo_.push_back(state.other);
          break;
        default:
          if (holds(state.op)) todo_.push_back(at + 1);
      }
    }
  }

  const TextPattern& pattern_;
  std::vector<std::uint64_t> seen_;  // the round in which a state was entered last
  std::uint64_t round_ = 0;
  std::vector<std::uint32_t> live_, entered_, todo_;
  std::optional<char32_t> previous_, next_;
  bool found_ = false;
};

Result<TextPattern> TextPattern::compile(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return fail(Errc::invalid, fmt::format("a pattern of {} bytes; at most {}", pattern.size(), kPatternBytesMax));
  }
  TextPattern out;
  STINT_TRY(const PatternNode tree, PatternParser(pattern, out).parse());
  if (!PatternCompiler(out).compile(tree)) {
    return fail(Errc::invalid, fmt::format("a pattern with more than {} states", kStatesMax));
  }
  return out;
}

bool TextPattern::is_found_in(std::string_view text) const { return PatternSearch(*this).run(text); }

}  // namespace stint::driver
