#include "agent/yaml.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <stdexcept>

namespace stint::agent {
namespace {

/// Leaves yaml-cpp's parser from within an event; parse_yaml catches it.
struct Refused : std::runtime_error {
  Refused(Place where, const std::string& why) : std::runtime_error(why), place(where) {}
  Place place;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(int first_line, ProblemList& problems) : first_line_(first_line), problems_(problems) {}

  YamlNode take() { return std::move(root_); }
  Place place_of(const YAML::Mark& mark) const {
    if (mark.line < 0) return {};
    return {mark.line + first_line_, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add({}, mark, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused(place_of(mark), "aliases (*name) are not allowed here: write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node), mark, tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode node;
    std::optional<YamlNode> key;  // of a map, while its value is still missing
  };

  void check(const YAML::Mark& mark, const std::string& tag) {
    if (++nodes_ > kYamlNodesMax) throw Refused(place_of(mark), fmt::format("more than {} values", kYamlNodesMax));
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused(place_of(mark), fmt::format("tags ({}) are not allowed here", excerpt(tag)));
    }
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    check(mark, tag);
    if (levels_.size() >= kYamlDepthMax) {
      throw Refused(place_of(mark), fmt::format("more than {} levels of nesting", kYamlDepthMax));
    }
    Level level;
    level.node.kind = kind;
    level.node.place = place_of(mark);
    levels_.push_back(std::move(level));
  }

  void close() {
    YamlNode node = std::move(levels_.back().node);
    levels_.pop_back();
    put(std::move(node));
  }

  void add(YamlNode node, const YAML::Mark& mark, const std::string& tag) {
    check(mark, tag);
    node.place = place_of(mark);
    put(std::move(node));
  }

  void put(YamlNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == YamlNode::Kind::list) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (!level.key) {
      if (node.kind != YamlNode::Kind::scalar) throw Refused(node.place, "a key must be a word, not " + node.found());
      level.key = std::move(node);
      return;
    }
    node.key = std::move(level.key->text);
    node.key_place = level.key->place;
    level.key.reset();
    if (const YamlNode* const first = level.node.find(node.key)) {
      problems_.error(node.key_place, excerpt(node.key),
                      fmt::format("appears twice; first in line {}", first->key_place.line), "remove one");
    }
    level.node.items.push_back(std::move(node));
  }

  const int first_line_;
  ProblemList& problems_;
  std::vector<Level> levels_;
  YamlNode root_;
  std::size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view wanted) const noexcept {
  if (kind != Kind::map) return nullptr;
  for (const YamlNode& item : items) {
    if (item.key == wanted) return &item;
  }
  return nullptr;
}

std::string YamlNode::found() const {
  switch (kind) {
    case Kind::null: return "nothing";
    case Kind::scalar: return fmt::format("{}'{}'", quoted ? "the text " : "", excerpt(text));
    case Kind::list: return "a list";
    case Kind::map: return "a mapping";
  }
  return "something else";
}

std::optional<YamlNode> parse_yaml(std::string_view text, int first_line, ProblemList& problems) {
  TreeBuilder builder(first_line, problems);
  try {
    // After a line break at the end, yaml-cpp treats an unclosed quote as closed.
    std::istringstream stream{std::string(text.substr(0, text.find_last_not_of(" \t\n") + 1))};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    YamlNode root = builder.take();
    TreeBuilder second(first_line, problems);
    if (parser.HandleNextDocument(second)) {
      problems.error(second.take().place, "", "a second YAML document begins here", "remove the line '...' above it");
      return std::nullopt;
    }
    return root;
  } catch (const Refused& refused) {
    problems.error(refused.place, "", refused.what());
  } catch (const YAML::Exception& error) {
    problems.error(builder.place_of(error.mark), "", "not valid YAML: " + excerpt(error.msg, 200));
  } catch (const std::exception& error) {
    problems.error({first_line, 0}, "", fmt::format("not valid YAML: {}", excerpt(error.what(), 200)));
  }
  return std::nullopt;
}

}  // namespace stint::agent
