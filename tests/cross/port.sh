# shellcheck shell=sh
# To be read by ./run, whose words it uses: ./run port SYSTEM.
: "${root:?is set by ./run}" "${build:?is set by ./run}"

# What depends on the order of bytes, and what each op, layer and optimizer gives: under qemu the whole suite takes many
# hours.
big_endian_tests='archive_errors attention autograd checkpoint crowded debugging definition derivatives dlpack draws
einsum elements error example_loop gradcheck layers loader map_baseline mask memory metrics module module_file
multi_head npy op_conventions optimizer packed_matrix_baseline packing padding philox pointer_set positions
precision_baseline print random replace_file rotary safetensors safetensors_bad safetensors_map safetensors_save
safetensors_shards scoring sort special_values tensor wrap xor'

# Builds by the cross file of the system, and tests what can be run here.
port() {
    system=${1:-}
    set --
    case $system in
    arm) need meson ninja-build gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static ;;
    web) need meson ninja-build emscripten nodejs node-acorn chromium ;;
    windows) need meson ninja-build gcc-mingw-w64-x86-64 wine64 ;;
    musl) need meson ninja-build musl-tools ;;
    i686) need meson ninja-build gcc-i686-linux-gnu libc6-dev-i386-cross ;;
    s390x)
        need meson ninja-build gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static
        # shellcheck disable=SC2086 # a list of words
        set -- $big_endian_tests
        ;;
    *) refuse "port needs arm, i686, musl, s390x, web or windows, not '$system'" ;;
    esac
    directory=$build-$system
    # Debian's emcc asks node for a module that only Debian's own node looks for there.
    export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"
    [ -f "$directory/build.ninja" ] || meson setup "$directory" "$root" --cross-file "$root/tests/cross/$system.ini"
    if [ "$system" = web ]; then
        compile "$directory" loop words page
        exec "$root/tests/check_web.sh" "$directory"
    fi
    compile "$directory"
    # Windows refuses memory that there is not; Wine promises it, and tests that expect an error would fill it.
    # shellcheck disable=SC3045 # every shell of Debian has it
    [ "$system" != windows ] || ulimit -v 16000000
    # Emulated threads that wait for each other take long.
    OMP_NUM_THREADS=1 WINEDEBUG=-all exec meson test -C "$directory" --no-rebuild --print-errorlogs \
        --timeout-multiplier 30 "$@"
}
