package launch

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// launchers are in the order of precedence (schizo_ompi.c of Open MPI 4.1, pmip_cb.c of MPICH, env.c and slurmstepd.c
// of Slurm, local_elastic_agent.py of PyTorch, job plugins of Volcano).
var launchers = []struct {
	name string
	read func(env vars, p *Place) (found bool, err error)
}{
	{"Open MPI", openMPI},
	{"PMI", pmiRank},
	{"torchrun", func(env vars, p *Place) (bool, error) {
		// Workers of a torchrun that srun started inherit its SLURM_PROCID.
		return env["TORCHELASTIC_RUN_ID"] != "" && env["RANK"] != "", torch(env, p)
	}},
	{"srun", srun},
	{"RANK and WORLD_SIZE", func(env vars, p *Place) (bool, error) {
		return env["RANK"] != "" && env["WORLD_SIZE"] != "", torch(env, p)
	}},
	{"LeaderWorkerSet", leaderWorkerSet},
	{"Volcano", volcano},
	{"Kubernetes Indexed Job", func(env vars, p *Place) (bool, error) {
		// The pod's host name is the node's with hostNetwork, so that the index alone says the rank.
		return env["JOB_COMPLETION_INDEX"] != "", env.number("JOB_COMPLETION_INDEX", &p.Rank)
	}},
	{"Slurm", func(env vars, _ *Place) (bool, error) {
		if env["SLURM_PROCID"] == "" || env["SLURM_NTASKS"] == "1" {
			return false, nil
		}
		return false, errors.New("this process is in a job and was not started by srun, so that no other ranks will " +
			"come: put srun before it")
	}},
}

type vars map[string]string

