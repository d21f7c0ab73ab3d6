#include "domain/agent.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

constexpr std::size_t kLimitNameMax = 128;

bool is_lower_or_digit(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string_view to_string(Permissions permissions) noexcept {
  switch (permissions) {
    case Permissions::read: return "read";
    case Permissions::edit: return "edit";
    case Permissions::full: return "full";
  }
  return "unknown";
}

std::string_view to_string(OnCrash on_crash) noexcept {
  switch (on_crash) {
    case OnCrash::resume: return "resume";
    case OnCrash::rerun: return "rerun";
    case OnCrash::doubt: return "doubt";
  }
  return "unknown";
}

std::string_view to_string(AgentHome home) noexcept { return home == AgentHome::slot ? "slot" : "shared"; }

std::string_view to_string(ToolClass tool_class) noexcept {
  switch (tool_class) {
    case ToolClass::read: return "read";
    case ToolClass::idempotent: return "idempotent";
    case ToolClass::keyed: return "keyed";
    case ToolClass::once: return "once";
  }
  return "unknown";
}

std::string_view to_string(AgentFormat format) noexcept {
  switch (format) {
    case AgentFormat::stint: return "stint";
    case AgentFormat::coven: return "coven";
    case AgentFormat::claude: return "claude";
    case AgentFormat::gemini: return "gemini";
    case AgentFormat::opencode: return "opencode";
    case AgentFormat::github: return "github";
  }
  return "unknown";
}

std::string agent_limit(std::string_view agent) { return "agent:" + std::string(agent); }

bool is_agent_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kAgentNameMax || !is_lower_or_digit(name[0])) return false;
  return std::ranges::all_of(name, [](char c) { return is_lower_or_digit(c) || c == '_' || c == '-'; });
}

bool is_argument_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kAgentNameMax || (!is_letter(name[0]) && name[0] != '_')) return false;
  return std::ranges::all_of(name,
                             [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

bool is_limit_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kLimitNameMax || name.contains("..")) return false;
  const auto alphanumeric = [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (!alphanumeric(name[0])) return false;
  return std::ranges::all_of(name,
                             [&](char c) { return alphanumeric(c) || c == '_' || c == '.' || c == ':' || c == '-'; });
}

std::string limit_of_file_name(std::string_view name) {
  for (const std::string_view kind : {"agent", "account", "model"}) {
    if (!name.starts_with(kind) || name.size() < kind.size() + 2 || name[kind.size()] != '.') continue;
    return std::string(kind) + ":" + std::string(name.substr(kind.size() + 1));
  }
  return {};
}

}  // namespace stint::domain
