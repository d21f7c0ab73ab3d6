#include "agent/template.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace stint::agent {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kThis = "this";

struct Tag {
  enum class Kind : std::uint8_t { value, open_if, open_unless, open_each, otherwise, close, remark };
  Kind kind = Kind::value;
  std::string name;  // the argument; for a closing tag, the block's keyword
  std::size_t begin = 0;
  std::size_t end = 0;  // after the braces
};

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

std::size_t backslashes_before(std::string_view text, std::size_t position) noexcept {
  std::size_t count = 0;
  while (count < position && text[position - count - 1] == '\\') ++count;
  return count;
}

}  // namespace

/// Recursive descent over the text. Stops at the first error: anything after a broken tag is guesswork.
class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : text_(text) {}

  std::expected<Template, TemplateError> parse() {
    std::optional<Tag> end;
    result_.nodes_ = block(0, end);
    if (!error_ && end) fail(end->begin, fmt::format("{{{{{}}}}} closes no block", described(*end)), "");
    if (error_) return std::unexpected(std::move(*error_));
    return std::move(result_);
  }

 private:
  using Node = Template::Node;
  using Kind = Template::Kind;

  static std::string described(const Tag& tag) { return tag.kind == Tag::Kind::otherwise ? "else" : "/" + tag.name; }

  void fail(std::size_t at, std::string message, std::string suggestion) {
    if (error_) return;
    const std::size_t line_begin = text_.rfind('\n', at == 0 ? std::string_view::npos : at - 1);
    const std::size_t column = at == 0 || line_begin == std::string_view::npos ? at : at - line_begin - 1;
    error_ = TemplateError{line_of(text_, at), static_cast<int>(column) + 1, std::move(message), std::move(suggestion)};
  }

  /// Nodes up to the end of the text, or to an {{else}} or {{/…}} that belongs to the enclosing block.
  std::vector<Node> block(int depth, std::optional<Tag>& end) {
    std::vector<Node> nodes;
    end.reset();
    while (!error_) {
      std::optional<Tag> tag = take_text(nodes);
      if (!tag) break;
      switch (tag->kind) {
        case Tag::Kind::remark: break;
        case Tag::Kind::value:
          use(*tag);
          nodes.push_back({Kind::value, tag->name, false, {}, {}});
          break;
        case Tag::Kind::otherwise:
        case Tag::Kind::close: end = std::move(tag); return nodes;
        default: nodes.push_back(open(*tag, depth)); break;
      }
    }
    return nodes;
  }

  Node open(const Tag& tag, int depth) {
    const bool each = tag.kind == Tag::Kind::open_each;
    const std::string word = each ? "each" : tag.kind == Tag::Kind::open_if ? "if" : "unless";
    Node node{each ? Kind::each : Kind::branch, tag.name, tag.kind == Tag::Kind::open_unless, {}, {}};
    if (depth >= Template::kDepthMax) {
      fail(tag.begin, fmt::format("more than {} nested blocks", Template::kDepthMax), "");
      return node;
    }
    use(tag);
    std::optional<Tag> end;
    each_depth_ += each ? 1 : 0;
    node.body = block(depth + 1, end);
    each_depth_ -= each ? 1 : 0;
    if (end && end->kind == Tag::Kind::otherwise) node.otherwise = block(depth + 1, end);
    if (error_) return node;
    if (!end) {
      fail(tag.begin, fmt::format("{{{{#{} {}}}}} is not closed", word, tag.name),
           fmt::format("end it with {{{{/{}}}}}", word));
    } else if (end->kind != Tag::Kind::close || end->name != word) {
      fail(end->begin, fmt::format("found {{{{{}}}}} where {{{{/{}}}}} is expected", described(*end), word), "");
    }
    return node;
  }

  void use(const Tag& tag) {
    if (tag.name == kThis) {
      if (each_depth_ == 0) fail(tag.begin, "{{this}} is only valid within {{#each}}", "");
      return;
    }
    // Counts lines from the last name on: a long template with many tags must not be scanned again for each.
    for (; line_at_ < tag.begin; ++line_at_) {
      if (text_[line_at_] != '\n') continue;
      ++line_;
      line_begin_ = line_at_ + 1;
    }
    result_.names_.push_back({tag.name, line_, static_cast<int>(tag.begin - line_begin_) + 1});
  }

  /// Consumes the text up to the next tag, and the tag. Nothing: the text ended.
  std::optional<Tag> take_text(std::vector<Node>& nodes) {
    std::string out;
    std::optional<Tag> tag;
    while (!error_) {
      const std::size_t found = text_.find(kOpen, position_);
      if (found == std::string_view::npos) {
        out += text_.substr(position_);
        position_ = text_.size();
        break;
      }
      const std::size_t slashes = std::min(backslashes_before(text_, found), found - position_);
      out += text_.substr(position_, found - position_ - slashes);
      out.append(slashes / 2, '\\');
      position_ = found;
      if (slashes % 2 == 1) {
        out += kOpen;
        position_ = found + kOpen.size();
        continue;
      }
      tag = read_tag(found);
      if (tag) {
        position_ = tag->end;
        if (tag->kind != Tag::Kind::value) drop_line(*tag, out);
      }
      break;
    }
    if (!out.empty()) nodes.push_back({Kind::text, std::move(out), false, {}, {}});
    return tag;
  }

  /// A block tag or comment that is alone on its line removes the line.
  void drop_line(const Tag& tag, std::string& before) {
    std::size_t begin = tag.begin;
    while (begin > 0 && is_blank(text_[begin - 1])) --begin;
    if (begin > 0 && text_[begin - 1] != '\n') return;
    std::size_t end = tag.end;
    while (end < text_.size() && is_blank(text_[end])) ++end;
    if (end < text_.size() && text_[end] != '\n') return;
    before.resize(before.size() - std::min(before.size(), tag.begin - begin));
    position_ = std::min(end + 1, text_.size());
  }

  std::optional<Tag> read_tag(std::size_t begin) {
    if (++tags_ > Template::kTagsMax) {
      fail(begin, fmt::format("more than {} tags", Template::kTagsMax), "");
      return std::nullopt;
    }
    const bool triple =
        text_.substr(begin + 2).starts_with('{');  // Handlebars' syntax for "without escaping"; same meaning here
    const std::size_t inside = begin + (triple ? 3 : 2);
    const bool long_remark = text_.substr(inside).starts_with("!--");
    const std::string_view closing = long_remark ? "--}}" : triple ? "}}}" : "}}";
    const bool remark = text_.substr(inside).starts_with('!');
    const std::string_view reach = remark ? text_ : text_.substr(0, inside + Template::kTagMax + closing.size());
    const std::size_t end = reach.find(closing, inside);
    if (end == std::string_view::npos) {
      fail(begin, fmt::format("'{}' is not closed by '{}'", triple ? "{{{" : "{{", closing),
           "write \\{{ for a literal {{");
      return std::nullopt;
    }
    Tag tag;
    tag.begin = begin;
    tag.end = end + closing.size();
    if (remark) {
      tag.kind = Tag::Kind::remark;
      return tag;
    }
    return read_inside(std::move(tag), trimmed(text_.substr(inside, end - inside)));
  }

  std::optional<Tag> read_inside(Tag tag, std::string_view inside) {
    struct Opening {
      std::string_view word;
      Tag::Kind kind;
    };
    constexpr std::array kOpenings{Opening{"#if", Tag::Kind::open_if}, Opening{"#unless", Tag::Kind::open_unless},
                                   Opening{"#each", Tag::Kind::open_each}};
    if (inside == "else") {
      tag.kind = Tag::Kind::otherwise;
      return tag;
    }
    if (inside.starts_with('/')) {
      tag.kind = Tag::Kind::close;
      tag.name = trimmed(inside.substr(1));
      return tag;
    }
    std::string_view name = inside;
    for (const Opening& opening : kOpenings) {
      if (!inside.starts_with(opening.word)) continue;
      const std::string_view rest = inside.substr(opening.word.size());
      if (rest.empty() || !(is_blank(rest[0]) || rest[0] == '\n')) continue;
      tag.kind = opening.kind;
      name = trimmed(rest);
    }
    if (!domain::is_argument_name(name) || name == "else") {
      fail(tag.begin, fmt::format("'{}' is not the name of an argument, nor #if, #unless, #each, else", excerpt(name)),
           "write \\{{ for a literal {{");
      return std::nullopt;
    }
    tag.name = name;
    return tag;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t tags_ = 0;
  int each_depth_ = 0;
  int line_ = 1;  // of line_at_
  std::size_t line_at_ = 0;
  std::size_t line_begin_ = 0;
  Template result_;
  std::optional<TemplateError> error_;
};

