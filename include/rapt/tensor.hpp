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
template <typename Element> constexpr rapt_dtype dtype_of()
{
    static_assert(std::is_same<Element, float>::value || std::is_same<Element, double>::value ||
                      std::is_same<Element, int64_t>::value || std::is_same<Element, int32_t>::value ||
                      std::is_same<Element, uint8_t>::value,
                  "a tensor's elements are float, double, int64_t, int32_t or uint8_t");
    return std::is_same<Element, float>::value     ? RAPT_FLOAT32
           : std::is_same<Element, double>::value  ? RAPT_FLOAT64
           : std::is_same<Element, int64_t>::value ? RAPT_INT64
           : std::is_same<Element, int32_t>::value ? RAPT_INT32
                                                   : RAPT_UINT8;
}

// The number that an enumerator is, or an object: a std::atomic, an element of std::vector<bool>.
template <typename Other>
auto number_of(const Other &value, int) ->
    typename std::enable_if<std::is_arithmetic<decltype(+value)>::value, decltype(+value)>::type
{
    return +value;
}
template <typename Other> double number_of(const Other &value, long) // which has another +, or becomes several types
{
    return value;
}

template <typename Whole> bool is_int64(Whole value)
{
    return std::is_signed<Whole>::value || static_cast<uint64_t>(value) <= static_cast<uint64_t>(INT64_MAX);
}
} // namespace inside

// A share of a tensor, or none. Copies share the elements.
class tensor : public inside::share<rapt_tensor, rapt_tensor, rapt_retain, rapt_release>
{
  public:
    tensor() noexcept = default;
    tensor(const tensor &) = default;
    tensor(tensor &&) noexcept = default;
    // Handles are assigned, not elements: a[0] = b would be lost, and does not compile.
    tensor &operator=(const tensor &) & = default;
    tensor &operator=(tensor &&) &noexcept = default;
    // Takes a share in a tensor of rapt.h; nullptr, or a pointer that is NULL, is an error. A template, since 0 is a
    // number and no handle.
    template <typename Handle,
              typename = typename std::enable_if<std::is_convertible<Handle, rapt_tensor *>::value>::type>
    explicit tensor(Handle handle) : share(rapt_retain(inside::checked<rapt_tensor *>(handle, "tensor")))
    {
    }
    // A copy of numbers in row-major order, as many as the shape says; and a number, which the dtype has.
    explicit tensor(std::initializer_list<float> numbers, const shape &sizes)
        : tensor(numbers.begin(), numbers.size(), sizes)
    {
    }
    explicit tensor(std::initializer_list<float> numbers, std::initializer_list<int64_t> sizes) // {} is no dtype
        : tensor(numbers, shape(sizes))
    {
    }
    template <typename Element>
    tensor(const std::vector<Element> &numbers, const shape &sizes) : tensor(numbers.data(), numbers.size(), sizes)
    {
    }
    explicit tensor(double value, rapt_dtype dtype = RAPT_FLOAT32);
    explicit tensor(long double value, rapt_dtype dtype = RAPT_FLOAT32) = delete; // a double is meant
    template <typename Whole, typename std::enable_if<std::is_integral<Whole>::value, int>::type = 0>
    explicit tensor(Whole value, rapt_dtype dtype = RAPT_FLOAT32) // int64 gets what a double has not, too
        : tensor(dtype == RAPT_INT64 && inside::is_int64(value) ? 0.0 : static_cast<double>(value), dtype)
    {
        static_assert(sizeof(Whole) <= 8, "a number of at most 64 bits");
        if (dtype == RAPT_INT64) *static_cast<int64_t *>(rapt_data_for_writing(get())) = static_cast<int64_t>(value);
    }
    template <typename Other, typename = typename std::enable_if<std::is_convertible<Other, double>::value>::type,
              typename std::enable_if<!std::is_arithmetic<Other>::value, int>::type = 0>
    explicit tensor(const Other &value, rapt_dtype dtype = RAPT_FLOAT32) : tensor(inside::number_of(value, 0), dtype)
    {
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
    template <typename Element> std::vector<Element> values() const;
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
        inside::checked(rapt_require_gradient(inside::held("tensor", get())));
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
        inside::checked(rapt_backward(inside::held("tensor", get())));
    }
    // For what rapt.h calls and takes a tensor from, such as an op's forward or a layer's: the innermost scope gets a
    // share, so that the tensor is there when this handle has gone.
    rapt_tensor *hand_out() const
    {
        rapt_tensor *handle = inside::held("tensor", get());
        return inside::checked(rapt_field_get(&handle));
    }

