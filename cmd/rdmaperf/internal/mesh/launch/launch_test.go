package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// environ reads "NAME=VALUE" lines.
func environ(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[k] = v
		}
	}
	return env
}

// Each row is what that launcher puts into the environment of a rank.
var found = []struct {
	name, env string
	flags     Flags
	want      string // launcher, rank/size, rendezvous, and what else it says
}{
	{name: "Open MPI 4.1 on one host", env: `
		OMPI_COMM_WORLD_RANK=1
		OMPI_COMM_WORLD_SIZE=2
		OMPI_COMM_WORLD_LOCAL_RANK=1
		OMPI_COMM_WORLD_LOCAL_SIZE=2
		OMPI_MCA_ess_base_jobid=1842216961
		OMPI_MCA_orte_hnp_uri=1842216960.0;tcp://172.17.0.2,10.1.0.2:41235
		PMIX_NAMESPACE=1842216961
		PMIX_RANK=1`,
		want: "Open MPI 1/2 127.0.0.1:18679 job 1842216961 local 2"},
	{name: "Open MPI 4.1 on two hosts", env: `
		OMPI_COMM_WORLD_RANK=0
		OMPI_COMM_WORLD_SIZE=4
		OMPI_COMM_WORLD_LOCAL_SIZE=2
		OMPI_MCA_ess_base_jobid=1842216961
		OMPI_MCA_orte_hnp_uri=1842216960.0;tcp://172.17.0.2,10.1.0.2:41235`,
		want: "Open MPI 0/4 172.17.0.2:18679,10.1.0.2:18679 job 1842216961 local 2"},
	{name: "Open MPI 5 says nothing of mpirun's host", env: `
		OMPI_COMM_WORLD_RANK=3
		OMPI_COMM_WORLD_SIZE=4
		OMPI_COMM_WORLD_LOCAL_SIZE=2
		PMIX_NAMESPACE=prterun-n1-77@1
		PMIX_HOSTNAME=n2`,
		flags: Flags{Rendezvous: "n1:7000"},
		want:  "Open MPI 3/4 n1:7000 job prterun-n1-77@1 node n2 local 2"},
	{name: "Open MPI in an allocation: its daemons came by srun", env: `
		OMPI_COMM_WORLD_RANK=5
		OMPI_COMM_WORLD_SIZE=8
		OMPI_COMM_WORLD_LOCAL_SIZE=4
		SLURM_PROCID=1
		SLURM_NTASKS=2
		SLURM_STEP_NODELIST=n[1-2]
		SLURM_JOB_NODELIST=n[1-2]`,
		want: "Open MPI 5/8 n1:18516 local 4"},
	{name: "MPICH", env: `
		PMI_RANK=2
		PMI_SIZE=4
		PMI_FD=6
		MPI_LOCALRANKID=2
		MPI_LOCALNRANKS=4
		PMI_HOSTNAME=n3`,
		want: "PMI 2/4 PMI_FD 6 node n3 local 4"},
	{name: "Hydra in an allocation: its proxies came by srun", env: `
		PMI_RANK=7
		PMI_SIZE=8
		PMI_FD=6
		SLURM_PROCID=1
		SLURM_NTASKS=2
		SLURM_STEP_NODELIST=n[1-2]
		SLURMD_NODENAME=n2`,
		want: "PMI 7/8 PMI_FD 6 node n2"},
	{name: "srun --mpi=pmi2", env: `
		PMI_RANK=1
		PMI_SIZE=8
		PMI_FD=13
		PMI_JOBID=2.0
		SLURM_PROCID=1
		SLURM_STEP_NODELIST=n[1-8]
		SLURMD_NODENAME=n2
		SLURM_TOPOLOGY_ADDR=s0.s1.n2`,
		want: "PMI 1/8 PMI_FD 13 job 2.0 node n2 switch s0.s1"},
	{name: "srun", env: `
		SLURM_PROCID=3
		SLURM_NTASKS=4
		SLURM_STEP_NUM_TASKS=4
		SLURM_STEP_NODELIST=rack[0-1]n[07-08]
		SLURM_JOB_ID=12
		SLURM_STEP_ID=0
		SLURMD_NODENAME=rack1n08
		SLURM_TOPOLOGY_ADDR=s0.s2.rack1n08`,
		want: "srun 3/4 rack0n07:18632 job 12.0 node rack1n08 switch s0.s2"},
	{name: "srun without the plugin of topologies", env: `
		SLURM_PROCID=0
		SLURM_STEP_NUM_TASKS=2
		SLURM_STEP_NODELIST=n[1-2]
		SLURM_TOPOLOGY_ADDR=n1`,
		want: "srun 0/2 n1:18757 job ."},
	{name: "torchrun: its agent listens on MASTER_PORT", env: `
		RANK=5
		WORLD_SIZE=16
		LOCAL_RANK=5
		LOCAL_WORLD_SIZE=8
		MASTER_ADDR=n1
		MASTER_PORT=29500
		TORCHELASTIC_RUN_ID=job7
		TORCHELASTIC_RESTART_COUNT=2
		TORCHELASTIC_USE_AGENT_STORE=True`,
		want: "torchrun 5/16 n1:29501 job job7.2 local 8"},
	{name: "torchrun started by srun: SLURM_PROCID is the agent's", env: `
		RANK=9
		WORLD_SIZE=16
		MASTER_ADDR=n1
		MASTER_PORT=29500
		TORCHELASTIC_RUN_ID=job7
		TORCHELASTIC_USE_AGENT_STORE=False
		SLURM_PROCID=1
		SLURM_STEP_NUM_TASKS=2
		SLURM_STEP_NODELIST=n[1-2]`,
		want: "torchrun 9/16 n1:29500 job job7."},
	{name: "by hand, in an sbatch script", env: `
		RANK=1
		WORLD_SIZE=2
		MASTER_ADDR=10.0.0.1
		MASTER_PORT=7000
		SLURM_PROCID=0
		SLURM_NTASKS=2`,
		want: "RANK and WORLD_SIZE 1/2 10.0.0.1:7000"},
	{name: "Volcano's pytorch plugin", env: `
		RANK=1
		WORLD_SIZE=2
		MASTER_ADDR=job-master-0.job
		MASTER_PORT=23456`,
		want: "RANK and WORLD_SIZE 1/2 job-master-0.job:23456"},
	{name: "LeaderWorkerSet", env: `
		LWS_WORKER_INDEX=1
		LWS_GROUP_SIZE=4
		LWS_LEADER_ADDRESS=mesh-0.mesh.default`,
		want: "LeaderWorkerSet 1/4 mesh-0.mesh.default:18516"},
	{name: "Volcano, one task", env: `
		VC_TASK_INDEX=2
		VC_RANK_NUM=3
		VC_RANK_HOSTS=mesh-rank-0.mesh,mesh-rank-1.mesh,mesh-rank-2.mesh`,
		want: "Volcano 2/3 mesh-rank-0.mesh:18516"},
	{name: "Volcano of old, two tasks", env: `
		VK_TASK_INDEX=0
		HOSTNAME=mesh-b-0
		VC_A_NUM=1
		VC_A_HOSTS=mesh-a-0.mesh
		VC_B_NUM=2
		VC_B_HOSTS=mesh-b-0.mesh,mesh-b-1.mesh`,
		want: "Volcano 0/2 mesh-b-0.mesh:18516"},
	{name: "Indexed Job: its manifest says the rest", env: `
		JOB_COMPLETION_INDEX=3
		HOSTNAME=node17`,
		flags: Flags{Size: 4, Rendezvous: "mesh-0.mesh"},
		want:  "Kubernetes Indexed Job 3/4 mesh-0.mesh:18516"},
	{name: "flags before all", env: `
		OMPI_COMM_WORLD_RANK=5
		OMPI_COMM_WORLD_SIZE=8
		OMPI_COMM_WORLD_LOCAL_SIZE=8`,
		flags: Flags{Rank: 1, Size: 2, Rendezvous: "[fe80::1%eth0]:7000"},
		want:  "Open MPI 1/2 [fe80::1%eth0]:7000 local 8"},
	{name: "nobody but flags", flags: Flags{Rank: 0, Size: 2, Rendezvous: "::1"},
		want: "the command line 0/2 [::1]:18516"},
	{name: "a file of ranks", flags: Flags{Hosts: []Host{{"a", ""}, {"b", "s1"}},
		Own: func(h string) bool { return h == "b" }},
		want: "--ranks 1/2 a:18674 job 78ed6781f136a14e node b switch s1"},
}

