! rapt for Fortran, by iso_c_binding: the handles of rapt.h as type(c_ptr), those of its functions that a training loop
! of Linear layers needs, under their own names (but rapt_error, here rapt_error_text; others are declared likewise), and
! rapt_array, which makes a tensor of a Fortran array where it lies. The first axis is the densest in Fortran: the strides
! say so, and shapes read alike on both sides.
!
! It is compiled by the compiler of the program, whose module files no other one reads:
!     gfortran -c PREFIX/include/rapt.f90
!     gfortran program.f90 rapt.o $(pkg-config --libs rapt)
module rapt
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: rapt_float32 = 0, rapt_float64 = 1, rapt_int64 = 2, rapt_int32 = 3, rapt_uint8 = 4, &
        rapt_bool = 5
    integer(c_int), parameter :: rapt_no_bias = 0, rapt_bias = 1
    integer(c_int), parameter :: rapt_reduce_mean = 0, rapt_reduce_sum = 1, rapt_reduce_none = 2

    ! 0 means the default that rapt/optimizer.h names.
    type, bind(c) :: rapt_adam_config
        real(c_double) :: learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0
    end type
    type, bind(c) :: rapt_sgd_config
        real(c_double) :: learning_rate = 0, momentum = 0, dampening = 0, weight_decay = 0
        logical(c_bool) :: nesterov = .false.
    end type

    ! A tensor in the memory of an array, or of a section of one with steps above 0. It must be a target or a pointer, and
    ! outlive the tensor. Of a component a pointer is taken first (part => z%im, rapt_array(part)): of z%im as the argument
    ! gfortran, up to 16, hands over z%re.
    interface rapt_array
        module procedure array_1, array_2, array_3, array_1_double, array_2_double, array_3_double
    end interface

    interface
        subroutine rapt_seed(seed) bind(c)
            import
            integer(c_int64_t), value :: seed
        end subroutine
        function rapt_error_text() result(text) bind(c, name='rapt_error')
            import
            type(c_ptr) :: text
        end function
        subroutine rapt_clear_error() bind(c)
        end subroutine

        ! --- scopes ---
        function rapt_scope_begin() result(scope) bind(c)
            import
            integer(c_int64_t) :: scope
        end function
        subroutine rapt_scope_end(scope) bind(c)
            import
            integer(c_int64_t), value :: scope
        end subroutine
        type(c_ptr) function rapt_keep(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end function
        type(c_ptr) function rapt_retain(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end function
        subroutine rapt_release(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end subroutine

        ! --- tensors; dtype, rank, shape ---
        type(c_ptr) function rapt_zeros(dtype, rank, shape) bind(c)
            import
            integer(c_int), value :: dtype, rank
            integer(c_int64_t), intent(in) :: shape(*)
        end function
        type(c_ptr) function rapt_randn(dtype, rank, shape) bind(c)
            import
            integer(c_int), value :: dtype, rank
            integer(c_int64_t), intent(in) :: shape(*)
        end function
        type(c_ptr) function rapt_wrap(dtype, rank, shape, strides, data, release, owner) bind(c)
            import
            integer(c_int), value :: dtype, rank
            integer(c_int64_t), intent(in) :: shape(*), strides(*)
            type(c_ptr), value :: data, owner
            type(c_funptr), value :: release
        end function
        function rapt_rank(tensor) result(rank) bind(c)
            import
            type(c_ptr), value :: tensor
            integer(c_int) :: rank
        end function
        function rapt_size(tensor, axis) result(size) bind(c)
            import
            type(c_ptr), value :: tensor
            integer(c_int), value :: axis
            integer(c_int64_t) :: size
        end function
        ! The elements as C has them, of a dense tensor with the last axis together. Into an array of Fortran's they come
        ! by rapt_copy(rapt_array(numbers), tensor).
        type(c_ptr) function rapt_data(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end function
        logical(c_bool) function rapt_copy(target, source) bind(c)
            import
            type(c_ptr), value :: target, source
        end function
        function rapt_item(tensor) result(value) bind(c)
            import
            type(c_ptr), value :: tensor
            real(c_double) :: value
        end function
        ! The indices count from 0, as in C.
        function rapt_at(tensor, indices) result(value) bind(c)
            import
            type(c_ptr), value :: tensor
            integer(c_int64_t), intent(in) :: indices(*)
            real(c_double) :: value
        end function
        subroutine rapt_print(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end subroutine

        ! --- gradients ---
        type(c_ptr) function rapt_require_gradient(tensor) bind(c)
            import
            type(c_ptr), value :: tensor
        end function
        type(c_ptr) function rapt_gradient(leaf) bind(c)
            import
            type(c_ptr), value :: leaf
        end function
        function rapt_backward(root) result(good) bind(c)
            import
            type(c_ptr), value :: root
            logical(c_bool) :: good
        end function

        ! --- ops ---
        type(c_ptr) function rapt_add(a, b) bind(c)
            import
            type(c_ptr), value :: a, b
        end function
        type(c_ptr) function rapt_sub(a, b) bind(c)
            import
            type(c_ptr), value :: a, b
        end function
        type(c_ptr) function rapt_mul(a, b) bind(c)
            import
            type(c_ptr), value :: a, b
        end function
        type(c_ptr) function rapt_div(a, b) bind(c)
            import
            type(c_ptr), value :: a, b
        end function
        type(c_ptr) function rapt_matmul(a, b) bind(c)
            import
            type(c_ptr), value :: a, b
        end function
        type(c_ptr) function rapt_mul_scalar(x, value) bind(c)
            import
            type(c_ptr), value :: x
            real(c_double), value :: value
        end function
        type(c_ptr) function rapt_sum(x, axis_count, axes, keep) bind(c)
            import
            type(c_ptr), value :: x
            integer(c_int), value :: axis_count
            integer(c_int), intent(in) :: axes(*)
            logical(c_bool), value :: keep
        end function
        type(c_ptr) function rapt_exp(x) bind(c)
            import
            type(c_ptr), value :: x
        end function
        type(c_ptr) function rapt_tanh(x) bind(c)
            import
            type(c_ptr), value :: x
        end function
        type(c_ptr) function rapt_relu(x) bind(c)
            import
            type(c_ptr), value :: x
        end function
        type(c_ptr) function rapt_softmax(x, axis) bind(c)
            import
            type(c_ptr), value :: x
            integer(c_int), value :: axis
        end function
        type(c_ptr) function rapt_mse_loss(input, target, reduction) bind(c)
            import
            type(c_ptr), value :: input, target
            integer(c_int), value :: reduction
        end function

        ! --- layers and optimizers ---
        type(c_ptr) function rapt_linear_new(in, out, flags) bind(c)
            import
            integer(c_int64_t), value :: in, out
            integer(c_int), value :: flags
        end function
        type(c_ptr) function rapt_activation_new_c(name, function) bind(c, name='rapt_activation_new')
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr), value :: function
        end function
        type(c_ptr) function rapt_sequential_new(count, layers) bind(c)
            import
            integer(c_int), value :: count
            type(c_ptr), intent(in) :: layers(*)
        end function
        type(c_ptr) function rapt_module_forward(module, x) bind(c)
            import
            type(c_ptr), value :: module, x
        end function
        subroutine rapt_module_free(module) bind(c)
            import
            type(c_ptr), value :: module
        end subroutine
        logical(c_bool) function rapt_module_save_c(module, path) bind(c, name='rapt_module_save')
            import
            type(c_ptr), value :: module
            character(kind=c_char), intent(in) :: path(*)
        end function
        logical(c_bool) function rapt_module_load_c(module, path) bind(c, name='rapt_module_load')
            import
            type(c_ptr), value :: module
            character(kind=c_char), intent(in) :: path(*)
        end function
        type(c_ptr) function rapt_adam_new(module, config) bind(c)
            import
            type(c_ptr), value :: module
            type(rapt_adam_config), intent(in) :: config
        end function
        type(c_ptr) function rapt_sgd_new(module, config) bind(c)
            import
            type(c_ptr), value :: module
            type(rapt_sgd_config), intent(in) :: config
        end function
        function rapt_optimizer_step(optimizer) result(good) bind(c)
            import
            type(c_ptr), value :: optimizer
            logical(c_bool) :: good
        end function
        function rapt_optimizer_step_clipped(optimizer, limit, norm) result(good) bind(c)
            import
            type(c_ptr), value :: optimizer
            real(c_double), value :: limit
            real(c_double), intent(out) :: norm
            logical(c_bool) :: good
        end function
        subroutine rapt_optimizer_free(optimizer) bind(c)
            import
            type(c_ptr), value :: optimizer
        end subroutine
    end interface

    private :: array_1, array_2, array_3, array_1_double, array_2_double, array_3_double, wrap, text_of

contains

    ! Strides are distances in memory: `next` has, for each axis, the place behind the first one along it. A component of
    ! elements whose size is no multiple of its own has none that are whole numbers, and gives no place to wrap.
    type(c_ptr) function wrap(dtype, bytes, shape, first, next)
        integer(c_int), intent(in) :: dtype, bytes
        integer(c_int64_t), intent(in) :: shape(:)
        type(c_ptr), intent(in) :: first, next(:)
        integer(c_intptr_t) :: distances(size(shape))
        integer :: axis
        do axis = 1, size(shape)
            distances(axis) = transfer(next(axis), 0_c_intptr_t) - transfer(first, 0_c_intptr_t)
        end do
        wrap = merge(first, c_null_ptr, all(mod(distances, int(bytes, c_intptr_t)) == 0))
        wrap = rapt_wrap(dtype, int(size(shape), c_int), shape, int(distances / bytes, c_int64_t), wrap, &
            c_null_funptr, c_null_ptr)
    end function

    ! A text as C has it: without blanks at its end, and with c_null_char, which it may end with already.
    function text_of(text) result(ended)
        character(len=*), intent(in) :: text
        character(len=:), allocatable :: ended
        ended = trim(text(:index(text // c_null_char, c_null_char) - 1)) // c_null_char
    end function

    logical(c_bool) function rapt_module_save(module, path)
        type(c_ptr), value :: module
        character(len=*), intent(in) :: path
        rapt_module_save = rapt_module_save_c(module, text_of(path))
    end function

    logical(c_bool) function rapt_module_load(module, path)
        type(c_ptr), value :: module
        character(len=*), intent(in) :: path
        rapt_module_load = rapt_module_load_c(module, text_of(path))
    end function

    type(c_ptr) function rapt_activation_new(name, function)
        character(len=*), intent(in) :: name
        type(c_funptr), value :: function
        rapt_activation_new = rapt_activation_new_c(text_of(name), function)
    end function

    type(c_ptr) function array_1(numbers)
        real(c_float), pointer, intent(in) :: numbers(:)
        integer(c_int64_t) :: l(1), n(1)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_1 = rapt_zeros(rapt_float32, 1_c_int, shape(numbers, c_int64_t))
        else
            array_1 = wrap(rapt_float32, 4_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1))), &
                [c_loc(numbers(n(1)))])
        end if
    end function

    type(c_ptr) function array_2(numbers)
        real(c_float), pointer, intent(in) :: numbers(:, :)
        integer(c_int64_t) :: l(2), n(2)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_2 = rapt_zeros(rapt_float32, 2_c_int, shape(numbers, c_int64_t))
        else
            array_2 = wrap(rapt_float32, 4_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1), l(2))), &
                [c_loc(numbers(n(1), l(2))), c_loc(numbers(l(1), n(2)))])
        end if
    end function

    type(c_ptr) function array_3(numbers)
        real(c_float), pointer, intent(in) :: numbers(:, :, :)
        integer(c_int64_t) :: l(3), n(3)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_3 = rapt_zeros(rapt_float32, 3_c_int, shape(numbers, c_int64_t))
        else
            array_3 = wrap(rapt_float32, 4_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1), l(2), l(3))), &
                [c_loc(numbers(n(1), l(2), l(3))), c_loc(numbers(l(1), n(2), l(3))), c_loc(numbers(l(1), l(2), n(3)))])
        end if
    end function

    type(c_ptr) function array_1_double(numbers)
        real(c_double), pointer, intent(in) :: numbers(:)
        integer(c_int64_t) :: l(1), n(1)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_1_double = rapt_zeros(rapt_float64, 1_c_int, shape(numbers, c_int64_t))
        else
            array_1_double = wrap(rapt_float64, 8_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1))), &
                [c_loc(numbers(n(1)))])
        end if
    end function

    type(c_ptr) function array_2_double(numbers)
        real(c_double), pointer, intent(in) :: numbers(:, :)
        integer(c_int64_t) :: l(2), n(2)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_2_double = rapt_zeros(rapt_float64, 2_c_int, shape(numbers, c_int64_t))
        else
            array_2_double = wrap(rapt_float64, 8_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1), l(2))), &
                [c_loc(numbers(n(1), l(2))), c_loc(numbers(l(1), n(2)))])
        end if
    end function

    type(c_ptr) function array_3_double(numbers)
        real(c_double), pointer, intent(in) :: numbers(:, :, :)
        integer(c_int64_t) :: l(3), n(3)
        l = lbound(numbers, kind=c_int64_t)
        n = min(l + 1, ubound(numbers, kind=c_int64_t))
        if (size(numbers, kind=c_int64_t) == 0) then
            array_3_double = rapt_zeros(rapt_float64, 3_c_int, shape(numbers, c_int64_t))
        else
            array_3_double = wrap(rapt_float64, 8_c_int, shape(numbers, c_int64_t), c_loc(numbers(l(1), l(2), l(3))), &
                [c_loc(numbers(n(1), l(2), l(3))), c_loc(numbers(l(1), n(2), l(3))), c_loc(numbers(l(1), l(2), n(3)))])
        end if
    end function

    ! What went wrong first, "" when nothing did.
    function rapt_error() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        type(c_ptr) :: message
        integer :: length
        message = rapt_error_text()
        text = ''
        if (.not. c_associated(message)) return
        call c_f_pointer(message, bytes, [4096])
        length = 0
        do while (bytes(length + 1) /= c_null_char)
            length = length + 1
        end do
        text = repeat(' ', length)
        text = transfer(bytes(1:length), text)
    end function
end module
