/// A circular, doubly linked, intrusive list: items embed their hook, so linking never allocates and unlinking is O(1).
#pragma once

#include "stint/detail/compiler.hpp"

namespace stint::detail {

/// False for types that track by themselves whether they are linked and are always unlinked before they are destroyed:
/// their hook never points at itself, so `linked()` and a repeated `unlink()` must not be used.
template <class Tag>
inline constexpr bool kUnlinksItself = true;

/// A hook. It points at itself while unlinked, so unlink() needs no branch and may be repeated. One Tag per list that
/// an object can be in.
template <class Tag>
class Link {
 public:
  Link() noexcept {
    if constexpr (kUnlinksItself<Tag>) next_ = prev_ = this;
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    if constexpr (kUnlinksItself<Tag>) unlink();
  }

  bool linked() const noexcept { return next_ != this; }
  Link* next() const noexcept { return next_; }
  Link* prev() const noexcept { return prev_; }
  void insert_before(Link& link) noexcept {
    link.prev_ = prev_;
    link.next_ = this;
    prev_->next_ = &link;
    prev_ = &link;
  }
  void unlink() noexcept {
    prev_->next_ = next_;
    next_->prev_ = prev_;
    if constexpr (kUnlinksItself<Tag>) next_ = prev_ = this;
  }

 private:
  template <class T, class U>
  friend class List;
  Link* next_;
  Link* prev_;
};

template <class T, class Tag = T>
class List {
 public:
  List() noexcept { head_.next_ = head_.prev_ = &head_; }
  bool empty() const noexcept { return !head_.linked(); }
  T& front() const noexcept { return static_cast<T&>(*head_.next()); }
  T& back() const noexcept { return static_cast<T&>(*head_.prev()); }
  Link<Tag>* first() const noexcept { return head_.next(); }
  const Link<Tag>* end() const noexcept { return &head_; }
  void push_back(T& item) noexcept { head_.insert_before(static_cast<Link<Tag>&>(item)); }
  void push_front(T& item) noexcept { head_.next()->insert_before(static_cast<Link<Tag>&>(item)); }
  /// Moves all items of `other` to the end of this list.
  void splice_back(List& other) noexcept {
    if (other.empty()) return;
    Link<Tag>* const first = other.head_.next_;
    Link<Tag>* const last = other.head_.prev_;
    other.head_.next_ = other.head_.prev_ = &other.head_;
    first->prev_ = head_.prev_;
    head_.prev_->next_ = first;
    last->next_ = &head_;
    head_.prev_ = last;
  }
  /// `visit` may unlink only the item it is given.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Link<Tag>* link = head_.next(); link != &head_;) {
      Link<Tag>* const following = link->next();
      visit(static_cast<T&>(*link));
      link = following;
    }
  }

 private:
  Link<Tag> head_;
};

}  // namespace stint::detail
