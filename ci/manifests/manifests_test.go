// Package manifests decodes the manifests of the documentation as a strict API server does. It is a module of its own,
// so that the tool does not depend on Kubernetes.
package manifests

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"
)

const page = "../../docs/how-to/kubernetes.md"

// decode reads one manifest; unknown and repeated fields are errors.
func decode(text string) (runtime.Object, error) {
	s := runtime.NewScheme()
	if err := core.AddToScheme(s); err != nil {
		return nil, err
	}
	if err := batch.AddToScheme(s); err != nil {
		return nil, err
	}
	o, _, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true,
		Strict: true}).Decode([]byte(text), nil, nil)
	return o, err
}

func TestManifestsAreWhatKubernetesReads(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	var job *batch.Job
	var service *core.Service
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		for _, text := range strings.Split(block[1], "\n---\n") {
			if strings.Contains(text, "kind: JobSet\n") {
				sets = append(sets, text)
				continue
			}
			o, err := decode(text)
			if err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			switch o := o.(type) {
			case *batch.Job:
				job = o
			case *core.Service:
				service = o
			}
		}
	}
	if job == nil || service == nil {
		t.Fatal("no Job with its Service")
	}
	pod := job.Spec.Template.Spec
	switch {
	case *job.Spec.CompletionMode != batch.IndexedCompletion, *job.Spec.Completions != *job.Spec.Parallelism:
		t.Error("the Job is not Indexed, or not all of its pods run at once")
	case pod.Subdomain != service.Name, service.Spec.ClusterIP != core.ClusterIPNone,
		!service.Spec.PublishNotReadyAddresses, service.Spec.Selector["job-name"] != job.Name:
		t.Error("names of pods do not resolve before they are ready")
	}
	// A pod is JOB-INDEX.SERVICE.
	command := strings.Join(pod.Containers[0].Command, " ")
	if want := "--rendezvous=" + job.Name + "-0." + service.Name; !strings.Contains(command, want) {
		t.Errorf("%s: want %s", command, want)
	}
	for _, text := range sets {
		checkSet(t, text)
	}
	if len(sets) != 1 {
		t.Errorf("%d JobSets", len(sets))
	}
}

// jobSet is what a JobSet has of its own; its module is not served everywhere.
type jobSet struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		FailurePolicy struct {
			MaxRestarts int `json:"maxRestarts"`
		} `json:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string                `json:"name"`
			Replicas int                   `json:"replicas"`
			Template batch.JobTemplateSpec `json:"template"`
		} `json:"replicatedJobs"`
	} `json:"spec"`
}

// A pod of a JobSet is SET-JOB-REPLICA-INDEX.SET, by a service that the controller makes.
func checkSet(t *testing.T, text string) {
	var set jobSet
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	job := set.Spec.ReplicatedJobs[0]
	spec := job.Template.Spec
	command := strings.Join(spec.Template.Spec.Containers[0].Command, " ")
	for _, want := range []string{"--rendezvous=" + set.Name + "-" + job.Name + "-0-0." + set.Name,
		fmt.Sprintf("--size=%d", *spec.Completions)} {
		if !strings.Contains(command, want) {
			t.Errorf("%s: want %s", command, want)
		}
	}
	if set.Spec.FailurePolicy.MaxRestarts != 0 || job.Replicas != 1 || *spec.Completions != *spec.Parallelism {
		t.Errorf("%s: it is started again, or its pods do not run at once", text)
	}
}

func TestAnUnknownFieldIsRefused(t *testing.T) {
	if _, err := decode("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {clusterIp: None}\n"); err == nil {
		t.Error("clusterIp was taken for clusterIP")
	}
}
