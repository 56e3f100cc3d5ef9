// rapt for C++11 and later, optional: handles own shares, operators compute, and errors are exceptions. All of rapt.h
// works beside it: call(rapt_softmax, x, -1) runs any function that gives a tensor, and check(…) throws what one that
// gives NULL or false has to say. No exception may leave a function of yours that rapt.h calls: an op's, a layer's, a
// handler of errors or warnings, what makes batches, what frees memory.
#ifndef RAPT_HPP
#define RAPT_HPP

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include <rapt/handles.hpp>
#include <rapt/tensor.hpp>

namespace rapt
{
namespace inside
{
// A path as C has it, where a NUL would end it.
inline const char *whole(const std::string &path)
{
    if (path.find('\0') != std::string::npos) throw std::invalid_argument("rapt: a path with a NUL in it");
    return path.c_str();
}
} // namespace inside

// A share of a module, or none, beside those of its parents. Copies share the parameters.
class layer : public inside::share<rapt_module, void, rapt_module_retain, rapt_module_free>
{
  public:
    // As a parent does, takes over the share of a new module, and takes one of its own in any other; NULL is an error.
    explicit layer(rapt_module *handle) : share(own(handle))
    {
    }
    layer() noexcept = default;
    template <typename Struct>
    explicit layer(Struct *layer_struct) : layer(&inside::checked(layer_struct, "layer")->module)
    {
    }
    tensor operator()(const tensor &x) const
    {
        return call(rapt_module_forward, inside::held("layer", get()), x);
    }
    void train(bool training = true)
    {
        rapt_module_train(inside::held("layer", get()), training);
    }
    // All weights, to a safetensors file and back.
    void save(const std::string &path) const
    {
        inside::checked(rapt_module_save(inside::held("layer", get()), inside::whole(path)));
    }
    void load(const std::string &path)
    {
        inside::checked(rapt_module_load(inside::held("layer", get()), inside::whole(path)));
    }
    // The module of that name within this one, "0.linear1" say; without a handle when there is none.
    layer child(const char *name) const
    {
        if (!name) throw std::invalid_argument("rapt: the name of a child is NULL; its full name expected");
        rapt_module *found = rapt_module_find_module(inside::held("layer", get()), name);
        return found ? layer(found) : layer();
    }
    // The parameter of that full name; without a handle when there is none.
    tensor parameter(const char *name) const
    {
        if (!name) throw std::invalid_argument("rapt: the name of a parameter is NULL; its full name expected");
        rapt_tensor *found = rapt_module_find(inside::held("layer", get()), name);
        return found ? tensor(found) : tensor();
    }

  private:
    static rapt_module *own(rapt_module *module)
    {
        inside::checked(module, "layer");
        const bool is_new = !__atomic_exchange_n(&module->adopted, true, __ATOMIC_RELAXED);
        return is_new ? module : static_cast<rapt_module *>(inside::checked(rapt_module_retain(module)));
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

inline layer sequential(std::initializer_list<layer> layers)
{
    std::vector<rapt_module *> handles;
    for (const layer &one : layers) handles.push_back(inside::held("layer", one.get()));
    return layer(rapt_sequential_new(static_cast<int>(handles.size()), handles.data()));
}

// An optimizer of rapt.h, which it takes over: optimizer(rapt_adam_new(model.get(), &config)).
class optimizer : public inside::share<rapt_optimizer, void, nullptr, rapt_optimizer_free>
{
  public:
    explicit optimizer(rapt_optimizer *handle) : share(inside::checked(handle, "optimizer"))
    {
    }
    optimizer(optimizer &&) noexcept = default; // and no copies: there is one share
    optimizer &operator=(optimizer &&) noexcept = default;
    void step()
    {
        inside::checked(rapt_optimizer_step(inside::held("optimizer", get())));
    }
};

} // namespace rapt

#endif
