#include "cli/demo_view.hpp"

#include "cli/demo_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using wire::DemoEvent;
using wire::DemoEventKind;

constexpr int kBoxWidthMin = 14, kBoxWidthMax = 24, kBoxHeight = 5;
constexpr int kCellWidthMin = 19, kCellWidthMax = 40;  // a space on one line, when boxes do not fit
constexpr int kColumnsForTwo = 72;                     // from here on line and events stand side by side
constexpr int kFixedRows = 10;                         // header, timeline, caption, blanks, counters

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
std::string tenths(Duration duration) { return fmt::format("{:.1f} s", seconds(duration)); }

struct Glyphs {
  std::string_view full, empty, done, to_come, across, down, top_left, top_right, bottom_left, bottom_right;
};
constexpr Glyphs kBlocks = {"█", "░", "━", "─", "─", "│", "╭", "╮", "╰", "╯"};
constexpr Glyphs kAscii = {"#", ".", "=", "-", "-", "|", "+", "+", "+", "+"};

std::string repeated(std::string_view glyph, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += glyph;
  return out;
}

double progress(Duration done, Duration whole) {
  return whole <= Duration::zero() ? 0 : std::clamp(seconds(done) / seconds(whole), 0.0, 1.0);
}

/// A worker keeps its colour in the garage, in the line and in the events.
Style style_of(std::string_view who, std::uint32_t units) {
  if (units > 1) return Style::bold;
  static constexpr std::array kStyles = {Style::cyan, Style::green, Style::yellow, Style::magenta, Style::blue};
  unsigned hash = 0;
  for (const char c : who) hash = hash * 31 + static_cast<unsigned char>(c);
  return kStyles[hash % kStyles.size()];
}

/// Draws one picture.
class Painter {
 public:
  Painter(const GarageView& view, const Spaces& spaces, const std::deque<DemoEvent>& recent, const Look& look)
      : view_(view), spaces_(spaces), recent_(recent), look_(look), glyphs_(look.utf8 ? kBlocks : kAscii) {}

  std::vector<std::string> paint() {
    header();
    blank();
    garage();
    blank();
    lists(std::max(2, look_.rows - static_cast<int>(lines_.size()) - 3));
    blank();
    counters();
    std::vector<std::string> out;
    for (const Line& line : lines_) {
      if (static_cast<int>(out.size()) == look_.rows) break;
      out.push_back(line.clipped(look_.columns, look_.utf8).str(look_.colour));
    }
    return out;
  }

 private:
  std::string text(std::string_view words) const { return look_.utf8 ? std::string(words) : to_ascii(words); }
  void put(Line line) { lines_.push_back(std::move(line)); }
  void blank() { put(Line()); }

  void header() {
    const std::string left =
        text(fmt::format(" stint demo · a garage with {} space{}", view_.capacity, view_.capacity == 1 ? "" : "s"));
    const std::string right = fmt::format("{} of {:.0f} s ", tenths(view_.now), seconds(view_.length));
    put(Line(left, Style::bold).padded(look_.columns - width_of(right), look_.utf8).add(right, Style::dim));
    const int wide = look_.columns - 2;
    const int done = static_cast<int>(progress(view_.now, view_.length) * wide);
    put(Line(" ")
            .add(repeated(glyphs_.done, done), Style::green)
            .add(repeated(glyphs_.to_come, wide - done), Style::dim));
    auto caption = wrapped(text(view_.caption), look_.columns - 2, 2);
    caption.resize(2);
    for (std::string& line : caption) put(Line(" " + std::move(line), Style::yellow));
  }

  // ---- the spaces

  const GarageView::Parked* parked(const std::string& who) const {
    const auto found = std::ranges::find(view_.parked, who, &GarageView::Parked::who);
    return found == view_.parked.end() ? nullptr : &*found;
  }
  std::string name_of(const Spaces::Space& space) const {
    return space.parts == 1 ? space.who : fmt::format("{} {}/{}", space.who, space.part, space.parts);
  }
  static std::string state_of(const Spaces::Space& space) {
    if (space.closing) return "debt";
    return space.closed ? "closed" : space.who.empty() ? "free" : "";
  }
  Line bar(const GarageView::Parked& guest, int wide, bool closing) const {
    const int full = std::clamp(static_cast<int>(progress(guest.inside, guest.stay) * wide + 0.5), 0, wide);
    return Line(repeated(glyphs_.full, full), closing ? Style::red : style_of(guest.who, guest.units))
        .add(repeated(glyphs_.empty, wide - full), Style::dim);
  }