func (env vars) number(name string, n *int) error {
	text, ok := env[name]
	if !ok || text == "" {
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 {
		return fmt.Errorf("%s=%q is no number", name, text)
	}
	*n = v
	return nil
}

func openMPI(env vars, p *Place) (bool, error) {
	if env["OMPI_COMM_WORLD_RANK"] == "" {
		return false, nil
	}
	p.Job = cmp.Or(env["PMIX_NAMESPACE"], env["OMPI_MCA_ess_base_jobid"], env["OMPI_MCA_orte_ess_jobid"])
	p.Node = cmp.Or(env["PMIX_HOSTNAME"], env["OMPI_MCA_orte_ess_node_name"])
	err := errors.Join(env.number("OMPI_COMM_WORLD_RANK", &p.Rank), env.number("OMPI_COMM_WORLD_SIZE", &p.Size),
		env.number("OMPI_COMM_WORLD_LOCAL_SIZE", &p.LocalSize))
	if p.LocalSize > 0 && p.LocalSize == p.Size {
		p.Rendezvous = []string{"127.0.0.1"}
		return true, err
	}
	// Rank 0 is on the first node of an allocation; else mpirun's host is the best guess (4.x says it).
	if hosts, e := HostList(cmp.Or(env["SLURM_JOB_NODELIST"], env["SLURM_NODELIST"])); e == nil && len(hosts) > 0 {
		p.Rendezvous = hosts[:1]
	}
	if _, uri, ok := strings.Cut(env["OMPI_MCA_orte_hnp_uri"], ";tcp://"); ok {
		addrs, _, _ := strings.Cut(strings.Trim(uri, `"`), ":")
		for _, a := range strings.Split(addrs, ",") {
			if net.ParseIP(a) != nil {
				p.Rendezvous = append(p.Rendezvous, a)
			}
		}
	}
	return true, err
}

// pmiRank is MPICH's and Intel MPI's Hydra, and srun --mpi=pmi2.
func pmiRank(env vars, p *Place) (bool, error) {
	switch {
	case env["PMI_RANK"] == "" && env["PMI_ID"] != "" && env["PMI_PORT"] != "":
		return true, errors.New("with -pmi-port the number of ranks is unknown: start it without")
	case env["PMI_RANK"] == "" || env["PMI_SIZE"] == "":
		return false, nil
	}
	p.Job = env["PMI_JOBID"]
	p.Node = cmp.Or(env["SLURMD_NODENAME"], env["PMI_HOSTNAME"])
	p.Switch = switchOf(env)
	return true, errors.Join(env.number("PMI_RANK", &p.Rank), env.number("PMI_SIZE", &p.Size),
		env.number("MPI_LOCALNRANKS", &p.LocalSize), env.number("PMI_FD", &p.PMI))
}

func srun(env vars, p *Place) (bool, error) {
	if env["SLURM_PROCID"] == "" || env["SLURM_STEP_NODELIST"] == "" {
		return false, nil
	}
	hosts, err := HostList(env["SLURM_STEP_NODELIST"])
	if err == nil && len(hosts) == 0 {
		err = errors.New("SLURM_STEP_NODELIST names no host")
	}
	if err != nil {
		return true, err
	}
	p.Rendezvous, p.Node, p.Switch = hosts[:1], env["SLURMD_NODENAME"], switchOf(env)
	p.Job = env["SLURM_JOB_ID"] + "." + env["SLURM_STEP_ID"]
	return true, errors.Join(env.number("SLURM_PROCID", &p.Rank), env.number("SLURM_NTASKS", &p.Size),
		env.number("SLURM_STEP_NUM_TASKS", &p.Size))
}

// switchOf is SLURM_TOPOLOGY_ADDR without the node: "s0.s1" of "s0.s1.n7". Without the plugin of topologies it is the
// node alone.
func switchOf(env vars) string {
	addr := env["SLURM_TOPOLOGY_ADDR"]
	return addr[:max(strings.LastIndexByte(addr, '.'), 0)]
}

func torch(env vars, p *Place) error {
	if id := env["TORCHELASTIC_RUN_ID"]; id != "" {
		p.Job = id + "." + env["TORCHELASTIC_RESTART_COUNT"]
	}
	port := 0
	err := errors.Join(env.number("RANK", &p.Rank), env.number("WORLD_SIZE", &p.Size),
		env.number("LOCAL_WORLD_SIZE", &p.LocalSize), env.number("MASTER_PORT", &port))
	if port > 0 && env["TORCHELASTIC_USE_AGENT_STORE"] == "True" {
		port++ // the agent listens on MASTER_PORT already
	}
	if host := env["MASTER_ADDR"]; host != "" {
		p.Rendezvous = []string{net.JoinHostPort(host, strconv.Itoa(cmp.Or(port, p.port())))}
	}
	return err
}

func leaderWorkerSet(env vars, p *Place) (bool, error) {
	if env["LWS_WORKER_INDEX"] == "" {
		return false, nil
	}
	if leader := env["LWS_LEADER_ADDRESS"]; leader != "" {
		p.Rendezvous = []string{leader}
	}
	return true, errors.Join(env.number("LWS_WORKER_INDEX", &p.Rank), env.number("LWS_GROUP_SIZE", &p.Size))
}

// volcano takes the task that this pod is of where a job has several: its host list has the pod's name.
func volcano(env vars, p *Place) (bool, error) {
	index := "VC_TASK_INDEX"
	if env[index] == "" {
		index = "VK_TASK_INDEX"
	}
	if env[index] == "" {
		return false, nil
	}
	var all, own []string
	for name, list := range env {
		if !strings.HasPrefix(name, "VC_") || !strings.HasSuffix(name, "_HOSTS") {
			continue
		}
		task := strings.TrimSuffix(name, "_HOSTS")
		all = append(all, task)
		if slices.ContainsFunc(strings.Split(list, ","), func(h string) bool {
			return h == env["HOSTNAME"] || strings.HasPrefix(h, env["HOSTNAME"]+".")
		}) {
			own = append(own, task)
		}
	}
	if len(own) == 0 {
		own = all
	}
	if len(own) != 1 {
		return true, fmt.Errorf("%d lists VC_TASK_HOSTS, and not one that has %q", len(all), env["HOSTNAME"])
	}
	p.Rendezvous = strings.Split(env[own[0]+"_HOSTS"], ",")[:1]
	return true, errors.Join(env.number(index, &p.Rank), env.number(own[0]+"_NUM", &p.Size))
}
