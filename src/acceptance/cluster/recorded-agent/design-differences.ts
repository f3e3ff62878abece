/** Differences from the recorded kubelet by design. */

export interface DesignDifference {
  readonly why: string;
  /** The expected lines of the comparison. */
  readonly differences: readonly string[];
}

export const designDifferences: Readonly<Record<string, DesignDifference>> = {
  "cfg-a-preempt-victim": {
    why: "a preempted pod fails whatever the exit codes of its containers, as Kubernetes documents",
    differences: [
      "phases: Pending, Running, Succeeded",
      "  not Pending, Running, Failed",
      "reason: ; not Preempting",
      "message: ; not Preempted in order to admit critical pod",
      "condition Initialized: True PodCompleted; not True",
      "condition Ready: False PodCompleted; not False PodFailed",
      "condition ContainersReady: False PodCompleted; not False PodFailed",
    ],
  },
  "emptydir-sizelimit": {
    why: "an evicted pod fails whatever the exit codes of its containers, as Kubernetes documents",
    differences: [
      "phases: Pending, Running, Succeeded",
      "  not Pending, Running, Failed",
      "reason: ; not Evicted",
      'message: ; not Usage of EmptyDir volume "v" exceeds the limit "5Mi". ',
      "condition Initialized: True PodCompleted; not True",
      "condition Ready: False PodCompleted; not False PodFailed",
      "condition ContainersReady: False PodCompleted; not False PodFailed",
    ],
  },
  "emptydir-sizelimit-exit1": {
    why: "the exit code is reported, since the container's record is kept until then",
    differences: [
      "states of c: waiting ContainerCreating #0, running #0, waiting ContainerCreating #1, " +
        "terminated ContainerStatusUnknown 137 #1",
      "       not waiting ContainerCreating #0, running #0, terminated Error 1 #0",
      'end of c: terminated ContainerStatusUnknown 137 "The container could not be located when the pod was ' +
        'terminated"; ready false; started false; not terminated Error 1; ready false; started false',
    ],
  },
  "subpath-escape": {
    why: "the reason of a failed start is reported at once, not a sync later",
    differences: [
      "states of c: waiting PodInitializing #0",
      "       not waiting PodInitializing #0, waiting CreateContainerConfigError #0",
      "end of c: waiting PodInitializing; ready false; started false; not waiting CreateContainerConfigError " +
        '"failed to prepare subPath for volumeMount "v" of container "c""; ready false; started false',
    ],
  },
  "static-mirror-force-deleted": {
    why: "a deleted mirror pod is created again at once; kubelet took a minute",
    differences: [
      "phases: Pending, Running",
      "  not Pending, Running, Pending, Running",
      "states of c: waiting ContainerCreating #0, running #0",
      "       not waiting ContainerCreating #0, running #0, terminated Completed 0 #0",
      "condition PodReadyToStartContainers: True; not False",
      "condition Ready: True; not False ContainersNotReady containers with unready status: [c]",
      "condition ContainersReady: True; not False ContainersNotReady containers with unready status: [c]",
      "end of c: running; ready true; started true; not terminated Completed 0; ready false; started false",
    ],
  },
};