  void garage() {
    const int count = static_cast<int>(spaces_.all().size());
    const int across = std::clamp((look_.columns - 1) / kBoxWidthMin, 1, std::max(1, count));
    const int down = (count + across - 1) / across;
    if (down * kBoxHeight <= std::max(kBoxHeight, (look_.rows - kFixedRows) / 2)) {
      boxes(across);
    } else {
      cells(std::clamp((look_.columns - 1) / kCellWidthMin, 1, count));
    }
  }

  void boxes(int across) {
    const int wide = std::min(kBoxWidthMax, (look_.columns - 1) / across);
    const auto& all = spaces_.all();
    for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(across)) {
      std::array<Line, kBoxHeight> rows;
      rows.fill(Line(" "));
      const std::size_t end = std::min(all.size(), first + static_cast<std::size_t>(across));
      for (std::size_t i = first; i < end; ++i) {
        const auto box = box_of(all[i], i + 1, wide - 1);
        for (std::size_t row = 0; row < rows.size(); ++row) rows[row].add(box[row]).add(" ");
      }
      for (Line& row : rows) put(std::move(row));
    }
  }

  std::array<Line, kBoxHeight> box_of(const Spaces::Space& space, std::size_t number, int wide) const {
    const Style frame = space.closing ? Style::red : space.who.empty() ? Style::dim : Style::plain;
    const int inner = wide - 4;  // between "│ " and " │"
    const std::string title = fmt::format(" {} ", number);
    const auto framed = [&](const Line& line) {
      return Line(std::string(glyphs_.down) + " ", frame)
          .add(line.padded(inner, look_.utf8))
          .add(" " + std::string(glyphs_.down), frame);
    };
    std::array<Line, kBoxHeight> box;
    box[0] = Line(std::string(glyphs_.top_left) + std::string(glyphs_.across) + title +
                      repeated(glyphs_.across, wide - 3 - width_of(title)) + std::string(glyphs_.top_right),
                  frame);
    box[4] =
        Line(std::string(glyphs_.bottom_left) + repeated(glyphs_.across, wide - 2) + std::string(glyphs_.bottom_right),
             frame);
    const GarageView::Parked* const guest = parked(space.who);
    if (guest == nullptr) {
      box[1] = framed(Line());
      box[2] = framed(Line(state_of(space), Style::dim));
      box[3] = framed(Line(space.closed ? repeated(look_.utf8 ? "╱" : "/", inner) : "", Style::dim));
    } else {
      box[1] = framed(Line(name_of(space), space.closing ? Style::red : style_of(guest->who, guest->units)));
      box[2] = framed(bar(*guest, inner, space.closing));
      box[3] = framed(space.closing ? Line(state_of(space), Style::red) : Line(tenths(guest->inside), Style::dim));
    }
    return box;
  }

  void cells(int across) {
    const int wide = std::min(kCellWidthMax, (look_.columns - 1) / across);
    const auto& all = spaces_.all();
    for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(across)) {
      Line row(" ");
      const std::size_t end = std::min(all.size(), first + static_cast<std::size_t>(across));
      for (std::size_t i = first; i < end; ++i) row.add(cell_of(all[i], i + 1, wide).padded(wide, look_.utf8));
      put(std::move(row));
    }
  }

  Line cell_of(const Spaces::Space& space, std::size_t number, int wide) const {
    Line cell(fmt::format("{:>2} ", number), Style::dim);
    const GarageView::Parked* const guest = parked(space.who);
    if (guest == nullptr) return cell.add(state_of(space), Style::dim);
    constexpr int kNameWidth = 8;
    const Style style = space.closing ? Style::red : style_of(guest->who, guest->units);
    cell.add(Line(space.who, style).padded(kNameWidth, look_.utf8));
    return cell.add(bar(*guest, std::max(1, wide - kNameWidth - 5), space.closing));
  }

  // ---- the line and the events

  void lists(int rows) {
    const bool two = look_.columns >= kColumnsForTwo;
    if (two) {
      const int left = look_.columns / 2 - 2;
      auto line = line_outside(rows);
      auto events = what_happened(rows);
      for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        Line row;
        row.add((i < line.size() ? line[i] : Line()).padded(left, look_.utf8)).add("  ");
        if (i < events.size()) row.add(events[i]);
        put(std::move(row));
      }
      return;
    }
    const int above = std::max(2, rows / 2);
    for (auto& lines : {line_outside(above), what_happened(std::max(2, rows - above))}) {
      for (const Line& line : lines) put(line);
    }
  }

  std::vector<Line> line_outside(int rows) const {
    std::vector<Line> lines;
    lines.push_back(
        Line(view_.line.empty() ? " line is empty" : fmt::format(" {} in line", view_.line.size()), Style::bold));
    const auto room = static_cast<std::size_t>(rows - 1);
    const bool tells_rest = view_.line.size() > room && room >= 3;
    const std::size_t shown = std::min(view_.line.size(), tells_rest ? room - 1 : room);
    for (std::size_t i = 0; i < shown; ++i) {
      const GarageView::Waiting& waiting = view_.line[i];
      Line line(fmt::format(" {:>2}  ", i + 1), Style::dim);
      line.add(fmt::format("{:<6}", waiting.who), style_of(waiting.who, waiting.units));
      line.add(fmt::format(" {:>6}", tenths(waiting.waited)));
      if (waiting.units > 1) line.add(fmt::format("  wants {}", waiting.units), Style::bold);
      if (waiting.patience_left) line.add("  gives up in " + tenths(*waiting.patience_left), Style::red);
      lines.push_back(std::move(line));
    }
    if (tells_rest) {
      lines.push_back(Line(text(fmt::format("     … and {} more", view_.line.size() - shown)), Style::dim));
    }
    lines.resize(static_cast<std::size_t>(rows));
    return lines;
  }

  /// The newest last, as in a log.
  std::vector<Line> what_happened(int rows) const {
    std::vector<Line> lines;
    lines.push_back(Line(" what happened", Style::bold));
    const std::size_t shown = std::min(recent_.size(), static_cast<std::size_t>(rows - 1));
    for (auto event = recent_.end() - static_cast<std::ptrdiff_t>(shown); event != recent_.end(); ++event) {
      Line line(fmt::format(" {:>4.1f}  ", seconds(event->at)), Style::dim);
      const std::string who = event->who.empty() ? "garage" : event->who;
      line.add(fmt::format("{:<6} ", who), event->who.empty() ? Style::bold : style_of(who, event->units));
      line.add(text(describe(*event)), tone(event->kind));
      lines.push_back(std::move(line));
    }
    return lines;
  }
  static Style tone(DemoEventKind kind) {
    switch (kind) {
      case DemoEventKind::enters: return Style::green;
      case DemoEventKind::gives_up:
      case DemoEventKind::cancelled:
      case DemoEventKind::refused:
      case DemoEventKind::sent_home: return Style::red;
      case DemoEventKind::resized:
      case DemoEventKind::closes: return Style::bold;
      default: return Style::plain;
    }
  }

  void counters() {
    const wire::DemoSummary& sums = view_.sums;
    Line first;
    std::uint32_t inside = 0;
    for (const auto& guest : view_.parked) inside += guest.units;
    first.add(fmt::format(" inside {} of {}", inside, view_.capacity), Style::bold);
    if (view_.debt > 0) first.add(fmt::format(", debt {}", view_.debt), Style::red);
    first.add(text(fmt::format(" · most {} of {}", sums.inside_max, sums.capacity_max)));
    first.add(text(fmt::format(" · {} grants, {} too many", sums.granted, sums.over_limit)),
              sums.over_limit == 0 ? Style::green : Style::red);
    put(std::move(first));
    put(Line(text(fmt::format(" gave up {} · cancelled {} · refused {} · sent home {}", sums.gave_up, sums.cancelled,
                              sums.refused, sums.sent_home)),
             Style::dim));
  }

  const GarageView& view_;
  const Spaces& spaces_;
  const std::deque<DemoEvent>& recent_;
  const Look& look_;
  const Glyphs& glyphs_;
  std::vector<Line> lines_;
};

