// Exclusive or in C++, with rapt.hpp: the program of xor.c, and what handles and exceptions promise.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include <unistd.h>

#include <rapt.hpp>

static void print_bits(double number)
{
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    std::printf("%016" PRIX64 "\n", bits);
}

static void train()
{
    rapt_seed(1);
    const rapt::tensor x({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2}), target({0, 1, 1, 0}, {4, 1});
    const rapt::layer model =
        rapt::sequential({rapt::linear(2, 16), rapt::activation("Tanh", rapt_tanh), rapt::linear(16, 1)});
    rapt_adam_config config = rapt_adam_config();
    config.learning_rate = 1e-2;
    rapt::optimizer adam(rapt_adam_new(model.get(), &config));
    for (int step = 0; step < 300; step++) {
        const rapt::tensor loss = rapt::mse_loss(model(x), target);
        loss.backward();
        adam.step();
        print_bits(loss.item());
    }
    const rapt::tensor y = model(x);
    for (int64_t i = 0; i < 4; i++) print_bits(y.at({i, 0}));
}

static int failures;

static void expect(bool good, const char *what)
{
    if (good) return;
    std::fprintf(stderr, "xor.cpp: %s\n", what);
    failures++;
}

template <typename F> static bool refuses(F function)
{
    try {
        function();
    } catch (const std::invalid_argument &) {
        return true;
    }
    return false;
}

// What the function throws says each of these.
template <typename F> static bool complains(F function, std::initializer_list<const char *> parts)
{
    try {
        function();
    } catch (const std::exception &caught) {
        for (const char *part : parts)
            if (!std::strstr(caught.what(), part)) return false;
        return true;
    }
    return false;
}

static void check_refusals()
{
    expect(refuses([] { rapt::tensor({1, 2}, {3}); }), "too few numbers");
    const rapt::tensor matrix({1, 2, 3, 4}, {2, 2}), count = rapt::ones({2}, RAPT_INT64);
    expect(refuses([&] { matrix.at({1}); }) && refuses([&] { matrix.at({1, 1, 0}); }), "as many indices as axes");
    expect(refuses([&] { count + 1.5; }) && refuses([&] { 1e30 * count; }), "a number that is none of the dtype");
    const rapt::tensor empty;
    expect(refuses([&] { empty.sizes(); }) && refuses([&] { empty.at({}); }) && refuses([&] { empty.gradient(); }) &&
               refuses([&] { empty + 1; }),
           "what holds nothing has no sizes, elements, gradient or dtype");
    rapt::layer first = rapt::linear(1, 1), moved = std::move(first);
    expect(refuses([&] {
               rapt::sequential({moved, first});
           }) &&
               refuses([&] { first.parameter("weight"); }),
           "nor does it stand in a list, or have parameters");
    expect((2 * count - 1).at({0}) == 1 && (0.1 * matrix).at({0, 1}) == 0.2f, "and one that is");
    expect(!rapt_error(), "without an error of the library's");
}

