# shellcheck shell=sh
# To be read by scripts that start mpirun. OpenMPI wants to be told that root, and more ranks than processors, are meant.
# MPICH reads none of these. A folder of its own, $work, for each test: OpenMPI takes away the one in /tmp that all share
# when the last run ends, which another may just begin.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_orte_tmpdir_base="${work:?is set by who reads this}"
timeout 60 mpirun -n 2 true || { echo 'skipped: mpirun starts no two processes here' && exit 77; }
