// Handles that own shares of what rapt.h makes, errors as exceptions, and guards for scopes and recording. Part of rapt.hpp.
#ifndef RAPT_HANDLES_HPP
#define RAPT_HANDLES_HPP

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include <rapt.h>

namespace rapt
{
namespace inside
{
inline std::string empty_message(const char *what)
{
    return std::string("rapt: the ") + what + " is empty, for instance moved from; one that holds something expected";
}

// What a handle holds, which has to be something: it is empty at first, and when it was moved from.
template <typename T> T *held(const char *what, T *handle)
{
    if (!handle) throw std::invalid_argument(empty_message(what));
    return handle;
}

// The fewest digits that stand for this number and no other.
inline std::string digits_of(double value)
{
    char digits[32];
    for (int count = 6; count <= 17; count++) {
        std::snprintf(digits, sizeof digits, "%.*g", count, value);
        if (std::strtod(digits, nullptr) == value) break;
    }
    return digits;
}

// A share of something of rapt.h, or none.
template <typename T, typename Kept, Kept *keep(T *), void give_back(T *)> class share
{
  public:
    explicit share(T *handle = nullptr) noexcept : handle_(handle)
    {
    }
    share(const share &other) noexcept : handle_(static_cast<T *>(keep(other.handle_)))
    {
    }
    share(share &&other) noexcept : handle_(other.handle_)
    {
        other.handle_ = nullptr;
    }
    share &operator=(share other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~share()
    {
        give_back(handle_);
    }
    // For functions of rapt.h; the share stays here.
    T *get() const noexcept
    {
        return handle_;
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

  private:
    T *handle_;
};
} // namespace inside

// What rapt_error said, the first error since the last rapt_clear_error; the library's error is cleared. Where it said
// nothing, a NULL came from the program, as get() gives it of a handle that is empty.
class error : public std::runtime_error
{
  public:
    explicit error(const char *what = "result (NULL or false)")
        : std::runtime_error(rapt_error() ? rapt_error() : inside::empty_message(what)),
          code_(rapt_error() ? rapt_error_get_code() : RAPT_ERROR_NULL)
    {
        rapt_clear_error();
    }
    rapt_error_code code() const noexcept
    {
        return code_;
    }

  private:
    rapt_error_code code_;
};

template <typename T> T check(T result, const char *what = "result (NULL or false)")
{
    if (!result) throw error(what);
    return result;
}

// Drops at its end what functions of rapt.h gave meanwhile.
class scope
{
  public:
    scope() : mark(rapt_scope_begin())
    {
    }
    ~scope()
    {
        rapt_scope_end(mark);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    rapt_scope mark;
};

// Nothing is recorded while it lives.
class no_gradient
{
  public:
    no_gradient() : before(rapt_set_recording(false))
    {
    }
    ~no_gradient()
    {
        rapt_set_recording(before);
    }
    no_gradient(const no_gradient &) = delete;
    no_gradient &operator=(const no_gradient &) = delete;

  private:
    bool before;
};

} // namespace rapt

#endif
