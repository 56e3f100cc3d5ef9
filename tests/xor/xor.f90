! Exclusive or in Fortran: the program of xor.c, with the inputs in Fortran's own arrays.
program xor
    use rapt
    implicit none
    real(c_float), target :: inputs(4, 2) = reshape([0., 0., 1., 1., 0., 1., 0., 1.], [4, 2])
    real(c_float), target :: targets(4, 1) = reshape([0., 1., 1., 0.], [4, 1])
    real(c_float), target :: read(4, 2) = -1
    real(c_double), target :: table(3, 4) = 0
    complex(c_double_complex), target :: spectrum(0:4) = 0
    real(c_double), pointer :: part(:)
    type(c_ptr) :: x, y, target_, loss, model, adam
    integer(c_int64_t) :: scope, i
    integer :: step
    character(len=:), allocatable :: message

    call rapt_seed(1_c_int64_t)
    x = rapt_array(inputs)
    target_ = rapt_array(targets)
    model = rapt_sequential_new(3, [rapt_linear_new(2_c_int64_t, 16_c_int64_t, rapt_bias), &
        rapt_activation_new('Tanh', c_funloc(rapt_tanh)), &
        rapt_linear_new(16_c_int64_t, 1_c_int64_t, rapt_bias)])
    adam = rapt_adam_new(model, rapt_adam_config(learning_rate=1d-2))
    do step = 1, 300
        scope = rapt_scope_begin()
        loss = rapt_mse_loss(rapt_module_forward(model, x), target_, rapt_reduce_mean)
        if (.not. rapt_backward(loss)) call fail()
        if (.not. rapt_optimizer_step(adam)) call fail()
        print '(z16.16)', rapt_item(loss)
        call rapt_scope_end(scope)
    end do
    y = rapt_module_forward(model, x)
    do i = 0, 3
        print '(z16.16)', rapt_at(y, [i, 0_c_int64_t])
    end do
    call check_files()
    call rapt_optimizer_free(adam)
    call rapt_module_free(model)

    ! An error has its words here too.
    y = rapt_matmul(x, x)
    message = rapt_error()
    if (c_associated(y) .or. index(message, 'matmul') /= 1) stop 1
    call rapt_clear_error()

    ! A section of an array is a tensor where it lies, and one that is turned round is refused.
    x = rapt_array(table(::2, 2:3))
    y = rapt_array(table(2, :))
    table(3, 3) = 7
    table(2, 4) = 8
    if (nint(rapt_at(x, [1_c_int64_t, 1_c_int64_t])) /= 7) stop 2
    if (nint(rapt_at(y, [3_c_int64_t])) /= 8) stop 2
    y = rapt_array(table(3:2, :))
    message = rapt_error()
    if (rapt_size(y, 1) /= 4 .or. len(message) > 0) stop 3
    y = rapt_array(table(3:1:-1, 1))
    message = rapt_error()
    if (c_associated(y) .or. index(message, 'stride -1') == 0) stop 4
    call rapt_clear_error()

    ! So is a component of each element.
    part => spectrum%im
    x = rapt_array(part)
    part(lbound(part, 1):) => part(::2)
    y = rapt_array(part)
    spectrum(2) = (3, 4)
    if (any([rapt_size(x, 0), rapt_size(y, 0)] /= [5, 3])) stop 5
    if (nint(rapt_at(x, [2_c_int64_t])) /= 4) stop 5
    if (nint(rapt_at(y, [1_c_int64_t])) /= 4) stop 5

    ! Elements come into an array, whatever order they have in memory.
    if (.not. rapt_copy(rapt_array(read), rapt_array(inputs))) call fail()
    if (any(abs(read - inputs) > 0)) stop 7

contains

    ! A clipped step changes what the model says, and its weights before that come back from a file.
    subroutine check_files()
        character(len=*), parameter :: path = 'xor_fortran.safetensors'
        character(len=60) :: blanks
        real(c_double) :: before, norm
        integer :: unit

        before = said()
        if (.not. rapt_module_save(model, path)) call fail()
        if (.not. rapt_backward(rapt_mse_loss(rapt_module_forward(model, x), target_, rapt_reduce_mean))) call fail()
        if (.not. rapt_optimizer_step_clipped(adam, 1d-3, norm)) call fail()
        if (.not. norm > 0) stop 6
        if (.not. abs(said() - before) > 0) stop 6
        blanks = path
        if (.not. rapt_module_load(model, blanks)) call fail()
        if (abs(said() - before) > 0) stop 6
        if (.not. rapt_module_load(model, path // c_null_char // 'more')) call fail()
        open(newunit=unit, file=path)
        close(unit, status='delete')
    end subroutine

    real(c_double) function said()
        said = rapt_item(rapt_sum(rapt_module_forward(model, x), 0, [0], .false._c_bool))
    end function

    subroutine fail()
        write (*, '(2a)') 'xor: ', rapt_error()
        stop 1
    end subroutine
end program
