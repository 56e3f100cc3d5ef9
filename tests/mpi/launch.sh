# shellcheck shell=sh
# To be read by scripts that start mpirun. OpenMPI wants to be told that root, and more ranks than processors, are meant,
# from 5.0 on by PRTE's variables. MPICH reads none of these. A folder of its own, $work, for each test: OpenMPI takes away the one in /tmp that all share
# when the last run ends, which another may just begin.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_orte_tmpdir_base="${work:?is set by who reads this}" PRTE_MCA_prte_tmpdir_base="$work"
command -v mpirun >/dev/null || { echo 'skipped: there is no mpirun' && exit 77; }
# Releases of OpenMPI that ask for an option, not for the variables above, start nothing for root.
said=$(timeout 60 mpirun -n 2 true 2>&1) || case $said in
*'run as root'*) echo 'skipped: mpirun starts nothing for root here' && exit 77 ;;
*) echo "mpirun starts no two processes: $said" >&2 && exit 1 ;;
esac