std::string spaces_text(std::uint32_t units) { return units == 1 ? "a space" : fmt::format("{} spaces", units); }

}  // namespace

// ---- Spaces
// ----------------------------------------------------------------------------------------------------------

void Spaces::update(const std::vector<GarageView::Parked>& parked, std::uint32_t capacity) {
  if (spaces_.size() < capacity) spaces_.resize(capacity);
  leave(parked);
  close_down(capacity);
  for (const GarageView::Parked& guest : parked) {
    if (std::ranges::find(spaces_, guest.who, &Space::who) == spaces_.end()) enter(guest);
  }
}

void Spaces::leave(const std::vector<GarageView::Parked>& parked) {
  for (Space& space : spaces_) {
    if (!space.who.empty() && std::ranges::find(parked, space.who, &GarageView::Parked::who) == parked.end()) {
      space = Space();
    }
  }
}

/// Closes free spaces first, from the last; occupied ones beyond that are the debt. A closed space stays closed until
/// the capacity grows.
void Spaces::close_down(std::uint32_t capacity) {
  auto surplus = static_cast<std::int64_t>(spaces_.size()) - std::int64_t{capacity};
  for (Space& space : spaces_) space.closing = false;
  for (Space& space : spaces_) {
    if (space.closed && surplus-- <= 0) space.closed = false;
  }
  for (auto space = spaces_.rbegin(); space != spaces_.rend() && surplus > 0; ++space) {
    if (!space->who.empty() || space->closed) continue;
    space->closed = true;
    --surplus;
  }
  for (auto space = spaces_.rbegin(); space != spaces_.rend() && surplus > 0; ++space) {
    if (space->who.empty()) continue;
    space->closing = true;
    --surplus;
  }
}

