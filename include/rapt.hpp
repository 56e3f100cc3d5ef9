// rapt for C++11 and later, optional: a thin layer over rapt.h in which handles own shares, operators compute, and
// errors are exceptions. Everything of rapt.h works beside it: call(rapt_softmax, x, -1) runs any function that gives
// a tensor.
#ifndef RAPT_HPP
#define RAPT_HPP

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rapt.h>

namespace rapt
{

// What rapt_error said; the library's error is cleared.
class error : public std::runtime_error
{
  public:
    error() : error(rapt_error_get_code(), rapt_error() ? rapt_error() : "rapt: failed, and said nothing")
    {
        rapt_clear_error();
    }
    rapt_error_code code() const noexcept
    {
        return code_;
    }

  private:
    error(rapt_error_code code, const std::string &text) : std::runtime_error(text), code_(code)
    {
    }
    rapt_error_code code_;
};

template <typename T> T check(T result)
{
    if (!result) throw error();
    return result;
}

// Drops at its end what functions of rapt.h gave meanwhile.
class scope
{
  public:
    scope() : mark(rapt_scope_begin())
    {
        if (mark < 0) throw error();
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

namespace inside
{
// What a handle holds, which has to be something: it is empty at first, and when it was moved from.
template <typename T> T *held(const char *what, T *handle)
{
    if (!handle) throw std::invalid_argument(std::string("rapt: the ") + what + " holds nothing");
    return handle;
}
} // namespace inside

using shape = std::initializer_list<int64_t>;

// A share of a tensor, or none. Copies share the elements.
class tensor
{
  public:
    tensor() noexcept = default;
    // Takes a share in a tensor of rapt.h; NULL is an error.
    explicit tensor(rapt_tensor *handle) : handle_(rapt_retain(check(handle)))
    {
    }
    // A copy of numbers in row-major order, as many as the shape says; and a number.
    tensor(std::initializer_list<float> numbers, shape sizes);
    explicit tensor(double value, rapt_dtype dtype = RAPT_FLOAT32);
    tensor(const tensor &other) noexcept : handle_(rapt_retain(other.handle_))
    {
    }
    tensor(tensor &&other) noexcept : handle_(other.handle_)
    {
        other.handle_ = nullptr;
    }
    tensor &operator=(tensor other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~tensor()
    {
        rapt_release(handle_);
    }

    // For functions of rapt.h; the share stays here.
    rapt_tensor *get() const noexcept
    {
        return handle_;
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }
    rapt_dtype dtype() const
    {
        return rapt_get_dtype(inside::held("tensor", handle_));
    }
    std::vector<int64_t> sizes() const
    {
        const int64_t *first = rapt_shape(inside::held("tensor", handle_));
        return std::vector<int64_t>(first, first + rapt_rank(handle_));
    }
    double item() const
    {
        const double value = rapt_item(handle_);
        if (rapt_error_get_code() != RAPT_OK) throw error();
        return value;
    }
    double at(shape indices) const
    {
        if (static_cast<int>(indices.size()) != rapt_rank(inside::held("tensor", handle_)))
            throw std::invalid_argument("rapt::tensor: " + std::to_string(indices.size()) +
                                        " indices for a tensor of rank " + std::to_string(rapt_rank(handle_)));
        const double value = rapt_at(handle_, indices.begin());
        if (rapt_error_get_code() != RAPT_OK) throw error();
        return value;
    }
    tensor &require_gradient()
    {
        check(rapt_require_gradient(handle_));
        return *this;
    }
    // A leaf's; without a handle when there is none yet.
    tensor gradient() const
    {
        rapt_tensor *found = rapt_gradient(inside::held("tensor", handle_));
        return found ? tensor(found) : tensor();
    }
    void backward() const
    {
        check(rapt_backward(handle_));
    }

  private:
    rapt_tensor *handle_ = nullptr;
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

// The number as a tensor of the other's dtype.
inline tensor like(const tensor &other, double value)
{
    const tensor number(value, other.dtype());
    if (!rapt_dtype_is_floating(other.dtype()) && number.item() != value)
        throw std::invalid_argument("rapt: " + std::to_string(value) + " is not a number of type " +
                                    rapt_dtype_name(other.dtype()));
    return number;
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
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    if (count != static_cast<int64_t>(numbers.size()))
        throw std::invalid_argument("rapt::tensor: " + std::to_string(numbers.size()) + " numbers for a shape of " +
                                    std::to_string(count));
    *this = call(rapt_from, RAPT_FLOAT32, static_cast<int>(sizes.size()), sizes.begin(),
                 static_cast<const void *>(numbers.begin()));
}

inline tensor::tensor(double value, rapt_dtype dtype) : tensor(call(rapt_scalar, dtype, value))
{
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
    inline tensor operator sign(const tensor &a, double b)                                                             \
    {                                                                                                                  \
        return a sign inside::like(a, b);                                                                              \
    }                                                                                                                  \
    inline tensor operator sign(double a, const tensor &b)                                                             \
    {                                                                                                                  \
        return inside::like(b, a) sign b;                                                                              \
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
class layer
{
  public:
    // Takes over the share of a new module; NULL is an error.
    explicit layer(rapt_module *handle) : handle_(check(handle))
    {
    }
    template <typename Struct> explicit layer(Struct *layer_struct) : layer(&check(layer_struct)->module)
    {
    }
    layer(const layer &other) noexcept : handle_(other.handle_)
    {
        rapt_module_retain(handle_);
    }
    layer(layer &&other) noexcept : handle_(other.handle_)
    {
        other.handle_ = nullptr;
    }
    layer &operator=(layer other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~layer()
    {
        rapt_module_free(handle_);
    }
    rapt_module *get() const noexcept
    {
        return handle_;
    }
    tensor operator()(const tensor &x) const
    {
        return call(rapt_module_forward, handle_, x);
    }
    // The parameter of that full name; without a handle when there is none.
    tensor parameter(const char *name) const
    {
        rapt_tensor *found = rapt_module_find(inside::held("layer", handle_), name);
        return found ? tensor(found) : tensor();
    }

  private:
    rapt_module *handle_;
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
    for (const layer &one : layers) inside::held("layer", one.get());
    for (const layer &one : layers) {
        const bool is_new = std::find(handles.begin(), handles.end(), one.get()) == handles.end();
        if (is_new && !one.get()->adopted) rapt_module_retain(one.get());
        handles.push_back(one.get());
    }
    return layer(rapt_sequential_new(static_cast<int>(handles.size()), handles.data()));
}

// An optimizer of rapt.h, which it takes over: optimizer(rapt_adam_new(model.get(), &config)).
class optimizer
{
  public:
    explicit optimizer(rapt_optimizer *handle) : handle_(check(handle))
    {
    }
    optimizer(const optimizer &) = delete;
    optimizer &operator=(const optimizer &) = delete;
    ~optimizer()
    {
        rapt_optimizer_free(handle_);
    }
    rapt_optimizer *get() const noexcept
    {
        return handle_;
    }
    void step()
    {
        check(rapt_optimizer_step(handle_));
    }

  private:
    rapt_optimizer *handle_;
};

} // namespace rapt

#endif
