// rapt for C++11 and later, optional: handles own shares, operators compute, and errors are exceptions. All of rapt.h
// works beside it: call(rapt_softmax, x, -1) runs any function that gives a tensor.
#ifndef RAPT_HPP
#define RAPT_HPP

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

using shape = std::initializer_list<int64_t>;

// A share of a tensor, or none. Copies share the elements.
class tensor : public inside::share<rapt_tensor, rapt_tensor, rapt_retain, rapt_release>
{
  public:
    tensor() noexcept = default;
    // Takes a share in a tensor of rapt.h; NULL is an error. A template, since 0 is a number and no handle.
    template <typename T, typename = typename std::enable_if<std::is_convertible<T, rapt_tensor *>::value>::type>
    explicit tensor(T handle) : share(rapt_retain(check<rapt_tensor *>(handle, "tensor")))
    {
    }
    // A copy of numbers in row-major order, as many as the shape says; and a number, which the dtype has.
    tensor(std::initializer_list<float> numbers, shape sizes);
    explicit tensor(double value, rapt_dtype dtype = RAPT_FLOAT32);
    template <typename T, typename std::enable_if<std::is_integral<T>::value && sizeof(T) <= 8, int>::type = 0>
    explicit tensor(T value, rapt_dtype dtype = RAPT_FLOAT32) // int64 gets what a double has not, too
        : tensor(dtype == RAPT_INT64 && std::is_signed<T>::value ? 0.0 : static_cast<double>(value), dtype)
    {
        if (dtype == RAPT_INT64) *static_cast<int64_t *>(rapt_data_for_writing(get())) = static_cast<int64_t>(value);
    }

    rapt_dtype dtype() const
    {
        return rapt_get_dtype(alive());
    }
    std::vector<int64_t> sizes() const
    {
        const int64_t *first = rapt_shape(alive());
        return std::vector<int64_t>(first, first + rapt_rank(get()));
    }
    // Neither NaN nor rapt_error tell whether reading failed: the one may be the element, the other older.
    double item() const
    {
        const double value = rapt_item(inside::held("tensor", get()));
        if (rapt_count(get()) != 1) throw error();
        return value;
    }
    double at(shape indices) const
    {
        const int64_t *size = rapt_shape(alive());
        if (static_cast<int>(indices.size()) != rapt_rank(get()))
            throw std::invalid_argument("rapt::tensor: " + std::to_string(indices.size()) +
                                        " indices for a tensor of rank " + std::to_string(rapt_rank(get())));
        const double value = rapt_at(get(), indices.begin());
        for (const int64_t *index = indices.begin(); index != indices.end(); index++, size++)
            if (*index < -*size || *index >= *size) throw error();
        return value;
    }
    tensor &require_gradient() &
    {
        check(rapt_require_gradient(inside::held("tensor", get())));
        return *this;
    }
    tensor require_gradient() &&
    {
        return std::move(require_gradient());
    }
    // A leaf's; without a handle when there is none yet.
    tensor gradient() const
    {
        rapt_tensor *found = rapt_gradient(alive());
        return found ? tensor(found) : tensor();
    }
    void backward() const
    {
        check(rapt_backward(inside::held("tensor", get())));
    }

  private:
    // For functions whose result is not NULL, or may be, when the tensor is gone.
    rapt_tensor *alive() const
    {
        check(rapt_shape(inside::held("tensor", get())));
        return get();
    }
};

namespace inside
{
inline rapt_tensor *plain(const tensor &value)
{
    return value.get();
}
template <typename T> T plain(T value)
{
    return value;
}
} // namespace inside

// A function of rapt.h that gives a tensor, with tensors for its rapt_tensor pointers.
template <typename... P, typename... A> tensor call(rapt_tensor *(*function)(P...), const A &...arguments)
{
    scope inner;
    return tensor(function(inside::plain(arguments)...));
}

inline tensor::tensor(std::initializer_list<float> numbers, shape sizes)
{
    double count = 1; // which does not overflow
    for (int64_t size : sizes) count *= static_cast<double>(size);
    if (count != static_cast<double>(numbers.size()))
        throw std::invalid_argument("rapt::tensor: " + std::to_string(numbers.size()) + " numbers for a shape of " +
                                    inside::digits_of(count));
    *this = call(rapt_from, RAPT_FLOAT32, static_cast<int>(sizes.size()), sizes.begin(),
                 static_cast<const void *>(numbers.begin()));
}

inline tensor::tensor(double value, rapt_dtype dtype) : tensor(call(rapt_scalar, dtype, value))
{
    if (rapt_dtype_is_floating(dtype)) return;
    // 2⁶³ becomes int64's largest number, whose double it is. Bits are compared: -ffast-math would not see a NaN.
    const double numbers[] = {item(), value};
    uint64_t bits[2];
    std::memcpy(bits, numbers, sizeof bits);
    if ((bits[0] != bits[1] && (bits[0] | bits[1]) << 1 != 0) || value >= 9223372036854775808.0)
        throw std::invalid_argument("rapt: " + inside::digits_of(value) + " is not a number of type " +
                                    rapt_dtype_name(dtype));
}