void Spaces::enter(const GarageView::Parked& guest) {
  std::uint32_t part = 0;
  for (Space& space : spaces_) {
    if (part == guest.units) return;
    if (!space.who.empty() || space.closed) continue;
    space.who = guest.who;
    space.part = ++part;
    space.parts = guest.units;
  }
}

// ---- Text
// ------------------------------------------------------------------------------------------------------------

std::vector<std::string> draw(const GarageView& view, const Spaces& spaces, const std::deque<DemoEvent>& recent,
                              const Look& look) {
  return Painter(view, spaces, recent, look).paint();
}

std::string describe(const DemoEvent& event) {
  switch (event.kind) {
    case DemoEventKind::waits: {
      const std::string what = event.units == 1 ? "" : fmt::format(" for {}", event.units);
      return fmt::format("waits{}, place {}", what, event.place);
    }
    case DemoEventKind::enters:
      if (event.took == Duration::zero())
        return event.units == 1 ? "parks at once" : fmt::format("gets {} spaces at once", event.units);
      return event.units == 1 ? "parks after " + tenths(event.took)
                              : fmt::format("gets {} spaces after {}", event.units, tenths(event.took));
    case DemoEventKind::leaves: return "leaves after " + tenths(event.took);
    case DemoEventKind::gives_up: return fmt::format("gives up after {}", tenths(event.took));
    case DemoEventKind::cancelled:
      return event.was_inside ? "cancelled inside at " + tenths(event.took)
                              : "cancelled in line at " + tenths(event.took);
    case DemoEventKind::refused: return fmt::format("refused: wants {} of {}", event.units, event.capacity);
    case DemoEventKind::sent_home: return "sent home: closed";
    case DemoEventKind::resized: {
      const std::string debt =
          event.inside > event.capacity ? fmt::format(", {} over", event.inside - event.capacity) : "";
      return fmt::format("has {} now{}", event.capacity == 0 ? "no space" : spaces_text(event.capacity), debt);
    }
    case DemoEventKind::closes: return "closes";
  }
  return "";
}

std::string describe_line(const DemoEvent& event) {
  return fmt::format("{:6.2f} s  {:<7} {:<31} inside {} of {}, line {}", seconds(event.at),
                     event.who.empty() ? "garage" : event.who, describe(event), event.inside, event.capacity,
                     event.waiting);
}

std::string describe(const wire::DemoSummary& summary) {
  std::string out;
  const auto row = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<16} {}\n", name, value);
  };
  out += summary.interrupted ? fmt::format("Stopped after {}.\n", tenths(summary.took))
                             : fmt::format("The garage is empty again after {}.\n", tenths(summary.took));
  row("granted", fmt::format("{}; over the limit: {}", summary.granted,
                             summary.over_limit == 0 ? "never" : fmt::format("{} TIMES", summary.over_limit)));
  row("most inside", fmt::format("{} of {}", summary.inside_max, summary.capacity_max));
  row("largest debt", fmt::format("{} after the limit was lowered", summary.debt_max));
  row("longest wait", fmt::format("{}, longest line {}", tenths(summary.wait_max), summary.line_max));
  row("gave up", fmt::format("{} at their deadline", summary.gave_up));
  row("cancelled", fmt::format("{}", summary.cancelled));
  row("refused", fmt::format("{} that could never be granted", summary.refused));
  row("sent home", fmt::format("{} when it closed", summary.sent_home));
  row("permits out now", fmt::format("{}", summary.permits_out));
  return out;
}

}  // namespace stint::cli
