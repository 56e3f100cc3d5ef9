// Exclusive or in C++, with rapt.hpp: the program of xor.c, and what handles and exceptions promise.
#include <cinttypes>
#include <cstdio>
#include <cstring>

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
    expect(rapt_is_recording(), "no_gradient ends");
    expect(rapt_memory_get_statistics().live_bytes == before, "handles give everything back");
    return failures > 0;
}