#define RAPT_OF_SHAPE_(name)                                                                                           \
    inline tensor name(shape sizes, rapt_dtype dtype = RAPT_FLOAT32)                                                   \
    {                                                                                                                  \
        return call(rapt_##name, dtype, static_cast<int>(sizes.size()), sizes.begin());                                \
    }
RAPT_OF_SHAPE_(zeros)
RAPT_OF_SHAPE_(ones)
RAPT_OF_SHAPE_(randn)
#undef RAPT_OF_SHAPE_

inline tensor reshape(const tensor &x, shape sizes)
{
    return call(rapt_reshape, x, static_cast<int>(sizes.size()), sizes.begin());
}
inline tensor sum(const tensor &x, std::initializer_list<int> axes = {}, bool keep = false)
{
    return call(rapt_sum, x, static_cast<int>(axes.size()), axes.begin(), keep);
}
inline tensor mean(const tensor &x, std::initializer_list<int> axes = {}, bool keep = false)
{
    return call(rapt_mean, x, static_cast<int>(axes.size()), axes.begin(), keep);
}

#define RAPT_OF_ONE_(name)                                                                                             \
    inline tensor name(const tensor &x)                                                                                \
    {                                                                                                                  \
        return call(rapt_##name, x);                                                                                   \
    }
#define RAPT_OF_TWO_(name)                                                                                             \
    inline tensor name(const tensor &a, const tensor &b)                                                               \
    {                                                                                                                  \
        return call(rapt_##name, a, b);                                                                                \
    }
RAPT_OF_ONE_(neg)
RAPT_OF_ONE_(abs)
RAPT_OF_ONE_(exp)
RAPT_OF_ONE_(log)
RAPT_OF_ONE_(sqrt)
RAPT_OF_ONE_(sin)
RAPT_OF_ONE_(cos)
RAPT_OF_ONE_(tanh)
RAPT_OF_ONE_(sigmoid)
RAPT_OF_ONE_(relu)
RAPT_OF_ONE_(gelu)
RAPT_OF_ONE_(detach)
RAPT_OF_TWO_(pow)
RAPT_OF_TWO_(maximum)
RAPT_OF_TWO_(minimum)
RAPT_OF_TWO_(matmul)
#undef RAPT_OF_ONE_
#undef RAPT_OF_TWO_

// a OP b, where one of them may be a number.
#define RAPT_OPERATOR_(sign, name)                                                                                     \
    inline tensor operator sign(const tensor &a, const tensor &b)                                                      \
    {                                                                                                                  \
        return call(rapt_##name, a, b);                                                                                \
    }                                                                                                                  \
    template <typename N, typename = typename std::enable_if<std::is_convertible<N, double>::value>::type>             \
    inline tensor operator sign(const tensor &a, N b)                                                                  \
    {                                                                                                                  \
        return a sign tensor(b, a.dtype());                                                                            \
    }                                                                                                                  \
    template <typename N, typename = typename std::enable_if<std::is_convertible<N, double>::value>::type>             \
    inline tensor operator sign(N a, const tensor &b)                                                                  \
    {                                                                                                                  \
        return tensor(a, b.dtype()) sign b;                                                                            \
    }
RAPT_OPERATOR_(+, add)
RAPT_OPERATOR_(-, sub)
RAPT_OPERATOR_(*, mul)
RAPT_OPERATOR_(/, div)
#undef RAPT_OPERATOR_

inline tensor operator-(const tensor &x)
{
    return neg(x);
}

inline tensor mse_loss(const tensor &input, const tensor &target, rapt_reduction reduction = RAPT_REDUCE_MEAN)
{
    return call(rapt_mse_loss, input, target, reduction);
}

// A share of a module. Copies share the parameters.
class layer : public inside::share<rapt_module, void, rapt_module_retain, rapt_module_free>
{
  public:
    // Takes over the share of a new module; NULL is an error.
    explicit layer(rapt_module *handle) : share(check(handle, "layer"))
    {
    }
    template <typename Struct> explicit layer(Struct *layer_struct) : layer(&check(layer_struct, "layer")->module)
    {
    }
    tensor operator()(const tensor &x) const
    {
        return call(rapt_module_forward, inside::held("layer", get()), x);
    }
    // The parameter of that full name; without a handle when there is none.
    tensor parameter(const char *name) const
    {
        if (!name) throw std::invalid_argument("rapt: the name of a parameter is NULL; its full name expected");
        rapt_tensor *found = rapt_module_find(inside::held("layer", get()), name);
        return found ? tensor(found) : tensor();
    }
};

inline layer linear(int64_t in, int64_t out, int flags = RAPT_BIAS)
{
    return layer(rapt_linear_new(in, out, flags));
}
inline layer activation(const char *name, rapt_activation_function *function)
{
    return layer(rapt_activation_new(name, function));
}

// A parent takes the share of a new module, so that each handle needs one beside it.
inline layer sequential(std::initializer_list<layer> layers)
{
    std::vector<rapt_module *> handles;
    for (const layer &one : layers) handles.push_back(inside::held("layer", one.get()));
    for (auto one = handles.begin(); one != handles.end(); ++one)
        if (!(*one)->adopted && std::find(handles.begin(), one, *one) == one) rapt_module_retain(*one);
    return layer(rapt_sequential_new(static_cast<int>(handles.size()), handles.data()));
}

// An optimizer of rapt.h, which it takes over: optimizer(rapt_adam_new(model.get(), &config)).
class optimizer : public inside::share<rapt_optimizer, void, nullptr, rapt_optimizer_free>
{
  public:
    explicit optimizer(rapt_optimizer *handle) : share(check(handle, "optimizer"))
    {
    }
    optimizer(optimizer &&) noexcept = default; // and no copies: there is one share
    optimizer &operator=(optimizer &&) noexcept = default;
    void step()
    {
        check(rapt_optimizer_step(inside::held("optimizer", get())));
    }
};

} // namespace rapt

#endif