static void check_numbers()
{
    const rapt::tensor two(2, RAPT_INT64);
    expect(rapt::tensor(0).item() == 0 && rapt::tensor(0L, RAPT_UINT8).item() == 0 && rapt::tensor(1.5f).item() == 1.5,
           "a number of any type, and 0, is a number");
    const int64_t beyond_doubles = ((int64_t)1 << 53) + 1, largest = std::numeric_limits<int64_t>::max();
    const rapt::scope here;
    const rapt::tensor none(0, RAPT_INT64);
    expect(rapt_item_int64((none + beyond_doubles).get()) == beyond_doubles &&
               rapt_item_int64((beyond_doubles - none).get()) == beyond_doubles &&
               rapt_item_int64((none + static_cast<uint64_t>(beyond_doubles)).get()) == beyond_doubles &&
               rapt_item_int64((none + static_cast<uint64_t>(largest)).get()) == largest &&
               rapt_item_int64(rapt::tensor(largest, RAPT_INT64).get()) == largest &&
               rapt_item_int64(rapt::tensor(-largest - 1, RAPT_INT64).get()) == -largest - 1,
           "a whole number reaches int64 as it is");
    expect(refuses([&] { none + (static_cast<uint64_t>(largest) + 1); }) &&
               refuses([&] { rapt::tensor(beyond_doubles, RAPT_INT32); }) && rapt::tensor(true, RAPT_BOOL).item() == 1,
           "or is refused");
    expect(complains([&] { two * 1e-7; }, {"1e-07 is not", "int64"}) &&
               complains([&] { 2.000000000000001 - two; }, {"2.000000000000001 is not"}) &&
               complains([&] { two / 0.3; }, {"rapt: 0.3 is not"}),
           "a number that is refused is recognised");
    expect(refuses([] { rapt::tensor(2.5, RAPT_INT64); }) && refuses([] { rapt::tensor(NAN, RAPT_INT64); }) &&
               refuses([] { rapt::tensor(300, RAPT_UINT8); }) && refuses([] { rapt::tensor(2, RAPT_BOOL); }) &&
               refuses([] { rapt::tensor(std::ldexp(1, 63), RAPT_INT64); }) &&
               refuses([] { rapt::tensor(-std::ldexp(1, 64), RAPT_INT64); }),
           "a tensor refuses what its dtype has not");
    expect(rapt::tensor(-std::ldexp(1, 63), RAPT_INT64).item() == -std::ldexp(1, 63) &&
               std::isnan(rapt::tensor(NAN).item()),
           "and takes what it has");
    static_assert(!std::is_constructible<rapt::tensor, long double>::value, "which a double would round");
    const int64_t large = std::numeric_limits<int64_t>::max();
    expect(complains([=] { rapt::tensor({1, 2}, {large, large, 4}); }, {"2 numbers"}), "a shape of very many");
    expect(!rapt_error(), "without an error of the library's");
}

// Vectors go in and come out, of each type that an element can have, by shapes that are made at run time.
static void check_values()
{
    rapt::shape sizes;
    for (int64_t axis = 0; axis < 3; axis++) sizes.push_back(axis + 1);
    const std::vector<double> numbers = {1, 2, 3, 4, 5, 6};
    const rapt::tensor x(numbers, sizes);
    expect(x.dtype() == RAPT_FLOAT64 && x.sizes() == sizes && x.values<double>() == numbers, "a vector and back");
    expect(rapt::tensor(std::vector<int32_t>{7}, {}).at({}) == 7 && rapt::tensor({5}, {}).item() == 5 &&
               rapt::tensor({}, {0, 2}).values<float>().empty(),
           "of one number, and of none");
    const std::vector<uint8_t> seen = rapt::call(rapt_greater_scalar, x, 3.0).values<uint8_t>();
    expect(seen == (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}), "truth values");
    rapt::tensor leaf = rapt::tensor(numbers, {2, 3}).require_gradient();
    const rapt::tensor turned = rapt::call(rapt_transpose, leaf, 0, 1);
    expect(turned.values<double>() == (std::vector<double>{1, 4, 2, 5, 3, 6}), "in the order of the axes");
    expect(leaf[1].values<double>() == (std::vector<double>{4, 5, 6}) && leaf[-1][0].item() == 4, "a row, an element");
    rapt::sum(leaf[1]).backward();
    expect(leaf.gradient().values<double>() == (std::vector<double>{0, 0, 0, 1, 1, 1}), "and its gradient");
    expect(rapt::sum(turned, std::vector<int>(1, 0)).values<double>() == (std::vector<double>{6, 15}), "axes");
    expect(complains([&] { rapt::tensor(numbers, {4}); }, {"6 numbers", "shape of 4"}) &&
               complains([&] { x.values<float>(); }, {"float32", "float64"}) &&
               complains([&] { leaf[2]; }, {"select", "index 2"}) && refuses([] { rapt::tensor()[0]; }) &&
               complains([&] { rapt::tensor().values<float>(); }, {"the tensor is empty"}),
           "what does not fit is refused");
    expect(!rapt_error(), "without an error of the library's");
}

