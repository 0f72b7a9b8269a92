# shellcheck shell=sh
# Removes the caller's settings from the environment: those of a surrounding lease or Slurm job,
# those of the programs under test, and conveniences that the users of these programs do not have.
# lib.sh and tests/run read this file in.
for setting in $(env | sed -nE 's/^([A-Z][A-Z0-9_]*)=.*/\1/p'); do
	case $setting in
	GPULEASE | GPULEASE_TEST_FILTER) ;; # they are for the tests
	CONDA* | CUDA* | GPULEASE* | MAMBA* | NVIDIA* | PYTHON* | SACCT* | SALLOC* | SBATCH* | \
		SCANCEL* | SINFO* | SLURM* | SQUEUE* | SRUN*) unset "$setting" ;;
	esac
done
unset BASH_ENV COLUMNS ENV NO_COLOR TMUX XDG_CONFIG_HOME XDG_RUNTIME_DIR setting