func TestEachLauncherSaysRankSizeAndRendezvous(t *testing.T) {
	for _, c := range found {
		given := strings.HasPrefix(c.name, "flags") || strings.HasPrefix(c.name, "nobody")
		if !given {
			c.flags.Rank = -1
		}
		p, err := Find(environ(c.env), c.flags)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := fmt.Sprintf("%s %d/%d %s", p.Launcher, p.Rank, p.Size, strings.Join(p.Rendezvous, ","))
		if p.PMI > 0 {
			got += fmt.Sprintf("PMI_FD %d", p.PMI)
		}
		for _, more := range []struct{ name, value string }{{"job", p.Job}, {"node", p.Node}, {"switch", p.Switch}} {
			if more.value != "" {
				got += " " + more.name + " " + more.value
			}
		}
		if p.LocalSize > 0 {
			got += fmt.Sprintf(" local %d", p.LocalSize)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWhatCannotBeFoundSaysWhatToGive(t *testing.T) {
	for _, c := range []struct {
		name, env, want string
		flags           Flags
	}{
		{"no launcher", "", "give --rank, --size and --rendezvous", Flags{Rank: -1}},
		{"sbatch without srun", "SLURM_PROCID=0\nSLURM_NTASKS=8\nSLURM_JOB_NODELIST=n[1-8]", "put srun before it",
			Flags{Rank: -1}},
		{"Hydra with -pmi-port", "PMI_ID=1\nPMI_PORT=n1:4000", "start it without", Flags{Rank: -1}},
		{"Indexed Job alone", "JOB_COMPLETION_INDEX=1", "give --size", Flags{Rank: -1}},
		{"Indexed Job with a size", "JOB_COMPLETION_INDEX=1", "give --rendezvous", Flags{Rank: -1, Size: 4}},
		{"Open MPI 5 on two hosts", "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=4\nOMPI_COMM_WORLD_LOCAL_SIZE=2",
			"RDMAPERF_MESH_RENDEZVOUS", Flags{Rank: -1}},
		{"a rank beyond the size", "RANK=4\nWORLD_SIZE=4\nMASTER_ADDR=a", "rank 4 of 4", Flags{Rank: -1}},
		{"a rank that is no number", "RANK=x\nWORLD_SIZE=4", `RANK="x" is no number`, Flags{Rank: -1}},
		{"a list of hosts cut short", "SLURM_PROCID=1\nSLURM_STEP_NODELIST=n[1-4", "a bracket is open", Flags{Rank: -1}},
		{"a file that has this host twice", "", "give --rank", Flags{Rank: -1, Hosts: []Host{{"a", ""}, {"a", ""}},
			Own: func(string) bool { return true }}},
		{"a file without this host", "", "none of the 2 hosts", Flags{Rank: -1, Hosts: []Host{{"a", ""}, {"b", ""}},
			Own: func(string) bool { return false }}},
	} {
		if p, err := Find(environ(c.env), c.flags); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", c.name, p, err, c.want)
		}
	}
}

func TestHostListsAreThoseOfSlurm(t *testing.T) {
	for list, want := range map[string]string{
		"n1":                    "n1",
		"n[1-3]":                "n1 n2 n3",
		"n[008-010,15]x":        "n008x n009x n010x n15x",
		"gpu[1,3],login,r[1-1]": "gpu1 gpu3 login r1",
		"r[0-1]n[01-02]":        "r0n01 r0n02 r1n01 r1n02",
	} {
		if got, err := HostList(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", list, got, err, want)
		}
	}
	for _, list := range []string{"n[1-", "n[3-1]", "n[a]", "n[0-99999999]", "n]1["} {
		if got, err := HostList(list); err == nil {
			t.Errorf("%s: %v", list, got)
		}
	}
}

func TestAFileOfRanksHasAHostALine(t *testing.T) {
	hosts, err := ReadHosts(strings.NewReader("# hosts\nn1 s0.s1\n\nn2 s0.s2 # new\n10.0.0.3\n"))
	if want := []Host{{"n1", "s0.s1"}, {"n2", "s0.s2"}, {"10.0.0.3", ""}}; err != nil || !slices.Equal(hosts, want) {
		t.Errorf("%v, %v", hosts, err)
	}
	for _, text := range []string{"", "one", "a b c\nd"} {
		if hosts, err := ReadHosts(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %v", text, hosts)
		}
	}
}
