// Handles that own shares of what rapt.h makes, errors as exceptions, and guards for scopes and recording. Part of rapt.hpp.
#ifndef RAPT_HANDLES_HPP
#define RAPT_HANDLES_HPP

#include <cstdio>
#include <cstdlib>
#include <new>
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
template <typename Handle> Handle *held(const char *what, Handle *handle)
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
template <typename Handle, typename Kept, Kept *keep(Handle *), void give_back(Handle *)> class share
{
  public:
    explicit share(Handle *handle = nullptr) noexcept : handle_(handle)
    {
    }
    share(const share &other) noexcept : handle_(static_cast<Handle *>(keep(other.handle_)))
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
    // For functions of rapt.h; the share stays here, and goes with this handle.
    Handle *get() const noexcept
    {
        return handle_;
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

  private:
    Handle *handle_;
};
} // namespace inside

// What rapt_error said, the first error since the last rapt_clear_error; the library's error is cleared. Where it said
// nothing, the NULL or false was no error, or came from the program, as get() gives it of a handle that is empty.
class error : public std::runtime_error
{
  public:
    explicit error(const char *what = nullptr)
        : std::runtime_error(rapt_error() ? rapt_error()
                             : what       ? inside::empty_message(what)
                                          : "rapt: NULL or false, which no error of the library explains"),
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

namespace inside
{
template <typename Result> Result checked(Result result, const char *what = nullptr)
{
    if (!result) throw error(what);
    return result;
}
} // namespace inside

// In parentheses, since some have a macro of that name.
template <typename Result> Result(check)(Result result, const char *what = nullptr)
{
    return inside::checked(result, what);
}

// For the catch of a function that rapt.h calls: rapt_fail with what was thrown, and false. An op's forward is
// try { … } catch (...) { rapt::tell("op"); } return nullptr;
inline bool tell(const char *op) noexcept
{
    try {
        throw;
    } catch (const error &caught) {
        return rapt_fail(caught.code(), op, "%s", caught.what());
    } catch (const std::bad_alloc &caught) {
        return rapt_fail(RAPT_ERROR_MEMORY, op, "%s", caught.what());
    } catch (const std::exception &caught) {
        return rapt_fail(RAPT_ERROR_VALUE, op, "%s", caught.what());
    } catch (...) {
        return rapt_fail(RAPT_ERROR_VALUE, op, "an exception that is no std::exception");
    }
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
