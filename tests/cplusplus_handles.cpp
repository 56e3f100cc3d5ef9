// What handles of rapt.hpp promise where they meet functions of rapt.h: who owns a layer that a parent has as well,
// what numbers stand beside tensors, what an empty handle is refused for, and what ops that throw tell. A macro called
// like one of its functions breaks nothing.
#define check(condition) 0
#include <rapt.hpp>
#undef check

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

static int failures;

static void expect(bool good, const char *what)
{
    if (good) return;
    std::fprintf(stderr, "cplusplus_handles: %s (%s)\n", what, rapt_error() ? rapt_error() : "no error");
    failures++;
}

static std::atomic<int> destroyed;

static void count_destroyed(rapt_module *)
{
    destroyed++;
}

static rapt_module_class make_leaf_kind()
{
    rapt_module_class kind = rapt_module_class();
    kind.name = "Leaf";
    kind.forward = [](rapt_module *, rapt_tensor *x) { return rapt_add_scalar(x, 1); };
    kind.destroy = count_destroyed;
    return kind;
}

static const rapt_module_class leaf_kind = make_leaf_kind();

static rapt_module *new_module()
{
    return static_cast<rapt_module *>(rapt_module_new(sizeof(rapt_module), &leaf_kind));
}

static rapt::layer leaf()
{
    return rapt::layer(new_module());
}

static bool runs(const rapt::layer &layer)
{
    return layer(rapt::ones({1})).item() == 2;
}

// The function's parent has the part, then goes, and then the part's handle; what it makes is destroyed once.
template <typename F> static void check_owner(int made, F function, const char *what)
{
    destroyed = 0;
    {
        const rapt::layer part = leaf();
        function(part);
        expect(runs(part) && destroyed == made - 1, what);
    }
    expect(destroyed == made, what);
}

static void check_owners()
{
    check_owner(
        2,
        [](const rapt::layer &part) {
            rapt_module *parent = new_module();
            expect(rapt_module_add_child(parent, "part", part.get()) == part.get(), "a child");
            rapt::layer(static_cast<rapt_module *>(rapt_module_finish(parent)));
        },
        "a child of rapt_module_add_child");
    check_owner(
        1, [](const rapt::layer &part) { rapt::layer(RAPT_SEQUENTIAL(part.get(), part.get())); },
        "twice in RAPT_SEQUENTIAL");
    check_owner(
        2,
        [](const rapt::layer &part) {
            rapt::sequential({part, rapt::sequential({part, leaf(), part})});
        },
        "several times in rapt::sequential");
    check_owner(
        2,
        [](const rapt::layer &part) {
            rapt_module *parent = new_module();
            expect(!rapt_module_add_child(parent, "a.b", part.get()) && !rapt_module_finish(parent), "a bad name");
            rapt_clear_error();
        },
        "refused by a parent");
    check_owner(
        1,
        [](const rapt::layer &part) {
            expect(!RAPT_SEQUENTIAL(part.get(), static_cast<rapt_module *>(nullptr)), "a list with NULL");
            rapt_clear_error();
        },
        "in a list that is refused");
    check_owner(
        1,
        [](const rapt::layer &part) {
            const rapt::layer again(part.get()), third = again;
            expect(runs(third), "a second handle");
        },
        "a second handle of one pointer");
    destroyed = 0;
    {
        rapt::layer child;
        {
            rapt_module *part = new_module();
            const rapt::layer parent(RAPT_SEQUENTIAL(part));
            child = rapt::layer(part);
        }
        expect(runs(child) && destroyed == 0, "a handle of what a parent has");
        rapt::layer other = rapt::sequential({child}).child("0");
        child = rapt::layer();
        expect(runs(other) && destroyed == 0, "a child of a second parent");
    }
    expect(destroyed == 1, "which goes with the last of them");
}

// Attention that is given its pooling, and rotary positions that are a member, whose class destroys it last.
static void check_parts_of_layers()
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    {
        rapt_attention *pooling = rapt_additive_attention_new(4, 4, 8, 0);
        const rapt::layer part(pooling);
        {
            rapt_multi_head_attention_config config = rapt_multi_head_attention_config();
            config.hidden = 8, config.heads = 2, config.pooling = pooling;
            const rapt::layer attention(rapt_multi_head_attention_new(&config));
        }
        const rapt::tensor x = rapt::ones({1, 3, 4});
        expect(rapt::call(rapt_attention_forward, pooling, x, x, x, nullptr).sizes()[1] == 3, "a pooling");
        struct network {
            rapt::layer part = rapt::linear(2, 3), all = rapt::layer(RAPT_SEQUENTIAL(part.get()));
        };
        const network members = network();
        expect(members.all(rapt::ones({1, 2})).sizes()[1] == 3, "members");
    }
    expect(rapt_memory_get_statistics().live_bytes == before, "which all go");
}

// Two threads put the same layers into lists of their own.
static void check_owners_of_threads()
{
    destroyed = 0;
    const int rounds = 200;
    for (int round = 0; round < rounds; round++) {
        const rapt::layer a = leaf(), b = leaf();
        const auto run = [&] { rapt::sequential({a, b, a})(rapt::ones({1})); };
        std::thread other(run);
        run();
        other.join();
    }
    expect(destroyed == 2 * rounds, "each layer is destroyed once");
}

static double first(const rapt::tensor &x)
{
    return x.at({0});
}

struct sizes {
    static const int64_t width = 3; // has a value and no place
    int bits : 4;
};

