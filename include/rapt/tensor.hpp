// Tensors in C++: elements in and out, operators, and functions under their names. Part of rapt.hpp.
#ifndef RAPT_TENSOR_HPP
#define RAPT_TENSOR_HPP

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rapt/handles.hpp>

namespace rapt
{
using shape = std::vector<int64_t>; // {2, 3}, or made at run time

namespace inside
{
// The dtype whose elements these are; bool is uint8_t to vectors.
template <typename T> constexpr rapt_dtype dtype_of()
{
    static_assert(std::is_same<T, float>::value || std::is_same<T, double>::value || std::is_same<T, int64_t>::value ||
                      std::is_same<T, int32_t>::value || std::is_same<T, uint8_t>::value,
                  "a tensor's elements are float, double, int64_t, int32_t or uint8_t");
    return std::is_same<T, float>::value     ? RAPT_FLOAT32
           : std::is_same<T, double>::value  ? RAPT_FLOAT64
           : std::is_same<T, int64_t>::value ? RAPT_INT64
           : std::is_same<T, int32_t>::value ? RAPT_INT32
                                             : RAPT_UINT8;
}
} // namespace inside

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
    tensor(std::initializer_list<float> numbers, const shape &sizes) : tensor(numbers.begin(), numbers.size(), sizes)
    {
    }
    tensor(std::initializer_list<float> numbers, std::initializer_list<int64_t> sizes) // {} is no dtype
        : tensor(numbers, shape(sizes))
    {
    }
    template <typename T>
    tensor(const std::vector<T> &numbers, const shape &sizes) : tensor(numbers.data(), numbers.size(), sizes)
    {
    }
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
    shape sizes() const
    {
        const int64_t *first = rapt_shape(alive());
        return shape(first, first + rapt_rank(get()));
    }
    // A copy of all elements in row-major order, of the dtype's own type; uint8_t reads bool, too.
    template <typename T> std::vector<T> values() const;
    // Neither NaN nor rapt_error tell whether reading failed: the one may be the element, the other older.
    double item() const
    {
        const double value = rapt_item(inside::held("tensor", get()));
        if (rapt_count(get()) != 1) throw error();
        return value;
    }
    double at(const shape &indices) const
    {
        const int64_t *size = rapt_shape(alive());
        if (static_cast<int>(indices.size()) != rapt_rank(get()))
            throw std::invalid_argument("rapt::tensor: " + std::to_string(indices.size()) +
                                        " indices for a tensor of rank " + std::to_string(rapt_rank(get())));
        const double value = rapt_at(get(), indices.data());
        for (int64_t index : indices) {
            if (index < -*size || index >= *size) throw error();
            size++;
        }
        return value;
    }
    // A view of what has that index in the first axis, which goes; a negative index counts from the end.
    tensor operator[](int64_t index) const;
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
    template <typename T> tensor(const T *numbers, std::size_t count, const shape &sizes);
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

template <typename T> tensor::tensor(const T *numbers, std::size_t count, const shape &sizes)
{
    double expected = 1; // which does not overflow
    for (int64_t size : sizes) expected *= static_cast<double>(size);
    if (expected != static_cast<double>(count))
        throw std::invalid_argument("rapt::tensor: " + std::to_string(count) + " numbers for a shape of " +
                                    inside::digits_of(expected));
    *this = call(rapt_from, inside::dtype_of<T>(), static_cast<int>(sizes.size()), sizes.data(),
                 static_cast<const void *>(numbers));
}

template <typename T> std::vector<T> tensor::values() const
{
    const rapt_dtype wanted = inside::dtype_of<T>();
    if (dtype() != wanted && !(wanted == RAPT_UINT8 && dtype() == RAPT_BOOL))
        throw std::invalid_argument(std::string("rapt::tensor: values() of type ") + rapt_dtype_name(wanted) +
                                    " of a tensor of type " + rapt_dtype_name(dtype()));
    const no_gradient guard;
    const tensor dense = call(rapt_contiguous, *this);
    const T *first = static_cast<const T *>(rapt_data(dense.get()));
    return std::vector<T>(first, first + rapt_count(dense.get()));
}

inline tensor tensor::operator[](int64_t index) const
{
    return call(rapt_select, *this, 0, index);
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
    inline tensor name(const shape &sizes, rapt_dtype dtype = RAPT_FLOAT32)                                            \
    {                                                                                                                  \
        return call(rapt_##name, dtype, static_cast<int>(sizes.size()), sizes.data());                                 \
    }
RAPT_OF_SHAPE_(zeros)
RAPT_OF_SHAPE_(ones)
RAPT_OF_SHAPE_(randn)
#undef RAPT_OF_SHAPE_

inline tensor reshape(const tensor &x, const shape &sizes)
{
    return call(rapt_reshape, x, static_cast<int>(sizes.size()), sizes.data());
}
inline tensor sum(const tensor &x, const std::vector<int> &axes = {}, bool keep = false)
{
    return call(rapt_sum, x, static_cast<int>(axes.size()), axes.data(), keep);
}
inline tensor mean(const tensor &x, const std::vector<int> &axes = {}, bool keep = false)
{
    return call(rapt_mean, x, static_cast<int>(axes.size()), axes.data(), keep);
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

} // namespace rapt

#endif