class TemplateRenderer {
 public:
  explicit TemplateRenderer(const domain::ArgumentValues& values) : values_(values) {}

  Result<std::string> render(const std::vector<Template::Node>& nodes) {
    write(nodes, nullptr);
    if (full_) {
      return fail(Errc::invalid, fmt::format("the rendered text is longer than {} bytes: pass less, or a file's name",
                                             Template::kRenderedMax));
    }
    return std::move(out_);
  }

 private:
  using Kind = Template::Kind;

  /// The values of a name; `item` is the value of {{this}}.
  std::pair<const std::string*, std::size_t> values_of(const std::string& name, const std::string* item) const {
    if (name == kThis && item != nullptr) return {item, 1};
    const auto found = values_.find(name);
    if (found == values_.end()) return {nullptr, 0};
    return {found->second.data(), found->second.size()};
  }

  void write(const std::vector<Template::Node>& nodes, const std::string* item) {
    for (const Template::Node& node : nodes) {
      step();
      if (full_) return;
      const auto [values, count] = values_of(node.text, item);
      switch (node.kind) {
        case Kind::text: append(node.text); break;
        case Kind::value:
          for (std::size_t i = 0; i < count; ++i) {
            if (i > 0) append(", ");
            append(values[i]);
          }
          break;
        case Kind::branch: {
          bool given = false;
          for (std::size_t i = 0; i < count; ++i) given = given || !values[i].empty();
          write(given != node.negated ? node.body : node.otherwise, item);
          break;
        }
        case Kind::each:
          for (std::size_t i = 0; i < count && !full_; ++i, step()) write(node.body, &values[i]);
          if (count == 0) write(node.otherwise, item);
          break;
      }
    }
  }

  void append(std::string_view text) {
    full_ = full_ || text.size() > Template::kRenderedMax - out_.size();
    if (!full_) out_ += text;
  }
  void step() { full_ = full_ || ++steps_ > Template::kRenderedMax; }

  const domain::ArgumentValues& values_;
  std::string out_;
  std::size_t steps_ = 0;  // a nested {{#each}} that writes nothing takes time, too
  bool full_ = false;
};

std::expected<Template, TemplateError> Template::parse(std::string_view text) { return TemplateParser(text).parse(); }

std::string Template::escape(std::string_view text) {
  std::string out;
  std::size_t position = 0;
  while (true) {
    const std::size_t found = text.find(kOpen, position);
    if (found == std::string_view::npos) return out.append(text.substr(position));
    const std::size_t slashes = std::min(backslashes_before(text, found), found - position);
    out += text.substr(position, found - position);
    out.append(slashes + 1, '\\');
    out += kOpen;
    position = found + kOpen.size();
  }
}

Result<std::string> Template::render(const domain::ArgumentValues& values) const {
  return TemplateRenderer(values).render(nodes_);
}

}  // namespace stint::agent