static void check_files()
{
    rapt::layer model = rapt::sequential({rapt::linear(2, 2), rapt::layer(rapt_dropout_new(0.5))});
    model.train(false);
    const rapt::tensor x = rapt::ones({1, 2}), y = model(x);
    expect(model(x).values<float>() == y.values<float>(), "evaluation drops nothing");
    const std::string name = "handles." + std::to_string(getpid()) + ".safetensors"; // others run beside it
    const char *path = name.c_str();
    model.save(path);
    rapt::layer other = rapt::sequential({rapt::linear(2, 2), rapt::layer(rapt_dropout_new(0.5))});
    other.train(false);
    expect(other(x).values<float>() != y.values<float>(), "another start");
    other.load(path);
    std::remove(path);
    expect(other(x).values<float>() == y.values<float>(), "weights from a file");
    const std::string cut = name + std::string(1, '\0') + "tail";
    expect(refuses([&] { other.save(cut); }) && refuses([&] { other.load(cut); }), "a path with a NUL in it");
    expect(complains([&] { other.load(path); }, {path}) && complains([&] { other.save("/no/such/x"); }, {"/no/such"}),
           "which is not there");
    expect(!rapt_error(), "without an error left");
}

// An error that the program has dealt with, and that stands because nobody cleared it.
static void leave_an_error()
{
    expect(!rapt_load_npy("/no/such.npy") && rapt_error_get_code() == RAPT_ERROR_FILE, "a file that is not there");
}

static void check_standing_error()
{
    const rapt::tensor matrix({1, NAN, 3, 4}, {2, 2});
    const auto at = [&](int64_t row, int64_t column) { return matrix.at({row, column}); };
    leave_an_error();
    expect(rapt::sum(rapt::ones({2, 2}) * 2).item() == 8 && std::isnan(rapt::tensor(NAN).item()), "item() beside it");
    expect(at(-1, -2) == 3 && std::isnan(at(0, 1)) && rapt::tensor(5).at({}) == 5, "at() beside it");
    expect(rapt_error_get_code() == RAPT_ERROR_FILE, "which stands");
    const auto throws = [](const std::function<void()> &function) {
        leave_an_error();
        try {
            function();
        } catch (const rapt::error &) {
            return !rapt_error();
        }
        return false;
    };
    rapt_clear_error();
    expect(throws([&] { matrix.item(); }) && throws([&] { at(0, 2); }) && throws([&] { at(-3, 0); }),
           "what fails beside it throws");
    expect(complains([&] { matrix.item(); }, {"item: ", "[2, 2]"}) &&
               complains([&] { at(0, -3); }, {"at: ", "index -3 of axis 1", "size 2"}),
           "without one, each says what was wrong");
    expect(complains([&] { rapt::exp(matrix) * 2 + rapt::ones({3}); }, {"add: ", "[2, 2]", "[3]"}),
           "in the middle of an expression, too");
    expect(!rapt_error(), "and leaves none behind");
}

static rapt::optimizer new_adam(const rapt::layer &model)
{
    return rapt::optimizer(rapt_adam_new(model.get(), nullptr));
}

static void check_moves()
{
    const rapt::layer model = rapt::linear(2, 1);
    rapt::optimizer adam = new_adam(model), other = std::move(adam);
    expect(!adam.get() && other.get(), "an optimizer is moved");
    rapt::optimizer *same = &other;
    other = std::move(*same);
    expect(other.get() != nullptr, "to itself, too");
    other = new_adam(model);
    std::vector<rapt::optimizer> list;
    for (int i = 0; i < 3; i++) list.push_back(new_adam(model));
    expect(list[0].get() && list[2].get(), "into lists");
    static_assert(!std::is_copy_constructible<rapt::optimizer>::value &&
                      !std::is_copy_assignable<rapt::optimizer>::value,
                  "nobody shares an optimizer");
    static_assert(std::is_nothrow_move_constructible<rapt::tensor>::value &&
                      std::is_nothrow_move_assignable<rapt::tensor>::value &&
                      std::is_nothrow_move_constructible<rapt::layer>::value &&
                      std::is_nothrow_move_assignable<rapt::layer>::value &&
                      std::is_nothrow_move_constructible<rapt::optimizer>::value &&
                      std::is_nothrow_move_assignable<rapt::optimizer>::value,
                  "moves of handles");
    static_assert(!std::is_assignable<rapt::tensor, const rapt::tensor &>::value &&
                      !std::is_assignable<rapt::tensor, rapt::tensor>::value,
                  "x[0] = y would change nothing");
    static_assert(!std::is_reference<decltype(rapt::ones({2}).require_gradient())>::value,
                  "a reference to a tensor that ends with the line");
    const rapt::tensor &leaf = rapt::ones({2}).require_gradient();
    expect(leaf.at({1}) == 1 && rapt_requires_gradient(leaf.get()), "a leaf of a name");

    rapt::tensor x = rapt::ones({2}), *self = &x;
    x = std::move(*self);
    x = *self;
    expect(x.at({1}) == 1, "a tensor to itself");
    const rapt::tensor empty, copied = empty;
    rapt::layer first = rapt::linear(1, 1), second = std::move(first), third = first;
    expect(!empty && !copied && !first.get() && second.get() && !third.get(), "a copy of nothing is nothing");
    adam = new_adam(second);
    expect(adam.get() != nullptr, "what was moved from takes another");
    expect(!rapt_error(), "without an error");
}