  private:
    template <typename Element> tensor(const Element *numbers, std::size_t count, const shape &sizes);
    // For functions whose result is not NULL, or may be, when the tensor is gone.
    rapt_tensor *alive() const
    {
        inside::checked(rapt_shape(inside::held("tensor", get())));
        return get();
    }
};

namespace inside
{
inline rapt_tensor *plain(const tensor &value)
{
    return held("tensor", value.get());
}
template <typename Other> Other plain(Other value)
{
    return value;
}
} // namespace inside

// A function of rapt.h that gives a tensor, with tensors for its rapt_tensor pointers; nullptr for an absent one.
template <typename... Parameters, typename... Arguments>
tensor call(rapt_tensor *(*function)(Parameters...), const Arguments &...arguments)
{
    scope inner;
    return tensor(function(inside::plain(arguments)...));
}

template <typename Element> tensor::tensor(const Element *numbers, std::size_t count, const shape &sizes)
{
    double expected = 1; // which does not overflow
    for (int64_t size : sizes) expected *= static_cast<double>(size);
    if (expected != static_cast<double>(count))
        throw std::invalid_argument("rapt::tensor: " + std::to_string(count) + " numbers for a shape of " +
                                    inside::digits_of(expected));
    *this = call(rapt_from, inside::dtype_of<Element>(), static_cast<int>(sizes.size()), sizes.data(),
                 static_cast<const void *>(numbers));
}

template <typename Element> std::vector<Element> tensor::values() const
{
    const rapt_dtype wanted = inside::dtype_of<Element>();
    if (dtype() != wanted && !(wanted == RAPT_UINT8 && dtype() == RAPT_BOOL))
        throw std::invalid_argument(std::string("rapt::tensor: values() of type ") + rapt_dtype_name(wanted) +
                                    " of a tensor of type " + rapt_dtype_name(dtype()));
    const no_gradient guard;
    const tensor dense = call(rapt_contiguous, *this);
    const Element *first = static_cast<const Element *>(rapt_data(dense.get()));
    return std::vector<Element>(first, first + rapt_count(dense.get()));
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
    RAPT_BESIDE_NUMBER_(sign, !std::is_class<Number>::value, Number)                                                   \
    RAPT_BESIDE_NUMBER_(sign, std::is_class<Number>::value, const Number &)
// A member that is a constant has perhaps no place for a reference; an object may have no copies.
#define RAPT_BESIDE_NUMBER_(sign, condition, argument)                                                                 \
    template <typename Number, typename = typename std::enable_if<std::is_convertible<Number, double>::value>::type,   \
              typename std::enable_if<condition, int>::type = 0>                                                       \
    inline tensor operator sign(const tensor &a, argument b)                                                           \
    {                                                                                                                  \
        return a sign tensor(b, a.dtype());                                                                            \
    }                                                                                                                  \
    template <typename Number, typename = typename std::enable_if<std::is_convertible<Number, double>::value>::type,   \
              typename std::enable_if<condition, int>::type = 0>                                                       \
    inline tensor operator sign(argument a, const tensor &b)                                                           \
    {                                                                                                                  \
        return tensor(a, b.dtype()) sign b;                                                                            \
    }
RAPT_OPERATOR_(+, add)
RAPT_OPERATOR_(-, sub)
RAPT_OPERATOR_(*, mul)
RAPT_OPERATOR_(/, div)
#undef RAPT_OPERATOR_
#undef RAPT_BESIDE_NUMBER_

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