static void check_numbers()
{
    enum { hidden = 3 };
    enum wide : uint64_t { beyond_doubles = (uint64_t(1) << 53) + 1 };
    const rapt::tensor x = rapt::ones({2}), whole = rapt::ones({2}, RAPT_INT64);
    const std::atomic<int> counter(3);
    const std::atomic<double> rate(0.5);
    std::vector<bool> flags(1, true);
    double half = 0.5;
    expect(first(x * hidden) == 3 && first(hidden - x) == 2 && rapt::tensor(hidden).item() == 3, "an enumerator");
    expect(first(x * std::integral_constant<int, 3>()) == 3 && first(1 / (x + std::true_type())) == 0.5, "a constant");
    expect(first(x * flags[0]) == 1 && first(flags[0] + x) == 2, "an element of vector<bool>");
    expect(first(x * counter) == 3 && first(x - rate) == 0.5 && first(x * std::ref(half)) == 0.5, "an atomic");
    sizes some = sizes();
    some.bits = 5;
    expect(first(x * sizes::width) == 3 && first(x * some.bits) == 5, "a member");
    expect((whole - 1 + beyond_doubles).values<int64_t>()[0] == (INT64_C(1) << 53) + 1 &&
               (std::integral_constant<int64_t, (INT64_C(1) << 53) + 1>() * whole).values<int64_t>()[1] ==
                   (INT64_C(1) << 53) + 1,
           "and is not rounded");
    static_assert(!std::is_constructible<rapt::tensor, rapt::layer>::value &&
                      !std::is_constructible<rapt::tensor, const char *>::value &&
                      !std::is_constructible<rapt::tensor, long double>::value,
                  "what is none");
}

template <typename F> static bool refuses(F function)
{
    try {
        function();
    } catch (const std::invalid_argument &caught) {
        return std::strstr(caught.what(), "the tensor is empty") && !rapt_error();
    }
    return false;
}

static void check_empty()
{
    const rapt::tensor x = rapt::ones({1, 3}), w = rapt::ones({1, 3});
    rapt::tensor bias = rapt::ones({1}), kept = std::move(bias);
    expect(rapt::call(rapt_affine, x, w, kept).item() == 4 && rapt::call(rapt_affine, x, w, nullptr).item() == 3,
           "an optional input");
    expect(refuses([&] { rapt::call(rapt_affine, x, w, bias); }), "that is empty is no absent one");
    expect(refuses([&] { bias + x; }) && refuses([&] { x *bias; }) && refuses([&] { -bias; }) &&
               refuses([&] { rapt::exp(bias); }) && refuses([&] { bias[0]; }) && refuses([&] { rapt::sum(bias); }) &&
               refuses([&] { bias.values<float>(); }) && refuses([&] { rapt::linear(3, 1)(bias); }),
           "nor does an empty one compute");
}

// A mask inside a mask shadows nothing: this file is compiled with -Wshadow.
static void check_nested_masks()
{
    RAPT_SCOPE;
    rapt_tensor *scores = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 2));
    rapt_tensor *seen =
        rapt_mask_seen(RAPT_MASK(.seen =
                                     rapt_mask_seen(RAPT_MASK(.seen = rapt_mask_seen(RAPT_MASK(.causal = true), scores),
                                                              .window = 2),
                                                    scores),
                                 .window = 1),
                       scores);
    const int64_t places[][3] = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}};
    expect(rapt_at(seen, places[0]) == 1 && rapt_at(seen, places[1]) == 0 && rapt_at(seen, places[2]) == 0 &&
               rapt_at(seen, places[3]) == 1,
           "masks inside masks");
}

static std::function<void()> throws; // from the op's forward

static rapt_tensor *forward(rapt_call *)
{
    try {
        throws();
    } catch (...) {
        rapt::tell("thrower");
    }
    return nullptr;
}

// What comes of the op within a module: the whole message, and its code.
static bool tells(const std::function<void()> &function, rapt_error_code code, const char *message)
{
    throws = function;
    const rapt::layer model = rapt::sequential({rapt::activation("Thrower", [](rapt_tensor *x) -> rapt_tensor * {
        static rapt_op op = rapt_op();
        op.name = "thrower";
        op.forward = forward;
        op.vjp = [](rapt_call *) { return false; };
        return RAPT_APPLY(&op, nullptr, x);
    })});
    try {
        model(rapt::ones({2, 3}));
    } catch (const rapt::error &caught) {
        if (std::strcmp(caught.what(), message) == 0 && caught.code() == code && !rapt_error()) return true;
        std::fprintf(stderr, "%s (%d)\n", caught.what(), caught.code());
    }
    return false;
}

static void check_telling()
{
    expect(
        tells(
            [] {
                const rapt::tensor x = rapt::ones({2, 3});
                rapt::matmul(x, x);
            },
            RAPT_ERROR_SHAPE,
            "thrower: matmul: inner sizes differ: a is [2, 3], b is [2, 3]; b fits transposed (rapt_transpose of its "
            "last two axes); in Sequential 0"),
        "the module comes once");
    expect(tells([] { throw std::bad_alloc(); }, RAPT_ERROR_MEMORY, "thrower: std::bad_alloc; in Sequential 0"),
           "no memory");
    expect(tells([] { throw std::out_of_range("too far"); }, RAPT_ERROR_VALUE, "thrower: too far; in Sequential 0"),
           "a reason");
    expect(tells([] { throw 5; }, RAPT_ERROR_VALUE, "thrower: an exception that is no std::exception; in Sequential 0"),
           "none");
}

int main()
{
    check_owners();
    check_parts_of_layers();
    check_owners_of_threads();
    check_numbers();
    check_empty();
    check_nested_masks();
    check_telling();
    return failures > 0;
}