// Each sentence names what is empty.
static void check_empty_handles()
{
    rapt::layer model = rapt::linear(2, 1);
    rapt::optimizer adam = new_adam(model), other = std::move(adam);
    const rapt::layer moved = std::move(model);
    const rapt::tensor row = rapt::ones({1, 2});
    rapt::tensor empty;
    const auto half_a_model = [] { rapt::sequential({rapt::linear(1, 2), rapt::linear(-1, 2)}); };
    const auto names = [](const char *what, const std::function<void()> &function) {
        return complains(function, {what, "is empty", "moved from"}) && !rapt_error();
    };
    expect(names("the tensor", [&] { empty.item(); }) && names("the tensor", [&] { empty.at({}); }) &&
               names("the tensor", [&] { empty.dtype(); }) && names("the tensor", [&] { empty.backward(); }) &&
               names("the tensor", [&] { empty.require_gradient(); }) &&
               names("the tensor", [&] { rapt::tensor(empty.get()); }) &&
               names("the tensor", [] { rapt::tensor{nullptr}; }),
           "the tensor is empty");
    expect(names("the layer", [&] { model(row); }) && names("the layer", [&] { model.parameter("weight"); }) &&
               names("the layer", [&] { rapt::layer(model.get()); }),
           "the layer is empty");
    expect(names("the optimizer", [&] { adam.step(); }) && names("the optimizer", [&] { rapt::optimizer(adam.get()); }),
           "the optimizer is empty");
    try {
        rapt::tensor x(empty.get());
        expect(false, "NULL is an error");
    } catch (const rapt::error &caught) {
        expect(caught.code() == RAPT_ERROR_NULL, "and its code says so");
    }
    expect(names("the tensor", [&] { rapt::exp(empty); }) && complains(half_a_model, {"size -1"}),
           "what the library says comes first");
    expect(refuses([&] { moved.parameter(nullptr); }) && !rapt_error(), "a parameter without a name");
    expect(!moved.parameter("nobody") && !rapt_error(), "and one that is not there");
}

// Ops and layers made of handles hand their results out.
static rapt_tensor *product_forward(rapt_call *call)
{
    const rapt::tensor a(rapt_call_input(call, 0)), b(rapt_call_input(call, 1));
    rapt_call_save(call, a.get());
    rapt_call_save(call, b.get());
    return (a * b).hand_out();
}

static bool product_vjp(rapt_call *call)
{
    const rapt::tensor g(rapt_call_gradient(call, 0)), a(rapt_call_saved(call, 0)), b(rapt_call_saved(call, 1));
    return rapt_call_give(call, 0, (g * b).hand_out()) && rapt_call_give(call, 1, (g * a).hand_out());
}

static rapt_tensor *product(rapt_tensor *const *inputs, void *)
{
    static rapt_op op = rapt_op();
    op.name = "product";
    op.forward = product_forward;
    op.vjp = product_vjp;
    return RAPT_APPLY(&op, nullptr, inputs[0], inputs[1]);
}

static void check_handing_out()
{
    const rapt::scope here;
    const rapt::tensor a = rapt::randn({3}, RAPT_FLOAT64).require_gradient(),
                       b = rapt::randn({3}, RAPT_FLOAT64).require_gradient();
    rapt_tensor *inputs[] = {a.get(), b.get()};
    rapt_gradcheck_options options = rapt_gradcheck_options();
    for (int order = 1; order <= 2; order++) {
        options.second_order = order == 2;
        const rapt_gradcheck_result result = rapt_gradcheck("product", product, 2, inputs, &options);
        expect(result.passed && result.checked > 0, result.message);
    }
    const auto twice = [](rapt_tensor *x) { return (rapt::tensor(x) * 2).hand_out(); };
    expect(rapt::activation("Twice", twice)(rapt::tensor(3)).item() == 6, "a layer of an op made of handles");
    expect(complains([] { rapt::tensor().hand_out(); }, {"the tensor is empty"}), "an empty one has nothing to give");
}

static void check_children()
{
    rapt::layer child;
    {
        const rapt::layer model = rapt::sequential({rapt::linear(2, 3), rapt::sequential({rapt::linear(3, 1)})});
        child = model.child("0");
        expect(model.child("1.0").parameter("weight").sizes() == (rapt::shape{1, 3}), "a child of a child");
        expect(!model.child("2") && refuses([&] { model.child(nullptr); }), "one that is not there");
    }
    expect(child(rapt::ones({1, 2})).sizes() == (rapt::shape{1, 3}), "a child outlives its parent");
    expect(complains([] { rapt::check(false); }, {"no error of the library"}), "a false that is no error");
}

// Each in a scope of its own, so that the library's count of live bytes shows what handles hold.
static void check_handles()
{
    rapt::tensor a = rapt::ones({2, 3}), b = a;
    expect(a.get() == b.get(), "copies share");
    b = rapt::tensor({1, 2, 3}, {3}).require_gradient();
    const rapt::tensor loss = rapt::sum((2 * a - b) * b / 2 + rapt::exp(-b) * 0);
    loss.backward();
    expect(loss.item() == -2.0 && b.gradient().at({0}) == 0 && b.gradient().at({2}) == -4, "operators and gradients");
    expect(!a.gradient(), "no gradient is no handle");
    expect(rapt::call(rapt_softmax, a, -1).sizes() == (std::vector<int64_t>{2, 3}), "any function of rapt.h");
    expect(rapt::call(rapt_sum, a, RAPT_ALL_AXES, false).sizes().empty(), "RAPT_ALL_AXES in a template");
    const rapt::tensor moved = std::move(a);
    expect(!a && moved, "what was moved holds nothing");
    try {
        rapt::matmul(moved, moved);
        expect(false, "an error is an exception");
    } catch (const rapt::error &caught) {
        expect(caught.code() == RAPT_ERROR_SHAPE && std::strstr(caught.what(), "matmul"), "which says what was wrong");
    }
    expect(!rapt_error(), "and leaves none behind");
    const rapt::layer shared = rapt::linear(3, 3);
    const rapt::layer twice = rapt::sequential({shared, shared}), thrice = rapt::sequential({twice, shared});
    rapt_attention *pooling = rapt_dot_product_attention_new(0);
    const rapt::layer holder(pooling);
    const rapt::tensor keys = rapt::randn({1, 4, 2});
    const rapt::tensor seen = rapt::call(rapt_attention_forward, pooling, keys, keys, keys, RAPT_MASK(.causal = true));
    expect(seen.at({0, 0, 1}) == keys.at({0, 0, 1}), "attention under a mask");
    rapt::no_gradient guard;
    expect(thrice(moved).sizes().size() == 2 && !rapt_is_recording(), "a layer in several places");
}

int main()
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    train();
    check_handles();
    check_refusals();
    check_numbers();
    check_values();
    check_files();
    check_standing_error();
    check_moves();
    check_empty_handles();
    check_handing_out();
    check_children();
    expect(rapt_is_recording(), "no_gradient ends");
    expect(rapt_memory_get_statistics().live_bytes == before, "handles give everything back");
    return failures > 0;
}
